"""Collisions: units walk around each other, are pushed apart, and stay out of walls."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Geometry
from fp3o.envs.smac.terrain import CLEARANCE_SAMPLES, MAP_SIZE

STANDING_MOBILITY = 0.05
"""How easily a standing unit is pushed by its own side, relative to a walking one."""

SOLID = 0.95
"""Share of the sum of their separation radii to which a unit may approach another one."""

RELAXATION = 0.5
"""Share of an overlap that is resolved in a loop; not all of it, so that crowds come to rest."""

TURNS = np.radians(np.array([0, 45, 90, 130, -60], np.float32))
"""Directions in which a unit can walk, relative to the one in which it wants to: mostly to the side
on which it passes others. Beyond 120 degrees, because it may stand between two units ahead."""

PREFERENCE = np.array([1.0, 0.8, 0.6, 0.4, 0.3], np.float32)
"""Value of a step in each of these directions; the free part of a step counts."""


def avoid_others(
    battle: Battle,
    geometry: Geometry,
    step: tuple[Array, Array],
    motion: tuple[Array, Array, Array],
) -> tuple[Array, Array]:
    """Displacements of all units in this loop: steps between the others, and pushes.

    `motion` are masks of the units that are alive, walk, and have arrived. Units that overlap
    nevertheless are pushed apart; a standing one yields little to its own side, and not to
    opponents.
    """
    stats, (dx, dy, distance, _), (alive, walks, _) = battle.stats, geometry, motion
    # The indices break ties between units at exactly the same position.
    index = np.arange(len(battle.units), dtype=np.float32)
    dx = dx + 1e-4 * (index[None] - index[:, None])
    high = stats.walks_cliffs  # units that step over cliffs also step over the others
    solid = (high[:, None] == high[None]) * (1.0 - np.eye(len(battle.units)))
    touch = stats.separation[:, None] + stats.separation[None]
    near = solid * alive[None] / jnp.maximum(distance, 1e-3)
    # Of the room between two walking units, each takes half.
    closeness = near * jnp.where(walks, 2.0, 1.0) / jnp.maximum(distance - SOLID * touch, 1e-4)
    step_x, step_y = _free_step(closeness * dx, closeness * dy, step, motion)

    mobility = jnp.where(walks, 1.0, STANDING_MOBILITY) * (stats.speed > 0)  # not buildings
    share = mobility[:, None] / jnp.maximum(mobility[:, None] + mobility[None], 1e-9)
    share = RELAXATION * share * alive[:, None] * (~battle.opponents | walks[:, None])
    force = share * jnp.maximum(touch - distance, 0.0) * near
    return step_x - (force * dx).sum(1), step_y - (force * dy).sum(1)


def _free_step(
    dx: Array,
    dy: Array,
    step: tuple[Array, Array],
    motion: tuple[Array, Array, Array],
) -> tuple[Array, Array]:
    """The step in the best direction, as far as nobody is in the way.

    `dx` and `dy` lead to the other units and are divided by the room up to them. A unit that has
    arrived at the destination of its side goes straight; otherwise all would press towards it.
    """
    (step_x, step_y), (_, walks, arrives) = step, motion
    # Units with even and odd numbers pass others on different sides, and always on the same one:
    # a unit that chose anew in every loop would walk to and fro behind a row of others.
    side = np.where(np.arange(len(walks)) % 2, -1.0, 1.0)
    ahead = step_x[:, None] * dx + step_y[:, None] * dy
    left = (side * step_x)[:, None] * dy - (side * step_y)[:, None] * dx
    # 4 where there is room for a quarter of the step, 1/4 where there is room for four.
    block = jnp.stack([(np.cos(a) * ahead + np.sin(a) * left).max(1) for a in TURNS])
    pace = 1.0 / jnp.maximum(block, 1.0)
    chosen = jnp.where(arrives, 0, (PREFERENCE[:, None] * pace).argmax(0))
    pace = jnp.where(walks & (chosen == np.arange(len(TURNS))[:, None]), pace, 0.0)
    along = (np.cos(TURNS)[:, None] * pace).sum(0)
    aside = (np.sin(TURNS)[:, None] * pace).sum(0) * side
    return along * step_x - aside * step_y, along * step_y + aside * step_x


def keep_inside(battle: Battle, x: Array, y: Array) -> tuple[Array, Array]:
    """Move units out of walls."""
    stats, rectangle = battle.stats, battle.terrain.rectangle
    if rectangle is not None:
        left, right, bottom, top = rectangle
        size = stats.separation
        return jnp.clip(x, left + size, right - size), jnp.clip(y, bottom + size, top - size)
    low, high = battle.walls
    over_cliffs = stats.walks_cliffs.astype(bool)
    for _ in range(2):  # in a corner, the first wall pushes towards the second
        i, j = (
            jnp.clip((p * CLEARANCE_SAMPLES).astype(int), 0, MAP_SIZE * CLEARANCE_SAMPLES - 1)
            for p in (x, y)
        )
        wall = jnp.asarray(low)[:, i, j]
        if high is not None:
            wall = jnp.where(over_cliffs, jnp.asarray(high)[:, i, j], wall)
        short = jnp.maximum(stats.separation - wall[0], 0.0)
        x, y = x + short * wall[1], y + short * wall[2]
    return x, y
