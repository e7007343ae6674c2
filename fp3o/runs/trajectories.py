"""Whole episodes of a policy in its environment, as arrays over time."""

import math
import warnings
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import jax
import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.envs.registry import make
from fp3o.policy import Policy
from fp3o.runs.evaluation import ON_DEMAND
from fp3o.runs.trust import trusted_task
from fp3o.types import TimeStep

MAX_NUMBERS = 2**27
"""Limit of the numbers of a batch of episodes in memory: half a gigabyte."""


class PlayedEpisode(NamedTuple):
    """One episode of a team, `t` steps."""

    obs: np.ndarray
    """(t + 1, n, f); the last one is before the reset."""
    actions: np.ndarray
    """(t, n, d)"""
    action_mask: np.ndarray
    """(t, n, a)"""
    alive: np.ndarray
    """(t, n)"""
    rewards: np.ndarray
    """(t, n)"""
    team_rewards: np.ndarray
    """(t,): their sum is the return per agent."""
    terminated: np.ndarray
    truncated: np.ndarray


class PlaySettings(NamedTuple):
    """How episodes are played."""

    seed: int = 0
    deterministic: bool = True


def play_episodes(
    policy: Policy, episodes: int, how: PlaySettings
) -> Iterator[list[PlayedEpisode]]:
    """Batches of episodes, with the random streams of `fp3o.evaluate`.

    Episodes that do not end within the task's `max_episode_steps` are left out.
    """
    task, variant = trusted_task(policy.card, policy.trusted)
    env, limit = task.env(variant), task.max_episode_steps(variant)
    spec = env.spec
    per_step = spec.num_agents * (2 * spec.obs_size + spec.actions.num_outputs + 4)
    fits = max(1, MAX_NUMBERS // (per_step * limit))
    batch = make(policy.card.spec.name, min(episodes, task.max_parallel, fits))
    random = np.random.default_rng(how.seed)
    try:
        for index in range(math.ceil(episodes / batch.num_envs)):
            key = reduce(jax.random.fold_in, (ON_DEMAND, index), jax.random.key(how.seed))
            played = _play(policy, batch, (jax.random.split(key)[0], limit), how, random)
            left = episodes - index * batch.num_envs
            yield [*_first_episodes(*played, spec.reward_sum_over)][:left]
    finally:
        batch.close()


def _play(
    policy: Policy,
    env: VecEnv,
    start: tuple[Any, int],
    how: PlaySettings,
    random: np.random.Generator,
) -> tuple[list[TimeStep], list[np.ndarray]]:
    """Time steps and actions until the first episode of every environment has ended."""
    key, limit = start
    state, now = env.reset(key)
    steps, actions, hidden_state = [_on_host(now)], [], None
    running = np.ones(env.num_envs, bool)
    while running.any() and len(actions) < limit:
        now = steps[-1]
        action, hidden_state = policy.act(
            now.obs, hidden_state, now.action_mask, how.deterministic, random, now.episode_start
        )
        state, after = env.step(state, action)
        steps.append(_on_host(after))
        actions.append(action)
        running &= ~(steps[-1].terminated | steps[-1].truncated)
    return steps, actions


def _on_host(step: TimeStep) -> TimeStep:
    """A copy without the state of the critic, which may be large."""
    # Host environments may reuse their buffers.
    kept = step._replace(state=np.zeros(0), final_state=np.zeros(0))
    return TimeStep._make(np.array(x) for x in jax.device_get(kept))


def _first_episodes(
    steps: list[TimeStep], actions: list[np.ndarray], reward_sum_over: int
) -> Iterator[PlayedEpisode]:
    """The first episode of every environment, if it ended."""
    ended = np.stack([step.terminated | step.truncated for step in steps[1:]])
    for env in range(ended.shape[1]):
        if not ended[:, env].any():
            warnings.warn(
                "an episode did not end within max_episode_steps: it is left out. Raise "
                "max_episode_steps of the environment",
                RuntimeWarning,
                stacklevel=2,
            )
            continue
        length = int(ended[:, env].argmax()) + 1
        before, after = steps[:length], steps[1 : length + 1]
        rewards = np.stack([step.reward[env] for step in after])
        yield PlayedEpisode(
            np.stack([*(step.obs[env] for step in before), after[-1].final_obs[env]]),
            np.stack([action[env] for action in actions[:length]]),
            np.stack([step.action_mask[env] for step in before]),
            np.stack([step.alive[env] for step in before]),
            rewards,
            rewards.mean(-1) / reward_sum_over,
            np.stack([step.terminated[env] for step in after]),
            np.stack([step.truncated[env] for step in after]),
        )
