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
"""Share of an overlap that is resolved in a loop; less, so that crowds come to rest."""

TURNS = np.radians([0, 45, -45, 90, -90])
"""Directions in which a unit can walk, relative to the one in which it wants to."""

PREFERENCE = np.array([1.0, 0.7, 0.7, 0.3, 0.3])
"""Value of a step in each of these directions."""


def avoid_others(
    battle: Battle,
    geometry: Geometry,
    step: tuple[Array, Array],
    motion: tuple[Array, Array, Array],
    noise: Array,
) -> tuple[Array, Array]:
    """Displacements of all units in this loop: steps between the others, and pushes.

    `motion` are masks of the units that are alive, walk, and have arrived. Units that overlap
    nevertheless are pushed apart; a standing one yields little to its own side, and not to
    opponents.
    """
    stats, (dx, dy, distance), (alive, walks, _) = battle.stats, geometry, motion
    # The indices break ties between units at exactly the same position.
    index = np.arange(len(battle.units), dtype=np.float32)
    dx = dx + 1e-4 * (index[None] - index[:, None])
    high = stats.walks_cliffs  # units that step over cliffs also step over the others
    solid = (high[:, None] == high[None]) * (1.0 - np.eye(len(battle.units)))
    touch = stats.separation[:, None] + stats.separation[None]
    near = solid * alive[None] / jnp.maximum(distance, 1e-3)
    # Of the room between two walking units, each takes half.
    closeness = near * jnp.where(walks, 2.0, 1.0) / jnp.maximum(distance - SOLID * touch, 1e-4)
    step_x, step_y = _free_step(closeness * dx, closeness * dy, step, motion, noise)

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
    noise: Array,
) -> tuple[Array, Array]:
    """The step in the best direction, as far as nobody is in the way.

    `dx` and `dy` lead to the other units and are divided by the room up to them. A unit that has
    arrived at the destination of its side goes straight; otherwise all would press towards it.
    """
    (step_x, step_y), (_, walks, arrives) = step, motion
    ahead = step_x[:, None] * dx + step_y[:, None] * dy
    left = step_x[:, None] * dy - step_y[:, None] * dx
    # 4 where the room is a quarter of the step, 1/4 where it is four steps.
    block = jnp.stack([(np.cos(a) * ahead + np.sin(a) * left).max(1) for a in TURNS])
    pace = 1.0 / jnp.maximum(block, 1.0)
    # Among equal directions the one with more space is taken; the noise decides ties.
    score = PREFERENCE[:, None] * pace - 1e-3 * jnp.minimum(block, 1.0)
    score = score + 1e-6 * noise * np.sign(TURNS)[:, None]
    chosen = jnp.where(arrives, 0, score.argmax(0))
    pace = jnp.where(walks & (chosen == np.arange(len(TURNS))[:, None]), pace, 0.0)
    along, aside = np.cos(TURNS) @ pace, np.sin(TURNS) @ pace
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
