"""Where units walk: towards their target or destination, around walls."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import ATTACK_MOVE, MOVE, Orders, Targets, Units
from fp3o.envs.smac.terrain import COMPASS, DIRECT, MAP_SIZE

CROWD_AREA = 2.0
"""Area that a side occupies at its destination, relative to the squares of its units."""


def desired_step(
    battle: Battle, units: Units, orders: Orders, targets: Targets
) -> tuple[Array, Array, Array]:
    """Every unit's step of this loop if nothing blocks it, and whether it walks at all."""
    stats = battle.stats
    ordered = (orders.kind == MOVE) | ((orders.kind == ATTACK_MOVE) & ~targets.exists)
    to_x = jnp.where(targets.exists, targets.x, orders.x) - units.x
    to_y = jnp.where(targets.exists, targets.y, orders.y) - units.y
    walks = jnp.where(targets.exists, targets.gap > stats.weapon_range, ordered)
    if battle.terrain.routes is not None:
        to_x, to_y = _route_around_walls(battle, units, to_x, to_y)
    length = jnp.sqrt(to_x * to_x + to_y * to_y)
    stride = jnp.minimum(stats.speed, length) / jnp.maximum(length, 1e-6)
    return to_x * stride, to_y * stride, walks & (length > 0.05)


def near_destination(battle: Battle, units: Units, orders: Orders) -> Bool[Array, " u"]:
    """Whether a unit is within the area that its side fills around the destination."""
    n, square = battle.num_allies, battle.stats.separation**2
    sides = np.arange(battle.num_units) < n
    area = CROWD_AREA * jnp.where(sides, square[:n].sum(), square[n:].sum())
    return (orders.x - units.x) ** 2 + (orders.y - units.y) ** 2 < area


def _route_around_walls(
    battle: Battle, units: Units, to_x: Array, to_y: Array
) -> tuple[Array, Array]:
    """The vector to the next cell of the shortest route, where no straight line leads there."""
    routes = jnp.asarray(battle.terrain.routes).ravel()
    here = _cell(units.x) * MAP_SIZE + _cell(units.y)
    there = _cell(units.x + to_x) * MAP_SIZE + _cell(units.y + to_y)
    direction = routes.at[here * MAP_SIZE**2 + there].get(mode="promise_in_bounds")
    step = jnp.asarray(np.concatenate([COMPASS, [(0, 0)]]), jnp.float32)[direction]
    direct = (direction == DIRECT) | battle.stats.walks_cliffs.astype(bool)
    cell_x = jnp.floor(units.x) + 0.5 + step[:, 0] - units.x
    cell_y = jnp.floor(units.y) + 0.5 + step[:, 1] - units.y
    return jnp.where(direct, to_x, cell_x), jnp.where(direct, to_y, cell_y)


def _cell(x: Array) -> Array:
    return jnp.clip(x.astype(int), 0, MAP_SIZE - 1)
