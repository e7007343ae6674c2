"""Several layers of a network in one kernel for GPUs; `mlp` decides whether it is used.

At the sizes of policy networks, starting kernels and moving activations between them costs more
than the products. Here the activations of a block of rows stay in registers from layer to layer.
The gradient computes them again, sums the gradients of the parameters per block of rows, and
returns one packed vector of sums. Without a GPU, kernels are interpreted.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

from fp3o.networks.layers import EPSILON

WARPS = 4
"""Warps per block."""

ROWS = 32
"""Rows that a kernel computes at a time."""

MAX_TURNS = 8
"""Blocks of rows, one after another, of one program of the gradient."""

PROGRAMS = 128
"""Number of programs of the gradient from which on each of them takes several blocks of rows."""

CHUNK = 64
"""Columns of a matrix that are used at a time."""

Refs = tuple[Any, Any]
"""References to the packed parameters: those that all agents share, and those per agent."""


class ArraySlot(NamedTuple):
    """Position of an array in the packed parameters."""

    per_agent: bool
    offset: int
    shape: tuple[int, ...]
    """Without the axis of agents."""


class LayerSlots(NamedTuple):
    """Positions of the arrays of a layer: LayerNorm's scale and shift, weight and bias."""

    scale: ArraySlot | None
    shift: ArraySlot | None
    weight: ArraySlot
    bias: ArraySlot


class Chain(NamedTuple):
    """Static description of the layers in a kernel."""

    layers: tuple[LayerSlots, ...]
    activation: str
    """Between layers: relu or tanh, followed by `normalise` if there are norms."""
    entry: Literal["none", "normalise", "activation"]
    """What happens to the input first: nothing, normalise, or activation and normalise."""
    norm: bool
    differentiates_input: bool


def layer_chain(
    x: Float[Array, "k r i"], layers: Sequence[Sequence[Array | None]], how: "Chain"
) -> Float[Array, "k r o"]:
    """Apply layers `(scale, shift, weight, bias)`, each with an axis of agents of size 1 or k."""
    agents, rows, _ = x.shape
    slots, packed = pack(layers)
    if agents > 1 and not any(s.per_agent for layer in slots for s in layer if s):
        x = x.reshape(1, agents * rows, -1)
    out = _chain(how._replace(layers=slots), x, *packed)
    return out.reshape(agents, rows, -1)


def pack(
    layers: Sequence[Sequence[Array | None]],
) -> tuple[tuple[LayerSlots, ...], tuple[Array, Array]]:
    """Pack arrays with an axis of agents of size 1, and those with a larger one."""
    parts: tuple[list[Array], list[Array]] = ([], [])
    sizes = [0, 0]

    def place(array: Array | None) -> ArraySlot | None:
        if array is None:
            return None
        own = array.shape[0] > 1
        slot = ArraySlot(own, sizes[own], array.shape[1:])
        parts[own].append(array.reshape(array.shape[0], -1))
        sizes[own] += parts[own][-1].shape[1]
        return slot

    slots = tuple(LayerSlots(*map(place, layer)) for layer in layers)  # pyright: ignore
    shared, own = (jnp.concatenate(p, axis=1) if p else jnp.zeros((1, 1)) for p in parts)
    return slots, (shared, own)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _chain(chain: Chain, x: Array, shared: Array, own: Array) -> Array:
    agents, rows, _ = x.shape
    width = chain.layers[-1].bias.shape[0]
    return pl.pallas_call(
        partial(_forward_kernel, chain),
        grid=(agents, pl.cdiv(rows, ROWS)),
        in_specs=[_of_agent(x), _of_agent(shared), _of_agent(own)],
        out_specs=pl.BlockSpec((None, rows, width), lambda a, i: (a, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((agents, rows, width), x.dtype),
        **_compiler(),
    )(x, shared, own)


def _forward(chain: Chain, x: Array, shared: Array, own: Array) -> tuple[Array, tuple[Array, ...]]:
    return _chain(chain, x, shared, own), (x, shared, own)


def _backward(chain: Chain, saved: tuple[Array, ...], d_out: Array) -> tuple[Array | None, ...]:
    x, shared, own = saved
    agents, rows, width = x.shape
    blocks = pl.cdiv(rows, ROWS)
    turns = min(MAX_TURNS, max(1, agents * blocks // PROGRAMS))
    programs = pl.cdiv(blocks, turns)
    # One vector of sums per program: the kernel writes each entry of the arrays in the chain.
    sums = [(agents, programs, packed.shape[1]) for packed in (shared, own)]
    d_x = (agents, rows, width) if chain.differentiates_input else (agents, 1, 1)
    out_specs = [pl.BlockSpec((None, None, s[2]), lambda a, i: (a, i, 0)) for s in sums]
    d_x_spec = pl.BlockSpec((None, *d_x[1:]), lambda a, i: (a, 0, 0))
    d_input, d_shared, d_own = pl.pallas_call(
        partial(_gradient_kernel, chain, turns),
        grid=(agents, programs),
        in_specs=[_of_agent(x), _of_agent(shared), _of_agent(own), _of_agent(d_out)],
        out_specs=[d_x_spec, *out_specs],
        out_shape=[jax.ShapeDtypeStruct(s, x.dtype) for s in (d_x, *sums)],
        **_compiler(),
    )(x, shared, own, d_out)
    has_own = any(s.per_agent for layer in chain.layers for s in layer if s)
    has_shared = any(not s.per_agent for layer in chain.layers for s in layer if s)
    return (
        d_input if chain.differentiates_input else None,
        d_shared.sum((0, 1))[None] if has_shared else jnp.zeros_like(shared),
        d_own.sum(1) if has_own else jnp.zeros_like(own),
    )


_chain.defvjp(_forward, _backward)


def _of_agent(array: Array) -> pl.BlockSpec:
    """All of an array that belongs to the program's agent."""
    rest = (0,) * (array.ndim - 1)
    one = array.shape[0] == 1
    return pl.BlockSpec((None, *array.shape[1:]), lambda a, i: (0 if one else a, *rest))


def _compiler() -> dict[str, Any]:
    on_gpu = jax.default_backend() != "cpu"
    params = triton.CompilerParams(num_warps=WARPS, num_stages=1) if on_gpu else None
    return {"interpret": not on_gpu, "compiler_params": params}


def _forward_kernel(chain: Chain, x_ref: Any, shared: Any, own: Any, out_ref: Any) -> None:
    refs, rows = (shared, own), pl.program_id(1) * ROWS + jnp.arange(ROWS)
    x = _read_rows(x_ref, rows)
    u = _enter(chain, x)[0]
    for j, layer in enumerate(chain.layers):
        if j:
            u = _between(chain, u)[0]  # pyright: ignore[reportPossiblyUnbound]
        if j < len(chain.layers) - 1:
            weight, bias = _folded(refs, layer, _columns(layer)[0])
            u = u @ weight + bias
    last = chain.layers[-1]
    for columns in _columns(last):
        weight, bias = _folded(refs, last, columns)
        _write_rows(out_ref, rows, columns, u @ weight + bias)


def _gradient_kernel(chain: Chain, turns: int, *refs: Any) -> None:
    x_ref, shared, own, d_out, d_x, d_shared, d_own = refs
    params, layers, first = (shared, own), chain.layers, pl.program_id(1) * turns

    def turn(t: Any, sums: Any) -> Any:
        rows = (first + t) * ROWS + jnp.arange(ROWS)
        inputs, saved = _inputs_of_layers(chain, params, _read_rows(x_ref, rows))
        sums, d_outputs = list(sums), [_read_rows(d_out, rows, c) for c in _columns(layers[-1])]
        for j in reversed(range(len(layers))):
            d_input = None
            new = []
            for c, d, (dw, db) in zip(_columns(layers[j]), d_outputs, sums[j], strict=True):
                new.append((dw + _product(inputs[j], d, (0, 0)), db + d.sum(0)))
                if j or chain.differentiates_input:
                    weight, _ = _folded(params, layers[j], c)
                    part = _product(d, weight, (1, 1))
                    d_input = part if d_input is None else d_input + part
            sums[j] = new
            if d_input is not None:
                d_outputs = [_leave(chain, j, d_input, inputs[j], saved[j])]
        if chain.differentiates_input:
            _write_rows(d_x, rows, _whole(d_x.shape[1]), d_outputs[0])
        return sums

    zeros = [
        [(jnp.zeros((_padded(layer.weight.shape[0]), c.size)), jnp.zeros(c.size)) for c in _columns(layer)]
        for layer in layers
    ]
    sums = jax.lax.fori_loop(0, turns, turn, zeros)
    for layer, of_layer in zip(layers, sums, strict=True):
        _write_sums(params, (d_shared, d_own), layer, of_layer)


class Columns(NamedTuple):
    """Some columns of a matrix; `size` is a power of two, of which `exist` exist."""

    start: int
    size: int
    exist: int

    def index(self) -> Int[Array, " c"]:
        return self.start + jnp.arange(self.size)

    def mask(self) -> Array:
        return jnp.arange(self.size) < self.exist


def _columns(layer: LayerSlots) -> list[Columns]:
    """Outputs of a layer, `CHUNK` at a time if there are more."""
    width = layer.bias.shape[0]
    if width <= 2 * CHUNK:
        return [_whole(width)]
    return [Columns(s, CHUNK, min(CHUNK, width - s)) for s in range(0, width, CHUNK)]


def _whole(width: int) -> Columns:
    return Columns(0, _padded(width), width)


def _padded(size: int) -> int:
    """Sizes in a product: powers of two, at least 16."""
    return max(16, pl.next_power_of_2(size))


def _read_rows(ref: Any, rows: Array, columns: Columns | None = None) -> Array:
    """Rows of an array; 0 outside of it."""
    columns = columns or _whole(ref.shape[1])
    mask = (rows < ref.shape[0])[:, None] & columns.mask()[None]
    return _load(ref, (rows[:, None], columns.index()[None]), mask)


def _write_rows(ref: Any, rows: Array, columns: Columns, value: Array) -> None:
    mask = (rows < ref.shape[0])[:, None] & columns.mask()[None]
    _store(ref, (rows[:, None], columns.index()[None]), value, mask)


def _load(ref: Any, index: tuple[Array, ...], mask: Array) -> Array:
    index = tuple(jnp.broadcast_to(i, mask.shape) for i in index)
    return triton.load(ref.at[index], mask=mask, other=0.0)


def _store(ref: Any, index: tuple[Array, ...], value: Array, mask: Array) -> None:
    index = tuple(jnp.broadcast_to(i, mask.shape) for i in index)
    triton.store(ref.at[index], value, mask=mask)


def _vector(refs: Refs, slot: ArraySlot, columns: Columns) -> Array:
    return _load(refs[slot.per_agent], (slot.offset + columns.index(),), columns.mask())


def _matrix(refs: Refs, slot: ArraySlot, columns: Columns) -> Array:
    index, mask = _matrix_index(slot, columns)
    return _load(refs[slot.per_agent], (index,), mask)


def _matrix_index(slot: ArraySlot, columns: Columns) -> tuple[Array, Array]:
    """Positions of these columns of a matrix, and which of them exist."""
    rows = _whole(slot.shape[0])
    index = slot.offset + rows.index()[:, None] * slot.shape[1] + columns.index()[None]
    return index, rows.mask()[:, None] & columns.mask()[None]


def _folded(refs: Refs, layer: LayerSlots, columns: Columns) -> tuple[Array, Array]:
    """Weight and bias with the norm folded in, `(scale ∘ x + shift) W + b = x W' + b'`."""
    weight, bias = _matrix(refs, layer.weight, columns), _vector(refs, layer.bias, columns)
    if layer.scale is None or layer.shift is None:
        return weight, bias
    rows = _whole(layer.weight.shape[0])
    scale, shift = _vector(refs, layer.scale, rows), _vector(refs, layer.shift, rows)
    return scale[:, None] * weight, bias + (shift[:, None] * weight).sum(0)


def _write_sums(params: Refs, refs: Refs, layer: LayerSlots, sums: Any) -> None:
    """Gradients of scale, shift, weight and bias from those of the folded weight and bias."""
    d_scale = d_shift = 0.0
    rows = _whole(layer.weight.shape[0])
    for columns, (dw, db) in zip(_columns(layer), sums, strict=True):
        index, mask = _matrix_index(layer.weight, columns)
        if layer.scale is not None and layer.shift is not None:
            weight = _matrix(params, layer.weight, columns)
            d_scale = d_scale + (dw * weight).sum(1)
            d_shift = d_shift + (weight * db[None]).sum(1)
            scale, shift = _vector(params, layer.scale, rows), _vector(params, layer.shift, rows)
            dw = scale[:, None] * dw + shift[:, None] * db[None]
        _store(refs[layer.weight.per_agent], (index,), dw, mask)
        bias = refs[layer.bias.per_agent]
        _store(bias, (layer.bias.offset + columns.index(),), db, columns.mask())
    for slot, value in ((layer.scale, d_scale), (layer.shift, d_shift)):
        if slot is not None:
            _store(refs[slot.per_agent], (slot.offset + rows.index(),), value, rows.mask())


def _inputs_of_layers(chain: Chain, refs: Refs, x: Array) -> tuple[list[Array], list[Any]]:
    """Inputs of all layers, and what the gradient needs of the steps between them."""
    u, saved = _enter(chain, x)
    inputs, kept = [u], [saved]
    for layer in chain.layers[:-1]:
        weight, bias = _folded(refs, layer, _columns(layer)[0])
        u, saved = _between(chain, u @ weight + bias)
        inputs.append(u)
        kept.append(saved)
    return inputs, kept


def _enter(chain: Chain, x: Array) -> tuple[Array, Any]:
    if chain.entry == "none":
        return x, None
    if chain.entry == "activation":
        return _between(chain, x)
    y, inverse = _normalise(x) if chain.norm else (x, None)
    return y, (None, inverse)


def _between(chain: Chain, a: Array) -> tuple[Array, Any]:
    """Activation and normalisation; with the slope of the former and the scale of the latter."""
    if chain.activation == "relu":
        v, slope = jnp.maximum(a, 0.0), jnp.where(a > 0, 1.0, 0.0)
    else:
        v = jnp.tanh(a)
        slope = 1.0 - v * v
    y, inverse = _normalise(v) if chain.norm else (v, None)
    return y, (slope, inverse)


def _leave(chain: Chain, j: int, d: Array, y: Array, saved: Any) -> Array:
    """Gradient before the activation and normalisation in front of layer j."""
    if saved is None:
        return d
    slope, inverse = saved
    if inverse is not None:
        size = d.shape[1]
        means = d.sum(1, keepdims=True) / size, (d * y).sum(1, keepdims=True) / size
        d = (d - means[0] - y * means[1]) * inverse
    return d if slope is None else d * slope


def _normalise(v: Array) -> tuple[Array, Array]:
    centred = v - v.sum(1, keepdims=True) / v.shape[1]
    variance = (centred * centred).sum(1, keepdims=True) / v.shape[1]
    inverse = jax.lax.rsqrt(variance + EPSILON)
    return centred * inverse, inverse


def _product(one: Array, other: Array, axes: tuple[int, int]) -> Array:
    """Product of two matrices, summed over these axes."""
    return jax.lax.dot_general(one, other, ((axes[:1], axes[1:]), ((), ())))
