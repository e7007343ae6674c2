"""Several layers of a network in one kernel for GPUs; `mlp` decides whether it is used.

At the sizes of policy networks, starting kernels and moving activations between them costs more
than the products. Here the activations of a block of rows stay in registers from layer to layer.
The gradient computes them again, and sums the gradients of all parameters per block of rows in
one packed vector. Without a GPU, kernels are interpreted.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from fp3o.networks.kernel_arrays import pack
from fp3o.networks.mlp_kernel_body import (
    FORWARD_ROWS,
    Chain,
    LayerArrays,
    forward_kernel,
    gradient_kernel,
)

MLP_WARPS = 4
"""Warps of a program."""

PROGRAMS, MAX_TURNS = 128, 8
"""With more programs than the first, those of the gradient take several blocks of rows each, up to
the second."""


def layer_chain(
    x: Float[Array, "k r i"],
    layers: Sequence[LayerArrays],
    entry_bias: Float[Array, "g i"] | None,
    chain: Chain,
) -> Float[Array, "k r o"]:
    """Apply layers to the input, to which `entry_bias` is added first."""
    agents, rows, _ = x.shape
    (bias_slot, *slots), packed = pack([entry_bias, *(a for layer in layers for a in layer)])
    by_layer = [LayerArrays(*slots[4 * j : 4 * j + 4]) for j in range(len(layers))]
    chain = chain._replace(layers=tuple(by_layer), entry_bias=bias_slot, dtype=x.dtype)
    if not any(slot.per_agent for slot in chain.slots()):  # rows of all agents are alike
        x = x.reshape(1, agents * rows, -1)
    out: Array = _chain(chain, x, *packed)
    return out.reshape(agents, rows, -1)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _chain(chain: Chain, x: Array, shared: Array, own: Array) -> Array:
    agents, rows, _ = x.shape
    width, dtype = chain.layers[-1].bias.shape[0], x.dtype if chain.leaves else shared.dtype
    return pl.pallas_call(
        partial(forward_kernel, chain),
        grid=(agents, pl.cdiv(rows, FORWARD_ROWS)),
        in_specs=[_of_agent(array) for array in (x, shared, own)],
        out_specs=pl.BlockSpec((None, rows, width), lambda a, i: (a, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((agents, rows, width), dtype),
        **_compiler(),
    )(x, shared, own)


def _forward(chain: Chain, x: Array, shared: Array, own: Array) -> tuple[Array, tuple[Array, ...]]:
    return _chain(chain, x, shared, own), (x, shared, own)


def _backward(chain: Chain, saved: tuple[Array, ...], d_out: Array) -> tuple[Array | None, ...]:
    x, shared, own = saved
    agents, rows, width = x.shape
    blocks = pl.cdiv(rows, chain.gradient_rows)
    turns = min(MAX_TURNS, max(1, agents * blocks // PROGRAMS))
    programs = pl.cdiv(blocks, turns)
    d_x = (agents, rows, width) if chain.differentiates_input else (agents, 1, 1)
    # One vector of sums per program.
    sums = [(agents, programs, packed.shape[1]) for packed in (shared, own)]
    shapes = ((d_x, x.dtype), *((s, shared.dtype) for s in sums))
    d_input, d_shared, d_own = pl.pallas_call(
        partial(gradient_kernel, chain, turns),
        grid=(agents, programs),
        in_specs=[_of_agent(array) for array in (x, shared, own, d_out)],
        out_specs=[
            pl.BlockSpec((None, *d_x[1:]), lambda a, i: (a, 0, 0)),
            *(pl.BlockSpec((None, None, s[2]), lambda a, i: (a, i, 0)) for s in sums),
        ],
        out_shape=[jax.ShapeDtypeStruct(*shape) for shape in shapes],
        **_compiler(),
    )(x, shared, own, d_out)
    per_agent = {slot.per_agent for slot in chain.slots()}
    return (
        d_input if chain.differentiates_input else None,
        d_shared.sum((0, 1))[None] if False in per_agent else jnp.zeros_like(shared),
        d_own.sum(1) if True in per_agent else jnp.zeros_like(own),
    )


_chain.defvjp(_forward, _backward)


def _of_agent(array: Array) -> pl.BlockSpec:
    """All of an array that belongs to the program's agent."""
    rest, one = (0,) * (array.ndim - 1), array.shape[0] == 1
    return pl.BlockSpec((None, *array.shape[1:]), lambda a, i: (0 if one else a, *rest))


def _compiler() -> dict[str, Any]:
    on_gpu = jax.default_backend() != "cpu"
    params = triton.CompilerParams(num_warps=MLP_WARPS, num_stages=1) if on_gpu else None
    return {"interpret": not on_gpu, "compiler_params": params}
