"""Collisions: overlapping units push each other apart, and walls push units back."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Geometry
from fp3o.envs.smac.terrain import CLEARANCE_SAMPLES, MAP_SIZE

STANDING_MOBILITY = 0.05
"""How easily a standing unit is pushed, relative to a walking one."""

OVERLAP_SLOWDOWN = 4.0
"""A unit that overlaps another one ahead by a share of 1 / OVERLAP_SLOWDOWN stops."""

SIDESTEP = 0.7
"""Share of a push that moves a walking unit sideways past the unit it runs into."""


def push_apart(
    battle: Battle,
    geometry: Geometry,
    step: tuple[Array, Array],
    motion: tuple[Array, Array, Array],
    noise: Array,
) -> tuple[Array, Array, Array]:
    """Displacements of overlapping units, and the share of its step each unit can take.

    `motion` are masks of the units that are alive, walk, and have arrived. Standing units yield
    little to walking ones. A unit that walks into another slows down, and one that arrives at the
    destination of its side stops there; otherwise all units would press towards one point.
    """
    stats, (dx, dy, distance), (alive, walks, arrives) = battle.stats, geometry, motion
    # The indices break ties between units at exactly the same position.
    index = np.arange(len(battle.units), dtype=np.float32)
    dx = dx + 1e-4 * (index[None] - index[:, None])
    high = stats.walks_cliffs  # units that step over cliffs also step over the others
    solid = (high[:, None] == high[None]) * (1.0 - np.eye(len(battle.units)))
    touch = stats.separation[:, None] + stats.separation[None]
    force = jnp.maximum(touch - distance, 0.0) * solid * alive[None] / jnp.maximum(distance, 1e-3)
    ahead = (force / touch * (step[0][:, None] * dx + step[1][:, None] * dy)).max(1)
    pace = 1.0 - jnp.minimum(OVERLAP_SLOWDOWN * ahead / np.maximum(stats.speed, 1e-6), 1.0)
    pace = jnp.where(walks & ~(arrives & (ahead > 0)), pace, 0.0)
    mobility = jnp.where(walks, 1.0, STANDING_MOBILITY) * (stats.speed > 0)  # not buildings
    force = force * (mobility[:, None] / jnp.maximum(mobility[:, None] + mobility[None], 1e-9))
    # A unit passes another one on the side with more space; the noise decides ties.
    left = step[0][:, None] * dy - step[1][:, None] * dx + 1e-4 * noise[:, None]
    aside = SIDESTEP * jnp.sign(left) * (walks & ~arrives)[:, None]
    push_x, push_y = (force * (aside * dy - dx)).sum(1), (-force * (aside * dx + dy)).sum(1)
    return push_x, push_y, pace


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
