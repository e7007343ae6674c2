"""Arrays of parameters packed into vectors, and their parts in kernels for GPUs.

Kernels work on blocks whose sizes are powers of two: what lies outside of an array is read as 0 and
not written.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

CHUNK = 64
"""Columns of a matrix that are used at a time, if it has more than twice as many."""

Vectors = tuple[Float[Array, "1 p"], Float[Array, "g p2"]]
"""Packed parameters: those that all agents share, and those per agent. In kernels: references."""


class ArraySlot(NamedTuple):
    """Position of an array in the packed parameters."""

    per_agent: bool
    offset: int
    shape: tuple[int, ...]
    """Without the axis of agents."""


class Columns(NamedTuple):
    """Some columns of a matrix; of `size`, a power of two, `exist` exist."""

    start: int
    size: int
    exist: int

    def positions(self) -> Int[Array, " c"]:
        """Their positions."""
        return self.start + jnp.arange(self.size)

    def mask(self) -> Array:
        """Which of them exist."""
        return jnp.arange(self.size) < self.exist


def pack(arrays: Iterable[Array | None]) -> tuple[list[ArraySlot | None], Vectors]:
    """Pack arrays whose axis of agents has size 1, and those in which it is larger."""
    parts: tuple[list[Array], list[Array]] = ([], [])
    slots: list[ArraySlot | None] = []
    for array in arrays:
        if array is None:
            slots.append(None)
            continue
        own = parts[array.shape[0] > 1]
        offset = sum(part.shape[1] for part in own)
        slots.append(ArraySlot(array.shape[0] > 1, offset, array.shape[1:]))
        own.append(array.reshape(array.shape[0], -1))
    shared, own = (jnp.concatenate(p, axis=1) if p else jnp.zeros((1, 1)) for p in parts)
    return slots, (shared, own)


def all_columns(width: int) -> Columns:
    """All columns of a matrix at a time."""
    return Columns(0, padded(width), width)


def column_parts(width: int) -> list[Columns]:
    """All columns of a matrix, `CHUNK` at a time if there are many."""
    if width <= 2 * CHUNK:
        return [all_columns(width)]
    return [Columns(s, CHUNK, min(CHUNK, width - s)) for s in range(0, width, CHUNK)]


def padded(size: int) -> int:
    """Sizes in a product: powers of two, at least 16."""
    return max(16, pl.next_power_of_2(size))


def rounded_dot(one: Array, other: Array, axes: tuple[int, int], dtype: Any) -> Array:
    """Product of two matrices over these axes: factors rounded to `dtype`, sums not."""
    one, other, sums = one.astype(dtype), other.astype(dtype), jnp.result_type(dtype, jnp.float32)
    axis = ((axes[:1], axes[1:]), ((), ()))
    return jax.lax.dot_general(one, other, axis, preferred_element_type=sums)


def read_rows(ref: Any, rows: Array, columns: Columns | None = None) -> Array:
    """Some rows of an array, in single precision if they have less."""
    columns = columns or all_columns(ref.shape[1])
    found = _load(ref, *_rows_index(ref, rows, columns))
    return found.astype(jnp.result_type(found.dtype, jnp.float32))


def write_rows(ref: Any, rows: Array, columns: Columns, value: Array) -> None:
    """Write some rows of an array."""
    index, mask = _rows_index(ref, rows, columns)
    _store(ref, index, value.astype(ref.dtype), mask)


def read_vector(refs: Any, slot: ArraySlot) -> Array:
    """A vector of packed parameters."""
    columns = all_columns(slot.shape[0])
    return read_part(refs, slot, columns)


def read_part(refs: Any, slot: ArraySlot, columns: Columns) -> Array:
    """Some entries of a vector, or columns of a matrix, of packed parameters."""
    return _load(refs[slot.per_agent], *_slot_index(slot, columns))


def write_part(refs: Any, slot: ArraySlot, columns: Columns, value: Array) -> None:
    """Write some entries of a vector or columns of a matrix."""
    index, mask = _slot_index(slot, columns)
    _store(refs[slot.per_agent], index, value, mask)


def _rows_index(ref: Any, rows: Array, columns: Columns) -> tuple[tuple[Array, Array], Array]:
    mask = (rows < ref.shape[0])[:, None] & columns.mask()[None]
    return (rows[:, None], columns.positions()[None]), mask


def _slot_index(slot: ArraySlot, columns: Columns) -> tuple[tuple[Array], Array]:
    if len(slot.shape) == 1:
        return (slot.offset + columns.positions(),), columns.mask()
    rows = all_columns(slot.shape[0])
    index = slot.offset + rows.positions()[:, None] * slot.shape[1] + columns.positions()[None]
    return (index,), rows.mask()[:, None] & columns.mask()[None]


def _load(ref: Any, index: tuple[Array, ...], mask: Array) -> Array:
    index = tuple(jnp.broadcast_to(i, mask.shape) for i in index)
    return triton.load(ref.at[index], mask=mask, other=jnp.zeros((), ref.dtype))


def _store(ref: Any, index: tuple[Array, ...], value: Array, mask: Array) -> None:
    index = tuple(jnp.broadcast_to(i, mask.shape) for i in index)
    triton.store(ref.at[index], value, mask=mask)
