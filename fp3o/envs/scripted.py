"""Evaluation of scripted policies, the baselines of a task, which may use the full state."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fp3o.envs.api import Env
from fp3o.envs.task import ScriptedPolicy

AT_ONCE_ON_CPU, AT_ONCE = 32, 1024
"""Episodes run in parallel: on a CPU, few enough for the plans of the particle planner to stay in
its cache."""


@partial(jax.jit, static_argnames=("env", "act", "episodes"))
def run_scripted(
    env: Env, act: ScriptedPolicy, key: PRNGKeyArray, episodes: int
) -> tuple[Float[Array, " e"], Float[Array, "e o"], Float[Array, " e"]]:
    """Returns per agent, Σ_t mean_i r_i, episode metrics and lengths of a number of episodes."""

    def episode(key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        keys = jax.random.split(key, env.max_episode_steps + 1)

        def step(carry: tuple[Any, Array, Array, Array]) -> tuple[Any, Array, Array, Array]:
            state, number, team_return, _ = carry
            key = keys[1 + number]
            state, reward, terminated, truncated = env.step(state, act(state, key), key)
            return state, number + 1, team_return + reward.mean(), ~(terminated | truncated)

        def running(carry: tuple[Any, Array, Array, Array]) -> Array:
            return carry[3] & (carry[1] < env.max_episode_steps)

        start = env.reset(keys[0]), jnp.zeros((), int), jnp.zeros(()), jnp.ones((), bool)
        state, length, team_return, _ = jax.lax.while_loop(running, step, start)
        metrics = env.episode_metrics(state)
        return team_return / env.spec.reward_sum_over, metrics, length.astype(float)

    at_once = min(AT_ONCE_ON_CPU if jax.default_backend() == "cpu" else AT_ONCE, episodes)
    keys = jax.random.split(key, (-(-episodes // at_once), at_once))
    returns, metrics, lengths = jax.lax.map(jax.vmap(episode), keys)
    metrics = metrics.reshape(keys.size, len(env.spec.episode_metrics))
    return returns.reshape(-1)[:episodes], metrics[:episodes], lengths.reshape(-1)[:episodes]
