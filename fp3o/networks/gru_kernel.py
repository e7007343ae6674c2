"""The recurrence of a GRU in one kernel for GPUs; `gru` decides whether it is used.

The hidden states of a block of sequences stay in registers over all steps. If a gradient follows,
the gates are kept; it sums the gradient of the weights per block. Without a GPU, kernels are
interpreted.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

from fp3o.networks.gru import BLOCK
from fp3o.networks.kernel_arrays import rounded_dot

READ_AHEAD_SIZE = 64
"""Largest hidden size for which there are registers to read the next step while one is computed."""


class BlockPart(NamedTuple):
    """Part of an array that belongs to a block.

    Its sequences, the parameters of its group, or one entry per block.
    """

    kind: Literal["sequences", "group", "entry"]
    shape: tuple[int, ...]
    dtype: Any = jnp.float32
    """Of an output."""


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
    states = BlockPart("sequences", (inputs.shape[2], first.shape[2]), first.dtype)
    return _run(_states_kernel, (inputs, first, keep), (weight, bias), [states])[0]


def _forward(
    inputs: Array, first: Array, keep: Array, weight: Array, bias: Array
) -> tuple[Array, tuple[Array, ...]]:
    steps, size = inputs.shape[2], first.shape[2]
    outputs = [
        BlockPart("sequences", (steps, size), first.dtype),
        BlockPart("sequences", (steps, 4 * size), inputs.dtype),
    ]
    states, gates = _run(_states_kernel, (inputs, first, keep), (weight, bias), outputs)
    return states, (gates, first, keep, states, weight)


def _backward(saved: tuple[Array, ...], d_states: Array) -> tuple[Array | None, ...]:
    gates, first, keep, states, weight = saved
    size = first.shape[2]
    outputs = [
        BlockPart("sequences", (gates.shape[2], 3 * size), gates.dtype),
        BlockPart("sequences", first.shape[2:], first.dtype),
        BlockPart("entry", weight.shape[1:], weight.dtype),
        BlockPart("entry", (4, size), weight.dtype),
    ]
    sequences = gates, first, keep, states, d_states
    d_inputs, d_first, d_weight, d_bias = _run(_gradient_kernel, sequences, (weight,), outputs)
    return d_inputs, d_first, None, d_weight.sum(1), d_bias.sum(1)


_states.defvjp(_forward, _backward)


def _run(
    kernel: Callable[..., None],
    sequences: Sequence[Array],
    parameters: Sequence[Array],
    outputs: Sequence[BlockPart],
) -> Any:
    """Run a kernel over groups and blocks of sequences."""
    groups, count = sequences[0].shape[:2]
    blocks, on_gpu = count // BLOCK, jax.default_backend() != "cpu"
    warps = 4 if parameters[0].shape[1] <= READ_AHEAD_SIZE else 8

    def spec(part: BlockPart) -> pl.BlockSpec:
        rest = (0,) * len(part.shape)
        if part.kind == "group":
            return pl.BlockSpec((None, *part.shape), lambda g, i: (g, *rest))
        lead = BLOCK if part.kind == "sequences" else None
        return pl.BlockSpec((None, lead, *part.shape), lambda g, i: (g, i, *rest))

    parts = [BlockPart("sequences", x.shape[2:]) for x in sequences]
    parts += [BlockPart("group", x.shape[1:]) for x in parameters]
    number = {"sequences": count, "entry": blocks}
    return pl.pallas_call(
        kernel,
        grid=(groups, blocks),
        in_specs=[*map(spec, parts)],
        out_specs=[*map(spec, outputs)],
        out_shape=[
            jax.ShapeDtypeStruct((groups, number[part.kind], *part.shape), part.dtype)
            for part in outputs
        ],
        interpret=not on_gpu,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1) if on_gpu else None,
    )(*sequences, *parameters)


def _states_kernel(*refs: Any) -> None:
    inputs, first, keep, weight, bias, out, *kept_gates = refs
    steps, size, dtype = inputs.shape[1], weight.shape[0], inputs.dtype
    weights = [weight[:, part].astype(dtype) for part in _parts(3, size)]
    biases = [bias[j, :][None] for j in range(4)]

    def read(t: Any) -> Any:
        return [inputs[:, t, part] for part in _parts(3, size)], keep[:, t][:, None]

    def step(t: Any, carry: tuple[Array, Any]) -> tuple[Array, Any]:
        h, (x, kept) = carry
        later = read(jnp.minimum(t + 1, steps - 1))  # while t is computed
        h = h * kept
        gates = _gates(x, h, weights, biases)
        _, z, n, _ = gates
        h = (1.0 - z) * n + z * h
        out[:, t, :] = h
        for ref in kept_gates:
            for part, gate in zip(_parts(4, size), gates, strict=True):
                ref[:, t, part] = gate.astype(dtype)
        return h, later

    jax.lax.fori_loop(0, steps, step, (first[...], read(0)))


def _gradient_kernel(*refs: Any) -> None:
    gates, first, keep, states, d_states, weight, *outputs = refs
    d_inputs, d_first, d_weight, d_bias = outputs
    steps, size, dtype = gates.shape[1], weight.shape[0], gates.dtype
    ahead = size <= READ_AHEAD_SIZE
    weights = [weight[:, part].astype(dtype) for part in _parts(3, size)]

    def read(t: Any) -> Any:
        before = jnp.where(t > 0, states[:, jnp.maximum(t - 1, 0), :], first[...])
        at_step = [gates[:, t, part] for part in _parts(4, size)]
        return at_step, keep[:, t][:, None], before, d_states[:, t, :]

    def step(i: Any, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        (dh, dw, db, now), t = carry, steps - 1 - i
        earlier = read(jnp.maximum(t - 1, 0)) if ahead else ()
        (r, z, n, hn), kept, h, d_state = now if ahead else read(t)
        r, z, n, hn = (gate.astype(dh.dtype) for gate in (r, z, n, hn))
        h, dh = h * kept, dh + d_state
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dz = dh * (h - n) * z * (1.0 - z)
        dr = dn * hn * r * (1.0 - r)
        for part, gate in zip(_parts(3, size), (dr, dz, dn), strict=True):
            d_inputs[:, t, part] = gate.astype(dtype)
        hidden_side = dr, dz, dn * r
        dw = [w + rounded_dot(h, d, (0, 0), dtype) for w, d in zip(dw, hidden_side, strict=True)]
        db = [b + d.sum(0) for b, d in zip(db, (dr, dz, dn, dn * r), strict=True)]
        back = (rounded_dot(d, w, (1, 1), dtype) for d, w in zip(hidden_side, weights, strict=True))
        return sum(back, dh * z) * kept, dw, db, earlier

    zero = jnp.zeros_like(first[...])
    matrix, vector = jnp.zeros((size, size), zero.dtype), jnp.zeros(size, zero.dtype)
    start = zero, [matrix] * 3, [vector] * 4, read(steps - 1) if ahead else ()
    dh, dw, db, _ = jax.lax.fori_loop(0, steps, step, start)
    d_first[...] = dh
    for part, matrix in zip(_parts(3, size), dw, strict=True):
        d_weight[:, part] = matrix
    for j in range(4):
        d_bias[j, :] = db[j]


def _gates(
    x: Sequence[Array], h: Array, weights: Sequence[Array], biases: Sequence[Array]
) -> tuple[Array, ...]:
    """r, z, n, and the affine map of the hidden state in n = tanh(x_n + r h_n)."""
    br, bz, bn, bh = biases
    hr, hz, hn = (rounded_dot(h, weight, (1, 0), x[0].dtype) for weight in weights)
    r, z, hn = jax.nn.sigmoid(x[0] + hr + br), jax.nn.sigmoid(x[1] + hz + bz), hn + bh
    return r, z, jnp.tanh(x[2] + bn + r * hn), hn


def _parts(count: int, size: int) -> list[Any]:
    """Columns that belong to r, z, n and, if there are four, the hidden side of n."""
    return [pl.ds(j * size, size) for j in range(count)]
