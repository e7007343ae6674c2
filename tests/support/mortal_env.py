"""A small task in which agents die one after another, with a graph that changes."""

from typing import Any

import jax
import jax.numpy as jnp

from fp3o.envs.api import Env, Observation
from fp3o.spec import Discrete, EnvSpec

AGENTS, LENGTH = 3, 4


def near(obs: Any, state: Any) -> Any:
    """Agents are neighbours if their positions differ by less than 1."""
    position = obs[..., 1]
    return abs(position[..., :, None] - position[..., None, :]) < 1.0


class MortalEnv(Env):
    """Agent 0 dies after the first step, agent 1 after the second; a time limit ends episodes.

    Agents at random positions observe the time and their position; choosing 1 is rewarded.
    """

    spec = EnvSpec(
        "mortal", Discrete(((2,),) * AGENTS), 2, 3, (0, 0, 1), truncates=True, adjacency=near
    )
    max_episode_steps = LENGTH

    def reset(self, key: Any) -> Any:
        return jax.random.uniform(key, (AGENTS,), minval=-1.0, maxval=1.0), jnp.zeros((), int)

    def step(self, state: Any, action: Any, key: Any) -> Any:
        position, time = state[0], state[1] + 1
        reward = jnp.full(AGENTS, (action[:, 0] * self._alive(state[1])).mean())
        return (position, time), reward, jnp.zeros((), bool), time >= LENGTH

    def observe(self, state: Any) -> Observation:
        position, time = state
        obs = jnp.stack([jnp.full(AGENTS, 0.25) * time, position], 1)
        mask = jnp.ones((AGENTS, 2), bool)
        return Observation(obs, jnp.tile(position, (AGENTS, 1)), mask, self._alive(time))

    def _alive(self, time: Any) -> Any:
        return (jnp.arange(AGENTS) >= time) | (jnp.arange(AGENTS) == AGENTS - 1)
