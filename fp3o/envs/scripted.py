"""Evaluation of scripted policies, the baselines of a task, which may use the full state."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fp3o.envs.api import Env
from fp3o.envs.task import ScriptedPolicy

EPISODES_AT_ONCE = 32
"""Episodes run in parallel: few enough for the plans of the particle planner to stay in cache."""


@partial(jax.jit, static_argnames=("env", "act", "episodes"))
def run_scripted(
    env: Env, act: ScriptedPolicy, key: PRNGKeyArray, episodes: int
) -> tuple[Float[Array, " e"], Float[Array, "e o"], Float[Array, " e"]]:
    """Returns per agent, Σ_t mean_i r_i, episode metrics and lengths of a number of episodes."""

    def step(
        carry: tuple[Any, Array], key: PRNGKeyArray
    ) -> tuple[tuple[Any, Array], tuple[Array, Array]]:
        state, running = carry
        new, reward, terminated, truncated = env.step(state, act(state, key), key)
        new = jax.tree.map(lambda x, y: jnp.where(running, x, y), new, state)
        reward = jnp.where(running, reward.mean(), 0.0)
        return (new, running & ~(terminated | truncated)), (reward, running)

    def episode(key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        keys = jax.random.split(key, env.max_episode_steps + 1)
        first = env.reset(keys[0]), jnp.ones((), bool)
        (last, _), (rewards, played) = jax.lax.scan(step, first, keys[1:])
        team_return = rewards.sum() / env.spec.reward_sum_over
        return team_return, env.episode_metrics(last), played.sum().astype(float)

    keys = jax.random.split(key, (-(-episodes // EPISODES_AT_ONCE), EPISODES_AT_ONCE))
    returns, metrics, lengths = jax.lax.map(jax.vmap(episode), keys)
    metrics = metrics.reshape(keys.size, len(env.spec.episode_metrics))
    return returns.reshape(-1)[:episodes], metrics[:episodes], lengths.reshape(-1)[:episodes]
