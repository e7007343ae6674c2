"""Recorded battles of random teams, for the plain model of SMACv2."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import smacv2_plain as plain

from fp3o.envs.api import Observation
from fp3o.envs.smac.actions import FIRST_ATTACK
from fp3o.envs.smac.env import SmacState
from fp3o.envs.smac.maps import LAYOUTS
from fp3o.envs.smac.random_env import RandomTeamsEnv, random_teams_env
from fp3o.envs.smac.random_teams import RandomTeams

EPISODES, STEPS = 6, 24


class RandomRecord(NamedTuple):
    """Episodes `(b, t, ...)` in NumPy; there is one more state than steps."""

    env: RandomTeamsEnv
    states: SmacState
    observations: dict[str, Observation]
    reward: np.ndarray
    over: np.ndarray
    scripted: np.ndarray
    """Actions of the scripted team `focus` in every state."""

    def moment(self, episode: int, time: int) -> plain.PlainTeams:
        """A state for the plain model."""
        units, last, *_ = jax.tree.map(lambda x: x[episode, time], self.states)
        return plain_teams(self.env, units, last)


@cache
def record_random_teams(name: str) -> RandomRecord:
    """Random available actions, mostly attacks, of teams that start close to each other."""
    from fp3o.envs.smac.scripted import smac_baselines

    env, envs = random_teams_env(name, "paper"), [random_teams_env(name, x) for x in LAYOUTS]
    focus = next(each for each in smac_baselines(env) if each.name == "focus")

    def step(state: SmacState, key: Any) -> tuple[SmacState, Any]:
        logits = jnp.where(jnp.arange(env.observations.num_actions) < FIRST_ATTACK, 0.0, 2.0)
        available = env.observations.action_mask(state.units)
        action = jax.random.categorical(key, jnp.where(available, logits, -jnp.inf))
        new, reward, over, _ = env.step(state, action[:, None], key)
        return new, (new, reward, over)

    def simulate(key: Any) -> Any:
        state = env.reset(key)
        units = state.units
        near = units._replace(x=16 + (units.x - 16) / 2, y=16 + (units.y - 16) / 3)
        state = state._replace(units=near._replace(hp=0.4 * near.hp))
        keys = jax.random.split(key, STEPS)
        later, *ends = jax.lax.scan(step, state, keys)[1]
        states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, later)
        scripted = jax.vmap(lambda state: focus.act(state, key))(states)  # pyright: ignore
        return states, [jax.vmap(each.observe)(states) for each in envs], *ends, scripted

    found = jax.jit(jax.vmap(simulate))(jax.random.split(jax.random.key(1), EPISODES))
    states, observations, *rest = jax.tree.map(np.asarray, found)
    return RandomRecord(env, states, dict(zip(LAYOUTS, observations, strict=True)), *rest)


def plain_teams(env: RandomTeamsEnv, units: Any, last: Any) -> plain.PlainTeams:
    """The units of a state in the plain model."""
    battle = env.battle.of(units)
    teams, names = battle.map.teams, [battle.unit_types[kind] for kind in units.kind]
    assert isinstance(teams, RandomTeams)
    left = units.cooldown
    if units.energy is not None:
        left = np.where(np.array(names) == "medivac", units.energy, left)
    rows = np.stack([units.x, units.y, units.hp, units.shield, left], 1).tolist()
    bodies = [plain.Body(name, *row) for name, row in zip(names, rows, strict=True)]
    n = teams.num_allies
    return plain.PlainTeams(teams.race_name, bodies[:n], bodies[n:], [int(a) for a in last])
