"""What the kernels of `mlp_kernel` compute for a block of rows."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array

from fp3o.networks.kernel_arrays import (
    ArraySlot,
    all_columns,
    column_parts,
    read_part,
    read_rows,
    read_vector,
    rounded_dot,
    write_part,
    write_rows,
)
from fp3o.networks.layers import EPSILON

FORWARD_ROWS = 64
"""Rows that a kernel computes at a time."""


class LayerArrays(NamedTuple):
    """Arrays of a layer, each with an axis of agents of size 1 or k; in kernels, their slots."""

    scale: Any
    """Of the LayerNorm before the layer, like `shift`; None: there is none."""
    shift: Any
    weight: Any
    bias: Any


class Chain(NamedTuple):
    """Static description of the layers in a kernel."""

    activation: str
    norm: bool
    """Whether activations are normalised."""
    enters: tuple[bool, bool]
    """Whether the input goes through the activation, and whether it is normalised."""
    leaves: bool
    """Whether the output goes through activation and normalisation."""
    layers: tuple[LayerArrays, ...] = ()
    entry_bias: ArraySlot | None = None
    dtype: Any = jnp.float32
    """Precision of factors of products."""

    @property
    def differentiates_input(self) -> bool:
        """Whether there is a gradient of the input: not of observations."""
        return any(self.enters)

    @property
    def gradient_rows(self) -> int:
        """Rows of which the gradient is computed at a time; with more, registers are spilled."""
        return 64 if len(self.layers) == 1 else 32

    def slots(self) -> list[ArraySlot]:
        """Slots of all arrays."""
        every = [self.entry_bias, *(slot for layer in self.layers for slot in layer)]
        return [slot for slot in every if slot is not None]


def forward_kernel(chain: Chain, x_ref: Any, shared: Any, own: Any, out_ref: Any) -> None:
    """Outputs of a block of rows."""
    rows = pl.program_id(1) * FORWARD_ROWS + jnp.arange(FORWARD_ROWS)
    params = shared, own
    folded = _fold_all(chain, params)
    inputs, _ = _inputs_of_layers(chain, params, folded, read_rows(x_ref, rows))
    for columns, (weight, bias) in zip(_parts(chain.layers[-1]), folded[-1], strict=True):
        out = _product(chain, inputs[-1], weight) + bias
        out = _activate(chain, out)[0] if chain.leaves else out
        write_rows(out_ref, rows, columns, out)


def gradient_kernel(chain: Chain, turns: int, *refs: Any) -> None:
    """Gradients of the parameters, summed over some blocks of rows, and of the input."""
    x_ref, shared, own, d_out, d_x, d_shared, d_own = refs
    params, first = (shared, own), pl.program_id(1) * turns
    folded, outputs = _fold_all(chain, params), _parts(chain.layers[-1])
    block = chain.gradient_rows

    def turn(t: Any, carry: Any) -> Any:
        rows, (entry_sum, sums) = (first + t) * block + jnp.arange(block), carry
        inputs, saved = _inputs_of_layers(chain, params, folded, read_rows(x_ref, rows))
        sums, d = list(sums), [read_rows(d_out, rows, columns) for columns in outputs]
        if chain.leaves:
            ((weight, bias),) = folded[-1]
            out = _product(chain, inputs[-1], weight) + bias
            d = [_activation_gradient(d[0], _activate(chain, out)[1])]
        for j in reversed(range(len(folded))):
            sums[j] = [
                (dw + _product(chain, inputs[j], part, (0, 0)), db + part.sum(0))
                for (dw, db), part in zip(sums[j], d, strict=True)
            ]
            if j or chain.differentiates_input:
                pairs = zip(d, folded[j], strict=True)
                products = [_product(chain, part, weight, (1, 1)) for part, (weight, _) in pairs]
                d = [_activation_gradient(sum(products[1:], products[0]), saved[j])]
        if chain.differentiates_input:
            write_rows(d_x, rows, all_columns(d_x.shape[1]), d[0])
            entry_sum = entry_sum + d[0].sum(0)
        return entry_sum, sums

    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape), folded)
    width = all_columns(x_ref.shape[1]).size
    entry_sum, sums = jax.lax.fori_loop(0, turns, turn, (jnp.zeros(width), zeros))
    if chain.entry_bias is not None:
        write_part((d_shared, d_own), chain.entry_bias, all_columns(x_ref.shape[1]), entry_sum)
    for layer, of_layer in zip(chain.layers, sums, strict=True):
        _write_sums(params, (d_shared, d_own), layer, of_layer)


def _parts(layer: LayerArrays) -> Any:
    return column_parts(layer.bias.shape[0])


def _fold_all(chain: Chain, refs: Any) -> list[list[tuple[Array, Array]]]:
    """Weights and biases of all layers with norms folded in, in parts of some columns."""
    return [[_fold(refs, layer, part) for part in _parts(layer)] for layer in chain.layers]


def _fold(refs: Any, layer: LayerArrays, columns: Any) -> tuple[Array, Array]:
    """`(scale ∘ x + shift) W + b = x W' + b'`."""
    weight, bias = (read_part(refs, slot, columns) for slot in (layer.weight, layer.bias))
    if layer.scale is None:
        return weight, bias
    scale, shift = (read_vector(refs, slot) for slot in (layer.scale, layer.shift))
    return scale[:, None] * weight, bias + (shift[:, None] * weight).sum(0)


def _write_sums(params: Any, refs: Any, layer: LayerArrays, sums: Any) -> None:
    """Gradients of scale, shift, weight and bias from those of the folded weight and bias."""
    d_scale = d_shift = jnp.zeros(())
    for columns, (dw, db) in zip(_parts(layer), sums, strict=True):
        if layer.scale is not None:
            weight = read_part(params, layer.weight, columns)
            scale, shift = (read_vector(params, slot) for slot in (layer.scale, layer.shift))
            d_scale = d_scale + (dw * weight).sum(1)
            d_shift = d_shift + (weight * db[None]).sum(1)
            dw = scale[:, None] * dw + shift[:, None] * db[None]
        write_part(refs, layer.weight, columns, dw)
        write_part(refs, layer.bias, columns, db)
    for slot, value in ((layer.scale, d_scale), (layer.shift, d_shift)):
        if slot is not None:
            write_part(refs, slot, all_columns(slot.shape[0]), value)


def _inputs_of_layers(
    chain: Chain, refs: Any, folded: Any, x: Array
) -> tuple[list[Array], list[Any]]:
    """Inputs of all layers, and what the gradient needs of the activations before them."""
    if chain.entry_bias is not None:
        x = x + read_vector(refs, chain.entry_bias)
    u, saved = _activate(chain, x, *chain.enters)
    inputs, kept = [u], [saved]
    for ((weight, bias),) in folded[:-1]:
        u, saved = _activate(chain, _product(chain, u, weight) + bias)
        inputs.append(u)
        kept.append(saved)
    return inputs, kept


def _activate(chain: Chain, a: Array, act: bool = True, norm: bool = True) -> tuple[Array, Any]:
    """Activation and normalisation, with the slope of the former and the scale of the latter."""
    slope = inverse = None
    if act and chain.activation == "relu":
        a, slope = jnp.maximum(a, 0.0), jnp.where(a > 0, 1.0, 0.0)
    elif act:
        a = jnp.tanh(a)
        slope = 1.0 - a * a
    if norm and chain.norm:
        a = a - a.sum(1, keepdims=True) / a.shape[1]
        inverse = jax.lax.rsqrt((a * a).sum(1, keepdims=True) / a.shape[1] + EPSILON)
        a = a * inverse
    return a, (a, slope, inverse)


def _activation_gradient(d: Array, saved: Any) -> Array:
    """Gradient of the argument of `_activate` from that of its value."""
    y, slope, inverse = saved
    if inverse is not None:
        mean, slope_mean = (x.sum(1, keepdims=True) / d.shape[1] for x in (d, d * y))
        d = (d - mean - y * slope_mean) * inverse
    return d if slope is None else d * slope


def _product(chain: Chain, one: Array, other: Array, axes: tuple[int, int] = (1, 0)) -> Array:
    """Product of two matrices, summed over these axes, in the precision of the input."""
    return rounded_dot(one, other, axes, chain.dtype)
