"""The actions of SMAC, and which of them are available to an agent."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Units
from fp3o.envs.smac.terrain import MAP_SIZE
from fp3o.envs.smac.units import SHOOT_RANGE, SIGHT_RANGE

FIRST_MOVE = 2
"""Index of the first move. Action 0 does nothing, for dead agents; action 1 stops."""

MOVE_DIRECTIONS = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])
"""North, south, east, west."""

FIRST_ATTACK = FIRST_MOVE + len(MOVE_DIRECTIONS)
"""Index of the attack on the first enemy."""


def num_actions(battle: Battle) -> int:
    """Number of actions per agent; healers have one per ally, all others one per enemy."""
    enemies = battle.num_units - battle.num_allies
    return FIRST_ATTACK + (max(enemies, battle.num_allies) if _heals_allies(battle) else enemies)


def smac_action_names(battle: Battle) -> tuple[str, ...]:
    """The meanings of an agent's actions; healers of random teams target allies."""
    verb = "target" if _heals_allies(battle) else "attack"
    attacks = tuple(f"{verb} {k}" for k in range(num_actions(battle) - FIRST_ATTACK))
    return ("no-op", "stop", "north", "south", "east", "west", *attacks)


def ranges(battle: Battle) -> tuple[Any, Any]:
    """Distances within which agents observe units and may attack: equal for all, or `(a, 1)`."""
    if battle.map.teams is None:
        return SIGHT_RANGE, SHOOT_RANGE
    stats, n = battle.stats, battle.num_allies
    return stats.sight[:n, None], stats.attack_range[:n, None]


def distances(battle: Battle, units: Units) -> Float[Array, "a u"]:
    """Distances from every agent to all units, centre to centre."""
    n = battle.num_allies
    dx, dy = units.x[None] - units.x[:n, None], units.y[None] - units.y[:n, None]
    return jnp.sqrt(dx * dx + dy * dy)


def available_actions(battle: Battle, units: Units) -> Bool[Array, "a c"]:
    """Available actions of every agent."""
    n, free = battle.num_allies, battle.terrain.walkable
    x, y, alive = units.x[:n, None], units.y[:n, None], units.hp > 0
    to_x, to_y = (
        jnp.trunc(p + step).astype(int)
        for p, step in ((x, MOVE_DIRECTIONS[:, 0]), (y, MOVE_DIRECTIONS[:, 1]))
    )
    inside = (to_x >= 0) & (to_x < MAP_SIZE) & (to_y >= 0) & (to_y < MAP_SIZE)
    path = jnp.asarray(free)[jnp.clip(to_x, 0, MAP_SIZE - 1), jnp.clip(to_y, 0, MAP_SIZE - 1)]
    in_range = (distances(battle, units) <= ranges(battle)[1]) & alive[None]
    lives = alive[:n, None]
    attacks = lives & targets(battle, in_range, False)
    return jnp.concatenate([~lives, lives, lives & inside & path, attacks], 1)


def targets(battle: Battle, pairs: Array, fill: Any) -> Array:
    """Entries `(a, u)` of the targets of attacks, by their index in actions.

    They are the enemies, and for healers the allies that do not heal themselves.
    """
    n = battle.num_allies
    enemies = pairs[:, n:]
    if not _heals_allies(battle):
        return enemies
    width, healer = num_actions(battle) - FIRST_ATTACK, battle.stats.heal > 0
    wide = lambda part: jnp.pad(  # noqa: E731
        part, ((0, 0), (0, width - part.shape[1])), constant_values=fill
    )
    patients = jnp.where(healer[None, :n], fill, pairs[:, :n])
    return jnp.where(healer[:n, None], wide(patients), wide(enemies))


def _heals_allies(battle: Battle) -> bool:
    """Whether there are agents that heal allies instead of attacking enemies."""
    return battle.heals and battle.map.teams is not None
