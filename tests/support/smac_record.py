"""Recorded episodes of SMAC battles, in both layouts of observations."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import smac_plain as plain
from optimised import optimised_jit
from smac_openings import FREE, Opening, compared_env, endings, initial, on_the_edge, scattered

from fp3o.envs.api import Observation
from fp3o.envs.smac.env import SmacState
from fp3o.envs.smac.maps import LAYOUTS, Map

STEPS = 12


class Record(NamedTuple):
    """Episodes `(b, t, ...)` in NumPy; there is one more state than steps."""

    states: SmacState
    observations: dict[str, Observation]
    reward: np.ndarray
    over: np.ndarray
    late: np.ndarray

    def moment(self, roster: Map, episode: int, time: int) -> plain.PlainBattle:
        """A state for the plain model."""
        units, last, _ = jax.tree.map(lambda x: x[episode, time], self.states)
        return plain.PlainBattle(roster, units, last)


@cache
def record(name: str) -> Record:
    """Random available actions, mostly attacks, from initial and constructed states."""
    env, rng = compared_env(name, "paper"), np.random.default_rng(7)
    openings = [opening for opening, *_ in endings(env).values()]
    openings += [Opening(initial(env)), Opening(on_the_edge(env))]
    openings += [Opening(scattered(env, rng, width)) for width in (4.0, 8.0, 32.0)]
    envs = [compared_env(name, layout) for layout in LAYOUTS]
    n = env.battle.num_allies

    def step(state: SmacState, given: tuple[Any, Any]) -> tuple[SmacState, Any]:
        key, forced = given
        logits = jnp.where(jnp.arange(env.observations.num_actions) < plain.FIRST_ATTACK, 0.0, 2.0)
        action_mask = env.observations.action_mask(state.units)
        action = jax.random.categorical(key, jnp.where(action_mask, logits, -jnp.inf))
        action = jnp.where((forced == FREE) | action_mask[:, 0], action, forced)
        new, *ends = env.step(state, action[:, None], key)
        return new, (new, *ends)

    def simulate(state: SmacState, forced: jax.Array, keys: jax.Array) -> Any:
        later, *ends = jax.lax.scan(step, state, (keys, forced))[1]
        states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, later)
        return states, [jax.vmap(each.observe)(states) for each in envs], *ends

    forced = np.full((len(openings), STEPS, n), FREE)
    forced[:, 0] = [np.broadcast_to(opening.first, n) for opening in openings]
    batch = jax.tree.map(lambda *x: np.stack(x), *[opening.state for opening in openings])
    keys = jax.random.split(jax.random.key(3), forced.shape[:2])
    found = optimised_jit(jax.vmap(simulate))(batch, jnp.asarray(forced), keys)
    states, observations, *ends = jax.tree.map(np.asarray, found)
    return Record(states, dict(zip(LAYOUTS, observations, strict=True)), *ends)


def opening_at(name: str, number: int) -> int:
    """Index of an opening after the endings: 0 initial, 1 at the edge, 2 to 4 scattered."""
    return len(endings(compared_env(name, "paper"))) + number
