"""Playing with scripted policies, which may look behind the scenes, for comparison."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fp3o.envs.api import Env

Rule = Callable[[Any, PRNGKeyArray], Array]
"""The team's actions in a state of the game."""

CHUNK = 32
"""Episodes played at once: few enough for the plans of the particles' planner to stay in the
cache."""


@partial(jax.jit, static_argnames=("game", "rule", "episodes", "limit"))
def play(
    game: Env, rule: Rule, key: PRNGKeyArray, episodes: int, limit: int
) -> tuple[Float[Array, " e"], Float[Array, "e o"]]:
    """The return of one agent, Σ_t mean_i r_i, in each of some episodes, and their outcomes."""
    names = game.spec.episode_metrics

    def step(now: tuple[Any, Array], key: PRNGKeyArray) -> tuple[tuple[Any, Array], Array]:
        state, playing = now
        new, reward, terminated, truncated = game.step(state, rule(state, key), key)
        new = jax.tree.map(lambda x, y: jnp.where(playing, x, y), new, state)
        earned = jnp.where(playing, reward.mean(), 0.0)
        return (new, playing & ~(terminated | truncated)), earned

    def episode(key: PRNGKeyArray) -> tuple[Array, Array]:
        keys = jax.random.split(key, limit + 1)
        begun = game.reset(keys[0]), jnp.ones((), bool)
        (last, _), earned = jax.lax.scan(step, begun, keys[1:])
        outcome = game.episode_metrics(last) if names else jnp.zeros(0)  # pyright: ignore
        return earned.sum() / game.spec.reward_sum_over, outcome

    keys = jax.random.split(key, (-(-episodes // CHUNK), CHUNK))
    returns, outcomes = jax.lax.map(jax.vmap(episode), keys)
    return returns.reshape(-1)[:episodes], outcomes.reshape(keys.size, len(names))[:episodes]
