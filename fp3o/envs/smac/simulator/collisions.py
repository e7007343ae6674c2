"""Collisions: units walk around each other, are pushed apart, and stay out of walls."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.geometry import (
    PLAIN_LOOP,
    in_kernel,
    inverse_length,
    length,
    splits_into_kernels,
)
from fp3o.envs.smac.simulator.state import Units
from fp3o.envs.smac.terrain import CLEARANCE_SAMPLES

STANDING_MOBILITY = 0.05
"""How easily a standing unit is pushed by its own side, relative to a walking one."""

SOLID = 0.95
"""Share of the sum of their separation radii to which a unit may approach another one."""

RELAXATION = 0.5
"""Share of an overlap that is resolved in a loop; not all of it, so that crowds come to rest."""

TURNS = np.radians(np.array([0, 45, 90, 130, -60], np.float32))
"""Directions in which a unit can walk, relative to the one in which it wants to; positive to the
side on which it passes others. That side never changes: a unit that chose anew in every loop would
walk to and fro behind a row of others. Beyond 120 degrees, to get out from between two of them."""

PREFERENCE = np.array([1.0, 0.9, 0.8, 0.6, 0.5], np.float32)
"""Value of a step in each of these directions; the free part of a step counts."""

DEVIATION = 0.02
"""Largest random step sideways, as a share of the step. In mirrored formations many distances are
equal; so chance decides which unit is nearest, not the order of the units."""


def avoid_others(
    battle: Battle,
    units: Units,
    step: tuple[Array, Array],
    motion: tuple[Array, Array, Array],
    noise: Array,
) -> tuple[Array, Array]:
    """Displacements of all units in this loop: steps between the others, and pushes.

    `motion` are masks of the units that are alive, walk, and have arrived. Units that overlap
    nevertheless are pushed apart; a standing one yields little to its own side, and not to
    opponents.
    """
    alive, walks, arrives = motion
    aside = DEVIATION * noise
    step = step[0] - aside * step[1], step[1] + aside * step[0]
    step = jnp.where(walks, step[0], 0.0), jnp.where(walks, step[1], 0.0)
    options = _options(battle, units, step, arrives)
    mobility = jnp.where(walks, 1.0, STANDING_MOBILITY) * (battle.stats.speed > 0)  # not buildings
    *blocks, push_x, push_y = _effects_of_others(battle, units, options, (alive, walks, mobility))
    step_x, step_y = _free_step(options, blocks)
    yields = RELAXATION * mobility * alive
    return step_x - yields * push_x, step_y - yields * push_y


class Option(NamedTuple):
    """A step that every unit can make."""

    x: Float[Array, " u"]
    y: Float[Array, " u"]
    value: Float[Array, " u"]
    """What the step is worth if nobody is in the way."""


def _options(
    battle: Battle, units: Units, step: tuple[Array, Array], arrives: Array
) -> list[Option]:
    """Steps in all directions, as far as walls allow them.

    Where a wall leaves no room on the side on which a unit passes others, it passes on the other.
    """
    size, side = battle.stats.separation, jnp.asarray(battle.passing_sides)
    room, away_x, away_y = nearest_wall(battle, units.x, units.y)
    towards = side * (step[1] * away_x - step[0] * away_y) > 0.5 * battle.stats.speed
    side = jnp.where(towards & (room < 3.0 * size), -side, side)
    options = []
    for turn, preference in zip(TURNS, PREFERENCE, strict=True):
        cos, sin = np.cos(turn), np.sin(turn) * side
        x, y = cos * step[0] - sin * step[1], cos * step[1] + sin * step[0]
        inside = jnp.maximum(-(x * away_x + y * away_y) - jnp.maximum(room - size, 0.0), 0.0)
        free_x, free_y = x + inside * away_x, y + inside * away_y
        kept = (free_x * x + free_y * y) / jnp.maximum(x * x + y * y, 1e-9)
        # Units that have arrived go straight or stop; otherwise all would press towards one point.
        value = jnp.where(arrives, 1.0 if turn == 0 else 0.0, preference * kept)
        options.append(Option(free_x, free_y, value))
    return options


def _effects_of_others(
    battle: Battle,
    units: Units,
    options: list[Option],
    motion: tuple[Array, Array, Array],
) -> list[Array]:
    """How much the others block each of the possible steps, and where they push.

    A step is blocked by 4 where there is room for a quarter of it, by 1/4 where there is room for
    four.
    """
    stats, (alive, walks, mobility) = battle.stats, motion
    own, other, shape = _pairs(battle.num_units)
    index = np.arange(battle.num_units, dtype=np.float32)
    dx, dy = other(units.x) - own(units.x), other(units.y) - own(units.y)
    distance, inverse = length(dx, dy), inverse_length(dx, dy)
    dx = dx + 1e-4 * (other(index) - own(index))  # breaks ties between equal positions
    high = stats.walks_cliffs  # units that step over cliffs also step over the others
    near = jnp.where((own(high) == other(high)) & (own(index) != other(index)), inverse, 0.0)
    touch = own(stats.separation) + other(stats.separation)

    # Of the room between two walking units, each takes half.
    weight = jnp.where(alive, jnp.where(walks, 2.0, 1.0), 0.0)
    closeness = near * other(weight) / jnp.maximum(distance - SOLID * touch, 1e-4)
    blocks = [closeness * (own(x) * dx + own(y) * dy) for x, y, _ in options]
    if_walking, if_standing = (alive / (m + mobility) for m in (1.0, STANDING_MOBILITY))
    own_side = ~battle.opponents.reshape(shape)
    share = jnp.where(own(walks), other(if_walking), other(if_standing) * own_side)
    force = share * jnp.maximum(touch - distance, 0.0) * near
    return _maxima_and_sums(blocks, [force * dx, force * dy])


def _pairs(count: int) -> tuple[Callable, Callable, tuple[int, ...]]:
    """How values of the units and of the others are arranged in arrays of all pairs, and its shape.

    The others are the second axis. On accelerators they are the first two, in parts of less than 32
    which XLA reduces in a plain loop that computes most of the pairs instead of loading them. A
    number of units without such a divisor is one part.
    """
    if not splits_into_kernels():
        return (lambda v: v[:, None]), (lambda v: v[None]), (count, count)
    size = max((size for size in range(8, PLAIN_LOOP) if count % size == 0), default=count)
    parts = count // size
    return (lambda v: v[None, None]), (lambda v: v.reshape(parts, size, 1)), (parts, size, count)


def _maxima_and_sums(blocks: list[Array], forces: list[Array]) -> list[Array]:
    """Maxima of pairs, at least 0, and sums of pairs over the others, in one pass.

    Kernels have no such reductions. On accelerators, separate ones of one part become parts of the
    kernel that uses their results.
    """
    if in_kernel() or (splits_into_kernels() and len(blocks[0]) == 1):
        maxima = [jnp.maximum(pairs.max(1), 0.0) for pairs in blocks]
        return [x.ravel() for x in (*maxima, *(pairs.sum(1) for pairs in forces))]

    def combine(one: Sequence[Array], other: Sequence[Array]) -> tuple[Array, ...]:
        both, split = [*zip(one, other, strict=True)], len(blocks)
        return *(jnp.maximum(*pair) for pair in both[:split]), *(a + b for a, b in both[split:])

    pairs = (*blocks, *forces)
    found = jax.lax.reduce(pairs, (np.float32(0),) * len(pairs), combine, (1,))
    return list(reduce(combine, zip(*found, strict=True)) if splits_into_kernels() else found)


def _free_step(options: list[Option], blocks: list[Array]) -> tuple[Array, Array]:
    """The step with the highest value, as far as nobody is in the way."""
    best = x = y = jnp.zeros_like(blocks[0])
    for option, block in zip(options, blocks, strict=True):  # a reduction would be another kernel
        free = 1.0 / jnp.maximum(block, 1.0)
        better = free * option.value > best
        best = jnp.where(better, free * option.value, best)
        x = jnp.where(better, free * option.x, x)
        y = jnp.where(better, free * option.y, y)
    return x, y


def keep_inside(battle: Battle, x: Array, y: Array) -> tuple[Array, Array]:
    """Move units out of walls."""
    stats, rectangle = battle.stats, battle.terrain.rectangle
    if rectangle is not None:
        left, right, bottom, top = rectangle
        size = stats.separation
        return jnp.clip(x, left + size, right - size), jnp.clip(y, bottom + size, top - size)
    for _ in range(2):  # in a corner, the first wall pushes towards the second
        room, away_x, away_y = nearest_wall(battle, x, y)
        short = jnp.maximum(stats.separation - room, 0.0)
        x, y = x + short * away_x, y + short * away_y
    return x, y


def nearest_wall(battle: Battle, x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Distance to the nearest wall, and the direction away from it."""
    if battle.terrain.rectangle is not None:
        left, right, bottom, top = battle.terrain.rectangle
        across, along = jnp.minimum(x - left, right - x), jnp.minimum(y - bottom, top - y)
        away_x = jnp.where(across > along, 0.0, jnp.where(x - left <= right - x, 1.0, -1.0))
        away_y = jnp.where(across <= along, 0.0, jnp.where(y - bottom <= top - y, 1.0, -1.0))
        return jnp.minimum(across, along), away_x, away_y
    layers, size, *_ = battle.walls.shape
    i, j = (jnp.clip((p * CLEARANCE_SAMPLES).astype(int), 0, size - 1) for p in (x, y))
    row = i * size + j
    if layers > 1:
        row = row + battle.stats.walks_cliffs.astype(np.int32) * size**2
    rows = jnp.asarray(battle.walls.reshape(-1, 3)).at[row].get(mode="promise_in_bounds")
    return rows[:, 0], rows[:, 1], rows[:, 2]
