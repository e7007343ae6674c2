"""The recurrence of a GRU in one kernel for GPUs; `gru` decides whether it is used.

The hidden states of a block of sequences stay in registers over all steps. The gradient reads the
inputs and the hidden states, computes the gates again, and sums the gradient of the weights per
block. Without a GPU, kernels are interpreted.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

from fp3o.networks.kernel_arrays import rounded_dot

WARPS = 8
"""Warps per block; with 8, no registers are spilled at a hidden size of 64."""

BLOCKS = (32, 16)
"""Sequences per block: the first that divides their number."""


class BlockPart(NamedTuple):
    """Part of an array that belongs to a block.

    Its sequences, the parameters of its group, or one entry per block.
    """

    kind: Literal["sequences", "group", "entry"]
    shape: tuple[int, ...]
    dtype: Any = jnp.float32


def gru_states(
    inputs: Float[Array, "k c t h3"],
    first: Float[Array, "k c h"],
    starts: Bool[Array, "k c t"],
    weight: Float[Array, "g h h3"],
    biases: tuple[Float[Array, "g2 h3"], Float[Array, "g h3"]],
) -> Float[Array, "k c t h"]:
    """Hidden states after every step of sequences that begin with the hidden state `first`.

    `inputs` is the input side of the gates without its bias; `biases` are those of the input side
    and of the hidden side. One group of parameters, or one per agent.
    """
    agents, sequences, steps, _ = inputs.shape
    size = first.shape[2]
    (xr, xz, xn), (hr, hz, hn) = (jnp.moveaxis(b.reshape(-1, 3, size), 1, 0) for b in biases)
    bias = jnp.stack(jnp.broadcast_arrays(xr + hr, xz + hz, xn, hn), axis=1)
    groups = max(weight.shape[0], bias.shape[0])
    weight, bias = (jnp.broadcast_to(x, (groups, *x.shape[1:])) for x in (weight, bias))
    keep = 1.0 - starts.astype(first.dtype)
    inputs, first, keep = (x.reshape(groups, -1, *x.shape[2:]) for x in (inputs, first, keep))
    states = _states(inputs, first, keep, weight, bias)
    return states.reshape(agents, sequences, steps, size)


@jax.custom_vjp
def _states(inputs: Array, first: Array, keep: Array, weight: Array, bias: Array) -> Array:
    parts = [BlockPart("sequences", (inputs.shape[2], first.shape[2]), first.dtype)]
    return _run(_states_kernel, (inputs, first, keep, weight, bias), parts)[0]


def _forward(*arguments: Array) -> tuple[Array, tuple[Array, ...]]:
    states = _states(*arguments)
    return states, (*arguments, states)


def _backward(saved: tuple[Array, ...], d_states: Array) -> tuple[Array | None, ...]:
    inputs, first, _, weight, bias, _ = saved
    parts = [
        BlockPart("sequences", inputs.shape[2:], inputs.dtype),
        BlockPart("sequences", first.shape[2:], first.dtype),
        BlockPart("entry", weight.shape[1:], weight.dtype),
        BlockPart("entry", bias.shape[1:], bias.dtype),
    ]
    d_inputs, d_first, d_weight, d_bias = _run(_gradient_kernel, (*saved, d_states), parts)
    return d_inputs, d_first, None, d_weight.sum(1), d_bias.sum(1)


_states.defvjp(_forward, _backward)


def _run(kernel: Callable[..., None], arrays: Sequence[Array], outputs: Sequence[BlockPart]) -> Any:
    """Run a kernel over groups and blocks of sequences."""
    groups, sequences = arrays[0].shape[:2]
    block = next(size for size in BLOCKS if sequences % size == 0)
    blocks, on_gpu = sequences // block, jax.default_backend() != "cpu"

    def spec(part: BlockPart) -> pl.BlockSpec:
        rest = (0,) * len(part.shape)
        if part.kind == "group":
            return pl.BlockSpec((None, *part.shape), lambda g, i: (g, *rest))
        lead = block if part.kind == "sequences" else None
        return pl.BlockSpec((None, lead, *part.shape), lambda g, i: (g, i, *rest))

    # As in `_states`: weight and bias are the fourth and fifth array, the others are sequences.
    parts = [
        BlockPart("group", x.shape[1:]) if j in (3, 4) else BlockPart("sequences", x.shape[2:])
        for j, x in enumerate(arrays)
    ]
    count = {"sequences": sequences, "entry": blocks}
    return pl.pallas_call(
        kernel,
        grid=(groups, blocks),
        in_specs=[*map(spec, parts)],
        out_specs=[*map(spec, outputs)],
        out_shape=[
            jax.ShapeDtypeStruct((groups, count[part.kind], *part.shape), part.dtype)
            for part in outputs
        ],
        interpret=not on_gpu,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1) if on_gpu else None,
    )(*arrays)


def _states_kernel(*refs: Any) -> None:
    inputs, first, keep, weight, bias, out = refs
    weights, biases, last = _thirds(weight, inputs.dtype), _rows(bias), inputs.shape[1] - 1

    def step(t: Any, carry: tuple[Array, Any]) -> tuple[Array, Any]:
        h, (x, kept) = carry
        later = _read_step(jnp.minimum(t + 1, last), inputs, keep)  # read while t is computed
        h = h * kept
        _, z, n, _ = _gates(x, h, weights, biases)
        h = (1.0 - z) * n + z * h
        out[:, t, :] = h
        return h, later

    jax.lax.fori_loop(0, last + 1, step, (first[...], _read_step(0, inputs, keep)))


def _gradient_kernel(*refs: Any) -> None:
    inputs, first, keep, weight, bias, states, d_states, *outputs = refs
    d_inputs, d_first, d_weight, d_bias = outputs
    weights, biases = _thirds(weight, inputs.dtype), _rows(bias)
    steps, size, dtype = inputs.shape[1], weight.shape[0], inputs.dtype

    def read(t: Any) -> Any:
        before = jnp.where(t > 0, states[:, jnp.maximum(t - 1, 0), :], first[...])
        return _read_step(t, inputs, keep), before, d_states[:, t, :]

    def step(i: Any, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        (dh, dw, db, now), t = carry, steps - 1 - i
        earlier = read(jnp.maximum(t - 1, 0))  # read while t is computed
        (x, kept), h, d_state = now
        h, dh = h * kept, dh + d_state
        r, z, n, hn = _gates(x, h, weights, biases)
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dz = dh * (h - n) * z * (1.0 - z)
        dr = dn * hn * r * (1.0 - r)
        for j, gate in enumerate((dr, dz, dn)):
            d_inputs[:, t, pl.ds(j * size, size)] = gate.astype(inputs.dtype)
        hidden_side = dr, dz, dn * r
        dw = [w + rounded_dot(h, d, (0, 0), dtype) for w, d in zip(dw, hidden_side, strict=True)]
        db = [b + d.sum(0) for b, d in zip(db, (dr, dz, dn, dn * r), strict=True)]
        back = (rounded_dot(d, w, (1, 1), dtype) for d, w in zip(hidden_side, weights, strict=True))
        return sum(back, dh * z) * kept, dw, db, earlier

    zero = jnp.zeros_like(first[...])
    matrix, vector = jnp.zeros((size, size), zero.dtype), jnp.zeros(size, zero.dtype)
    start = zero, [matrix] * 3, [vector] * 4, read(steps - 1)
    dh, dw, db, _ = jax.lax.fori_loop(0, steps, step, start)
    d_first[...] = dh
    for j in range(3):
        d_weight[:, pl.ds(j * size, size)] = dw[j]
    for j in range(4):
        d_bias[j, :] = db[j]


def _read_step(t: Any, inputs: Any, keep: Any) -> tuple[list[Array], Array]:
    """Input side of the gates at a step, and whether the hidden state before it is kept."""
    size = inputs.shape[2] // 3
    gates = [inputs[:, t, pl.ds(j * size, size)] for j in range(3)]
    return gates, keep[:, t][:, None]


def _gates(
    x: Sequence[Array], h: Array, weights: Sequence[Array], biases: Sequence[Array]
) -> tuple[Array, ...]:
    """r, z, n, and the affine map of the hidden state in n = tanh(x_n + r h_n)."""
    br, bz, bn, bh = biases
    hr, hz, hn = (rounded_dot(h, weight, (1, 0), x[0].dtype) for weight in weights)
    r, z, hn = jax.nn.sigmoid(x[0] + hr + br), jax.nn.sigmoid(x[1] + hz + bz), hn + bh
    return r, z, jnp.tanh(x[2] + bn + r * hn), hn


def _thirds(weight: Any, dtype: Any) -> list[Array]:
    """The parts of a weight that belong to r, z and n, rounded to `dtype`."""
    size = weight.shape[0]
    return [weight[:, pl.ds(j * size, size)].astype(dtype) for j in range(3)]


def _rows(bias: Any) -> list[Array]:
    """Biases of r, z, and of n inside and outside of the reset gate."""
    return [bias[j, :][None] for j in range(4)]
