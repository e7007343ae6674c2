"""Distances between units."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Units

PLAIN_LOOP = 32
"""On a GPU, XLA reduces an axis shorter than this that is not the last one in a plain loop, which
computes what it reduces instead of loading it. That is faster for pairs of units."""

_IN_KERNEL: ContextVar[bool] = ContextVar("in_kernel", default=False)


class Geometry(NamedTuple):
    """Relative positions of all pairs of units; entry `[i, j]` leads from `i` to `j`."""

    dx: Float[Array, "u u"]
    dy: Float[Array, "u u"]
    distance: Float[Array, "u u"]
    """From centre to centre."""


def pairwise(units: Units) -> Geometry:
    """Relative positions of all pairs of units."""
    dx, dy = units.x[None] - units.x[:, None], units.y[None] - units.y[:, None]
    return Geometry(dx, dy, length(dx, dy))


def length(dx: Array, dy: Array) -> Array:
    """Lengths of vectors."""
    return (dx * dx + dy * dy) * inverse_length(dx, dy)


def inverse_length(dx: Array, dy: Array) -> Array:
    """1 / length of vectors, at most 1,000; cheaper than a root and a division."""
    return jax.lax.rsqrt(jnp.maximum(dx * dx + dy * dy, 1e-6))


def of_targets(battle: Battle, indices: Int[Array, " u"], *values: Any) -> list[Array]:
    """Values of the opponents with these indices within the other side; any for `NO_TARGET`.

    CPUs look for them by masks, which takes vector instructions; a gather does not. On accelerators
    a gather is part of another kernel, where masks take several.
    """
    if splits_into_kernels():
        unit = opponents_at(battle, indices)
        return [_take(jnp.asarray(v), unit) for v in values]
    unit = indices + first_opponents(battle)
    masks = [(unit[side, None] == np.arange(other.start, other.stop), other)
             for side, other in compared_units(battle)]  # fmt: skip
    found = [[jnp.where(mask, v[None, other], 0).sum(1) for mask, other in masks] for v in values]
    return [jnp.concatenate(parts) for parts in found]


@jax.custom_batching.custom_vmap
def _take(values: Array, indices: Int[Array, " u"]) -> Array:
    """Values at indices; of a batch by one gather from one long array.

    The gather of a batch that `vmap` writes has pairs of indices, which take another kernel.
    """
    return values.at[indices].get(mode="promise_in_bounds")


@_take.def_vmap
def _take_batch(size: int, batched: Any, values: Array, indices: Array) -> tuple[Array, bool]:
    values, indices = (
        x if is_batch else jnp.broadcast_to(x, (size, *x.shape))
        for x, is_batch in zip((values, indices), batched, strict=True)
    )
    first = jnp.arange(size, dtype=indices.dtype)[:, None] * values.shape[1]
    return _take(values.reshape(-1), (indices + first).reshape(-1)).reshape(indices.shape), True


def opponents_at(battle: Battle, indices: Int[Array, " u"]) -> Int[Array, " u"]:
    """Indices among all units from those within the other side; any for `NO_TARGET`."""
    unit = jnp.maximum(indices, 0) + first_opponents(battle)
    # Healers have indices within their own side, which may be larger than the other one.
    return jnp.minimum(unit, battle.num_units - 1)


def first_opponents(battle: Battle) -> np.ndarray:
    """(u,): index of the first unit of the other side."""
    allied = np.arange(battle.num_units) < battle.num_allies
    return np.where(allied, battle.num_allies, 0).astype(np.int32)


def compared_units(battle: Battle) -> Sequence[tuple[slice, slice]]:
    """Units, and those among which their opponents are.

    On accelerators all are compared with all, unless they are many: that takes one kernel, where
    the two sides take one each and another one for both together. Kernels have no slices.
    """
    every = slice(0, battle.num_units)
    few = splits_into_kernels() and battle.num_units < PLAIN_LOOP
    return [(every, every)] if few or in_kernel() else battle.sides


@contextmanager
def traced_for_kernel() -> Iterator[None]:
    """Context for tracing what is computed inside one kernel."""
    token = _IN_KERNEL.set(True)
    try:
        yield
    finally:
        _IN_KERNEL.reset(token)


def splits_into_kernels() -> bool:
    """Whether XLA makes several kernels of what is traced now: on accelerators, not in a kernel."""
    return jax.default_backend() != "cpu" and not in_kernel()


def in_kernel() -> bool:
    """Whether what is traced now is computed inside one kernel."""
    return _IN_KERNEL.get()
