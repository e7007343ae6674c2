"""Evaluation of the baseline policies of a task, and summaries of evaluated episodes."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.envs.random_play import random_episodes
from fp3o.envs.registry import get_task
from fp3o.envs.scripted import run_scripted
from fp3o.envs.task import Baseline
from fp3o.envs.vectorise import vectorise
from fp3o.runs.metrics_log import finite_json
from fp3o.training.episodes import EvalEpisodes

BASELINES = 5
"""Purpose of the random stream, beside those of `evaluation`."""

RANDOM_EPISODES, STILL_EPISODES, RANDOM_ENVIRONMENTS = 100, 16, 8
"""Episodes of random and of no actions at most, and environments that play them.

Without actions, episodes differ in their starts alone."""


def summarise_episodes(episodes: EvalEpisodes, names: Sequence[str]) -> dict[str, Any]:
    """Mean return with its spread and error, mean length and episode metrics, for results.json.

    Only episodes that ended count; `unfinished` is the number of the others, if there are any. A
    number that is not finite, such as an episode metric that is NaN, is None.
    """
    done = np.isfinite(episodes.returns).reshape(-1)
    returns = np.asarray(episodes.returns).reshape(-1)[done]
    unfinished = {} if done.all() else {"unfinished": int((~done).sum())}
    if not returns.size:
        empty = {"return": None, "std": None, "stderr": None, "length": None}
        return {**empty, "episode_metrics": dict.fromkeys(names), **unfinished}
    spread = float(returns.std(ddof=1)) if returns.size > 1 else 0.0
    metrics = np.asarray(episodes.episode_metrics, np.float64).reshape(done.size, len(names))
    means = metrics[done].mean(0).tolist()
    row = {
        "return": float(returns.mean()),
        "std": spread,
        "stderr": spread / math.sqrt(returns.size),
        "length": float(np.asarray(episodes.lengths, np.float64).reshape(-1)[done].mean()),
        "episode_metrics": dict(zip(names, means, strict=True)),
        **unfinished,
    }
    return finite_json(row)


def evaluate_baselines(task: str, variant: str | None, episodes: int) -> dict[str, dict[str, Any]]:
    """Evaluation of the task's scripted policies, for comparison.

    Where several simulators of a task are equivalent, on the one that needs no compiler.
    """
    found = get_task(task)
    return _baseline_rows(found.env(variant and found.canonical(variant)), task, episodes)


@cache
def _baseline_rows(env: Any, task: str, episodes: int) -> dict[str, dict[str, Any]]:
    # The environment is part of the key: another may have been registered under the same name.
    return {
        baseline.name: {
            **summarise_episodes(
                found := _baseline_episodes(env, baseline, episodes), env.spec.episode_metrics
            ),
            "episodes": found.returns.size,
            "title": baseline.title,
            "summary": baseline.summary,
            "role": baseline.role,
        }
        for baseline in get_task(task).baselines(env)
    }


def _baseline_episodes(env: Any, baseline: Baseline, episodes: int) -> EvalEpisodes:
    """Episodes of a scripted policy, or of random or no actions: fewer, for any environment."""
    if baseline.act is not None:
        key = jax.random.fold_in(jax.random.key(0), BASELINES)
        return EvalEpisodes(*run_scripted(env, baseline.act, key, episodes))
    episodes = min(episodes, STILL_EPISODES if baseline.still else RANDOM_EPISODES)
    batch = vectorise(env, min(episodes, RANDOM_ENVIRONMENTS))
    try:
        limit = env.max_episode_steps
        actions = _no_actions(batch, limit) if baseline.still else None
        return EvalEpisodes(*random_episodes(batch, episodes, limit, BASELINES, actions))
    finally:
        batch.close()


def _no_actions(batch: VecEnv, steps: int) -> np.ndarray:
    """Zeros for all steps, in the memory of one."""
    actions = batch.spec.actions
    zeros = np.zeros((batch.num_envs, batch.spec.num_agents, actions.action_size), actions.dtype)
    return np.broadcast_to(zeros, (steps, *zeros.shape))
