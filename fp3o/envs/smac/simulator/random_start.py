"""Teams and initial positions of an episode, drawn at random as in SMACv2."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.smac.random_teams import SURROUNDED, RandomTeams
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Units
from fp3o.envs.smac.terrain import MAP_SIZE

TEAM_TRIES = 8
"""Teams to choose from, so that one of them is allowed. Of teams of one unit, which fail most
often, one in 100 million is not."""
BUFFER = 1.0
"""Cells on either side of the middle where no reflected ally starts."""
CENTRE_OFFSET = 2.0
"""Along x and y, the smallest distance of a surrounding group from the centre."""
DIAGONALS = np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)], np.float32)
"""Directions from the centre in which surrounding groups start."""
PACKING = 0.6
"""Share of the area of a group that its units cover."""
GOLDEN_ANGLE = np.float32(np.pi * (3 - np.sqrt(5)))


class Start(NamedTuple):
    """Where units start, before those of a group are spread around their point."""

    x: Float[Array, " u"]
    y: Float[Array, " u"]
    group: Int[Array, " u"]
    """Units of the same number start at the same point; -1: alone."""


def draw_units(battle: Battle, key: PRNGKeyArray) -> Units:
    """The units of a new episode: their types, and positions either surrounded or reflected."""
    teams = battle.map.teams
    assert teams is not None
    keys = jax.random.split(key, 4)
    kind = draw_types(teams, keys[0])
    surrounds = jax.random.uniform(keys[1]) < SURROUNDED
    starts = surrounded(teams, keys[2]), reflected(teams, keys[3])
    start = jax.tree.map(lambda a, b: jnp.where(surrounds, a, b), *starts)
    x, y = spread(start, jnp.asarray(battle.type_stats.separation)[kind])
    order = sorted_allies(teams, kind, x, y)
    kind, x, y = kind[order], x[order], y[order]
    return battle.with_types(kind).units_at(x, y)


def draw_types(teams: RandomTeams, key: PRNGKeyArray) -> Int[Array, " u"]:
    """Types of all units: enemies equal the allies, and further enemies are drawn by themselves."""
    ours, more = jax.random.split(key)
    allies = _draw_team(teams, teams.num_allies, ours)
    further = max(teams.num_enemies - teams.num_allies, 0)
    extra = [_draw_team(teams, further, more)] if further else []
    return jnp.concatenate([allies, allies[: teams.num_enemies], *extra])


def _draw_team(teams: RandomTeams, count: int, key: PRNGKeyArray) -> Int[Array, " n"]:
    """A team that does not consist of exceptional types only."""
    types = teams.race.unit_types
    alone = np.array([name in teams.race.not_alone for name in types])
    tries = jax.random.choice(key, len(types), (TEAM_TRIES, count), p=np.array(teams.race.weights))
    allowed = ~jnp.asarray(alone)[tries].all(1)
    return tries[allowed.argmax()].astype(jnp.int32)


def reflected(teams: RandomTeams, key: PRNGKeyArray) -> Start:
    """Allies anywhere on the left, enemies as their mirror image; further ones on the right."""
    n, enemies, middle = teams.num_allies, teams.num_enemies, MAP_SIZE / 2
    place = jax.random.uniform(key, (2, max(n, enemies)))
    y = place[1] * MAP_SIZE
    ours = place[0, :n] * (middle - BUFFER)
    further = middle + place[0, n:] * middle
    theirs = jnp.concatenate([MAP_SIZE - ours[:enemies], further])
    nobody = jnp.full(n + enemies, -1, jnp.int32)
    return Start(jnp.concatenate([ours, theirs]), jnp.concatenate([y[:n], y[:enemies]]), nobody)


def surrounded(teams: RandomTeams, key: PRNGKeyArray) -> Start:
    """Allies in the centre; enemies in one to four groups, anywhere on different diagonals."""
    n, middle, keys = teams.num_allies, MAP_SIZE / 2, jax.random.split(key, 4)
    count = jax.random.randint(keys[0], (), 1, 5)
    group = jnp.floor(jax.random.uniform(keys[1], (teams.num_enemies,)) * count).astype(jnp.int32)
    group = jnp.sort(group)
    far = jax.random.uniform(keys[2], (4,), minval=CENTRE_OFFSET, maxval=middle)
    points = middle + far[:, None] * jax.random.permutation(keys[3], DIAGONALS)
    points = jnp.concatenate([jnp.full((1, 2), middle), points])
    group = jnp.concatenate([jnp.zeros(n, jnp.int32), 1 + group])
    x, y = points[group].T
    return Start(x, y, group)


def spread(start: Start, size: Float[Array, " u"]) -> tuple[Array, Array]:
    """Positions: the units of a group in a spiral, with space for each, inside the map.

    Units that start alone may overlap; they are pushed apart when the battle begins.
    """
    index = np.arange(len(size))
    together = (start.group[:, None] == start.group[None]) & (start.group >= 0)
    area = jnp.where(together, size**2, 0.0) / PACKING
    inner = 0.5 * (index[None] == index[:, None]) + (index[None] < index[:, None])
    away = jnp.sqrt((inner * area).sum(1))
    around = jnp.maximum(jnp.sqrt(area.sum(1)), size)
    x, y = (jnp.clip(p, around, MAP_SIZE - around) for p in (start.x, start.y))
    angle = GOLDEN_ANGLE * index
    x, y = x + away * np.cos(angle), y + away * np.sin(angle)
    return jnp.clip(x, size, MAP_SIZE - size), jnp.clip(y, size, MAP_SIZE - size)


def sorted_allies(teams: RandomTeams, kind: Array, x: Array, y: Array) -> Int[Array, " u"]:
    """Indices of all units, allies by type, then x, then y, as SMACv2 sorts its agents."""
    types, n = teams.race.unit_types, teams.num_allies
    # SMACv2's unit types are numbered alphabetically.
    rank = jnp.asarray([sorted(types).index(name) for name in types])[kind]
    allies = jnp.lexsort((y[:n], x[:n], rank[:n]))
    return jnp.concatenate([allies, jnp.arange(n, len(kind))])
