"""Initial and constructed states of SMAC battles, with rewards and ends computed by hand."""

from functools import cache, cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
import smac_plain as plain

from fp3o.envs.smac.env import SmacEnv, SmacState, smac_env
from fp3o.envs.smac.maps import MAPS
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.terrain import Terrain, terrain

EPSILON = 1 / 4096
"""The smallest distance that the game distinguishes."""
FREE = -1
"""Instead of an action: any available one."""
STOP = 1


class OpenTerrain(Terrain):
    """Terrain on which units walk over walls, so that no routes have to be computed."""

    @cached_property
    def routes(self) -> np.ndarray | None:
        """None, as on open ground."""
        return None

    @cached_property
    def rectangle(self) -> tuple[float, float, float, float] | None:
        """The whole map."""
        return (0.0, 32.0, 0.0, 32.0)


class OpenBattle(Battle):
    """A battle on it. Action masks still follow from the cells of the map."""

    @cached_property
    def terrain(self) -> Terrain:
        """The terrain."""
        return OpenTerrain(terrain(self.map.terrain).level)


class OpenEnv(SmacEnv):
    """A map with walls, without the computation of routes."""

    @cached_property
    def battle(self) -> Battle:
        """The static description of the battle."""
        return open_battle(self.name)


@cache
def open_battle(name: str) -> Battle:
    """An open battle, the same for both layouts."""
    return OpenBattle(name, MAPS[name])


@cache
def compared_env(name: str, layout: str) -> SmacEnv:
    """The environment whose observations are compared."""
    walls = terrain(MAPS[name].terrain).rectangle is None
    return OpenEnv(name, layout) if walls else smac_env(name, layout)


class Opening(NamedTuple):
    """An initial state and the first actions."""

    state: SmacState
    first: Any = FREE


@cache
def initial(env: SmacEnv) -> SmacState:
    """The initial state, in NumPy."""
    return jax.tree.map(np.array, env.reset(jax.random.key(0)))


def put(state: SmacState, time: int = 0, **values: Any) -> SmacState:
    """Change the state of the units; dead units have no shield."""
    new = {name: np.asarray(x, getattr(state.units, name).dtype) for name, x in values.items()}
    units = state.units._replace(**new)
    units = units._replace(shield=np.where(units.hp > 0, units.shield, np.float32(0)))
    return state._replace(units=units, time=np.array(time, np.int32))


def scattered(env: SmacEnv, rng: np.random.Generator, width: float) -> SmacState:
    """Units around one next to a wall, damaged and on cooldown; a quarter of them is dead."""
    fight = env.battle
    count, free = len(fight.units), fight.terrain.walkable
    beside = [np.roll(np.pad(free, 1), way, (0, 1))[1:-1, 1:-1] for way in plain.MOVES]
    inner = np.logical_and.reduce(beside)
    cells, shore = np.argwhere(free), np.argwhere(free & ~inner)
    around = shore[rng.integers(len(shore))]
    cells = cells[(np.abs(cells - around) < width).all(1)]
    place = cells[rng.integers(len(cells), size=count)] + rng.integers(8, size=(count, 2)) / 8
    place[0] = around + 0.5
    share = rng.uniform(0.01, 1.0, count) * (rng.random(count) > 0.25)
    share[0] = 0.35
    last = rng.integers(-1, env.observations.num_actions, fight.num_allies)
    new = put(
        initial(env), x=place[:, 0], y=place[:, 1], hp=fight.stats.hp * share,
        shield=fight.stats.shield * rng.uniform(0.0, 1.0, count),
        cooldown=rng.uniform(0.0, 41.7, count),
    )  # fmt: skip
    return new._replace(last_actions=last.astype(np.int32))


def on_the_edge(env: SmacEnv) -> SmacState:
    """Enemies at distances around 6 and 9 from agent 0, agent 1 at 9, all with full health."""
    fresh, n = initial(env), env.battle.num_allies
    x, y = np.array(fresh.units.x), np.array(fresh.units.y)
    x[0], y[0], x[1], y[1] = 13, 16, 22, 16
    away = [(6, 0), (0, 6), (6 + EPSILON, 0), (-9, 0), (EPSILON - 9, 0), (0, 6 - EPSILON)]
    for number, (right, up) in enumerate(away):
        x[n + number], y[n + number] = 13 + right, 16 + up
    return put(fresh, x=x, y=y)


def duel(env: SmacEnv, ours: float, theirs: float, apart: float, time: int = 0) -> SmacState:
    """All units are dead except for the first of each side, with the given health."""
    fresh, n = initial(env), env.battle.num_allies
    hp, x, y = (np.zeros_like(fresh.units.x) for _ in range(3))
    hp[[0, n]], x[:], y[[0, n]] = (ours, theirs), 16, (12, 12 + apart)
    return put(fresh, time, x=x, y=y, hp=hp)


def endings(env: SmacEnv) -> dict[str, tuple[Opening, float, bool, bool]]:
    """By hand: an opening, the reward of its first step, terminated, truncated."""
    limit, n, count = env.battle.map.max_episode_steps, env.battle.num_allies, len(env.battle.units)
    shoot = np.full(n, FREE)
    shoot[0] = 6
    if env.name == "5m_vs_6m":
        win, unit, last = 1.0 + 10.0 + 200.0, 530 / 20, limit - 1
        near, lost = duel(env, 45.0, 1.0, 4.0), duel(env, 1.0, 45.0, 4.0)
        return {
            "victory": (Opening(near, shoot), win / unit, True, False),
            "victory in the last step": (Opening(put(near, last), shoot), win / unit, True, False),
            "defeat": (Opening(lost, STOP), 0.0, True, False),
            "out of time": (Opening(put(initial(env), last), STOP), 0.0, False, True),
            "a step before": (Opening(put(initial(env), last - 1), STOP), 0.0, False, False),
            "a wound": (Opening(duel(env, 45.0, 45.0, 4.0), shoot), 6.0 / unit, False, False),
        }
    if env.name == "bane_vs_bane":
        hp = np.where(np.arange(count) < n, env.battle.stats.hp, 20.0)
        both = duel(env, 30.0, 20.0, 0.9, limit - 1)
        healed = (count - n) * 0.2734 / 2
        return {
            "draw": (Opening(both, shoot), (20.0 + 10.0) / 63, True, False),
            "healing": (Opening(put(initial(env), hp=hp), STOP), healed / 63, False, False),
        }
    if env.name == "3s5z":
        shield, rest = np.full(count, 30.0), np.full(count, 999.0)
        back = Opening(put(initial(env), shield=shield, since_hit=rest), STOP)
        return {"shields": (back, (count - n) * 2.0 / 2 / 75.5, False, False)}
    return {}
