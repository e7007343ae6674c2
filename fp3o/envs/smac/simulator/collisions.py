"""Collisions: units walk around each other, are pushed apart, and stay out of walls."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Geometry, Units
from fp3o.envs.smac.terrain import CLEARANCE_SAMPLES, MAP_SIZE

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

DEVIATION = 0.02
"""Largest random step sideways, as a share of the step. In mirrored formations many distances are
equal; so chance decides which unit is nearest, not the order of the units."""

PREFERENCE = np.array([1.0, 0.8, 0.6, 0.4, 0.3], np.float32)
"""Value of a step in each of these directions; the free part of a step counts."""


def avoid_others(
    battle: Battle,
    geometry: Geometry,
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
    stats, (dx, dy, distance, inverse), (alive, walks, arrives) = battle.stats, geometry, motion
    # The indices break ties between units at exactly the same position.
    index = np.arange(battle.num_units, dtype=np.float32)
    dx = dx + 1e-4 * (index[None] - index[:, None])
    high = stats.walks_cliffs  # units that step over cliffs also step over the others
    solid = ((high[:, None] == high[None]) & (index[:, None] != index[None])).astype(np.float32)
    touch = stats.separation[:, None] + stats.separation[None]
    near = solid * inverse

    # Of the room between two walking units, each takes half.
    weight = jnp.where(alive, jnp.where(walks, 2.0, 1.0), 0.0)
    closeness = near * weight / jnp.maximum(distance - SOLID * touch, 1e-4)
    aside = DEVIATION * noise
    step = step[0] - aside * step[1], step[1] + aside * step[0]
    step = jnp.where(walks, step[0], 0.0), jnp.where(walks, step[1], 0.0)
    steps, kept = _possible_steps(battle, units, step)
    # Units that have arrived go straight or stop; otherwise all would press towards one point.
    value = jnp.where(arrives, np.eye(1, len(TURNS)).T, PREFERENCE[:, None] * kept)
    step_x, step_y = _free_step(closeness * dx, closeness * dy, steps, value)

    mobility = jnp.where(walks, 1.0, STANDING_MOBILITY) * (stats.speed > 0)  # not buildings
    if_walking, if_standing = (alive / (m + mobility) for m in (1.0, STANDING_MOBILITY))
    share = jnp.where(walks[:, None], if_walking, if_standing * ~battle.opponents)
    force = share * jnp.maximum(touch - distance, 0.0) * near
    yields = RELAXATION * mobility * alive
    return step_x - yields * (force * dx).sum(1), step_y - yields * (force * dy).sum(1)


def _possible_steps(
    battle: Battle, units: Units, step: tuple[Array, Array]
) -> tuple[tuple[Array, Array], Array]:
    """Steps in all directions `(k, u)` as walls allow them, and the share that is left of each.

    Where a wall leaves no room on the side on which a unit passes others, it passes on the other.
    """
    size, side = battle.stats.separation, jnp.asarray(battle.passing_sides)
    room, away_x, away_y = nearest_wall(battle, units.x, units.y)
    towards = side * (step[1] * away_x - step[0] * away_y) > 0.5 * battle.stats.speed
    side = jnp.where(towards & (room < 3.0 * size), -side, side)
    cos, sin = jnp.asarray(np.cos(TURNS))[:, None], np.sin(TURNS)[:, None] * side
    x, y = cos * step[0] - sin * step[1], cos * step[1] + sin * step[0]
    inside = jnp.maximum(-(x * away_x + y * away_y) - jnp.maximum(room - size, 0.0), 0.0)
    free_x, free_y = x + inside * away_x, y + inside * away_y
    kept = (free_x * x + free_y * y) / jnp.maximum(x * x + y * y, 1e-9)
    return (free_x, free_y), kept


def _free_step(
    dx: Array, dy: Array, steps: tuple[Array, Array], value: Array
) -> tuple[Array, Array]:
    """The step with the highest value, as far as nobody is in the way.

    `dx` and `dy` lead to the other units and are divided by the room up to them.
    """
    step_x, step_y = steps
    # 4 where there is room for a quarter of the step, 1/4 where there is room for four. All maxima
    # in one reduction, so that the pairs are read once.
    pairs = tuple(x[:, None] * dx + y[:, None] * dy for x, y in zip(*steps, strict=True))
    zeros = (np.float32(0),) * len(pairs)
    block = jnp.stack(
        jax.lax.reduce(pairs, zeros, lambda *two: tuple(map(jnp.maximum, *two)), (1,))
    )
    pace = 1.0 / jnp.maximum(block, 1.0)
    chosen = (value * pace).argmax(0)
    pace = jnp.where(chosen == np.arange(len(TURNS))[:, None], pace, 0.0)
    return (pace * step_x).sum(0), (pace * step_y).sum(0)


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
        rooms = jnp.stack([x - left, right - x, y - bottom, top - y])
        away = jnp.asarray([(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)])[rooms.argmin(0)]
        return rooms.min(0), away[:, 0], away[:, 1]
    low, high = battle.walls
    i, j = (
        jnp.clip((p * CLEARANCE_SAMPLES).astype(int), 0, MAP_SIZE * CLEARANCE_SAMPLES - 1)
        for p in (x, y)
    )
    wall = jnp.asarray(low)[:, i, j]
    if high is not None:
        wall = jnp.where(battle.stats.walks_cliffs.astype(bool), jnp.asarray(high)[:, i, j], wall)
    return wall[0], wall[1], wall[2]
