"""Rollouts of random or given actions: for checks, automatic sharing, baselines and speed."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

COMPILING = 2
"""First steps that are not timed: one compiles, and the next again where types differ slightly."""


class RandomStep(NamedTuple):
    """A step of random play."""

    state: Any
    timestep: TimeStep
    action: Any
    """(e, n, d); None for the reset."""
    seconds: float
    """Time that the step took; 0 where it may have compiled."""


class RandomPlay(NamedTuple):
    """A rollout of random actions."""

    steps: TimeStep
    """All time steps, `(t + 1, e, ...)`, that of the reset first."""
    actions: np.ndarray
    """(t, e, n, d)."""
    seconds: float
    """Time that the steps took, compilation excluded."""
    state: Any
    """State of the environments after the reset."""


class RandomEpisodes(NamedTuple):
    """Episodes of random or given actions, with NaN where one did not end."""

    returns: np.ndarray
    """(e,), per agent."""
    episode_metrics: np.ndarray
    """(e, o)."""
    lengths: np.ndarray
    """(e,)."""


class PlaySpeed(NamedTuple):
    """Speed of the environments of a batch together, under random actions."""

    steps_per_second: float
    episode_steps: float
    """Mean length of an episode; the limit where none ended."""

    @property
    def episodes_per_second(self) -> float:
        """Episodes that the batch finishes per second."""
        return self.steps_per_second / self.episode_steps


def random_steps(
    env: VecEnv,
    seed: int,
    actions: np.ndarray | None = None,
    step: Callable[[Any, Any], tuple[Any, TimeStep]] | None = None,
) -> Iterator[RandomStep]:
    """Reset a batch and step it with random available actions, or with given ones, for ever.

    `step` is `compiled_step(env)`, where several rollouts share it.
    """
    random, step = np.random.default_rng(seed), step or compiled_step(env)
    state, now = env.reset(jax.random.key(seed))
    yield RandomStep(state, now, None, 0.0)
    for t in itertools.count():
        mask = np.asarray(now.action_mask)
        action = sample_actions(env.spec, mask, random) if actions is None else actions[t]
        started = time.perf_counter()
        state, now = jax.block_until_ready(step(state, action))
        seconds = time.perf_counter() - started if t >= COMPILING else 0.0
        yield RandomStep(state, now, action, seconds)


def compiled_step(env: VecEnv) -> Callable[[Any, Any], tuple[Any, TimeStep]]:
    """The step of a batch, compiled at its first call where it can be."""
    return jax.jit(env.step) if env.jittable else env.step


def play_at_random(
    env: VecEnv,
    steps: int,
    seed: int,
    actions: np.ndarray | None = None,
    inspect: Callable[[TimeStep, str], None] = lambda timestep, method: None,
) -> RandomPlay:
    """Step a batch with random available actions, or with given ones.

    `inspect` is called with the first time step of `reset` and of `step`, and may raise.
    """
    played: list[RandomStep] = []
    for t, step in enumerate(itertools.islice(random_steps(env, seed, actions), steps + 1)):
        if t < 2:
            inspect(step.timestep, "step" if t else "reset")
        # Only the first state is used; those of large batches would fill the memory.
        played.append(step if t == 0 else step._replace(state=None))
    fields = zip(*(step.timestep for step in played), strict=True)
    rollout = TimeStep._make(np.stack([*map(np.asarray, field)]) for field in fields)
    seconds = max(sum(step.seconds for step in played), 1e-9) * steps / max(steps - COMPILING, 1)
    taken = np.stack([step.action for step in played[1:]])
    return RandomPlay(rollout, taken, seconds, played[0].state)


def random_episodes(
    env: VecEnv, episodes: int, limit: int, seed: int = 0, actions: np.ndarray | None = None
) -> RandomEpisodes:
    """Episodes under random available actions: the first ones of a batch, again and again.

    Or under given ones, `(limit, e, n, d)`. Returns are per agent, `Σ_t mean_i r_i`; an episode
    that does not end within `limit` is NaN.
    """
    parts: list[RandomEpisodes] = []
    step = compiled_step(env)
    for number in range(-(-episodes // env.num_envs)):
        steps = random_steps(env, seed + number, actions, step)
        parts.append(_first_episodes(env, itertools.islice(steps, 1, limit + 1)))
    joined = RandomEpisodes._make(map(np.concatenate, zip(*parts, strict=True)))
    return RandomEpisodes._make(x[:episodes] for x in joined)


def _first_episodes(env: VecEnv, played: Iterator[RandomStep]) -> RandomEpisodes:
    found = RandomEpisodes(
        np.full(env.num_envs, np.nan),
        np.full((env.num_envs, len(env.spec.episode_metrics)), np.nan),
        np.full(env.num_envs, np.nan),
    )
    total = np.zeros(env.num_envs)
    for length, step in enumerate(played, start=1):
        now = step.timestep
        total += np.asarray(now.reward).mean(-1) / env.spec.reward_sum_over
        ended = np.asarray(now.terminated | now.truncated) & np.isnan(found.lengths)
        found.returns[ended], found.lengths[ended] = total[ended], length
        found.episode_metrics[ended] = np.asarray(now.episode_metrics)[ended]
        if not np.isnan(found.lengths).any():
            break
    return found


def measure_speed(env: VecEnv, limit: int, seconds: float = 1.0, seed: int = 0) -> PlaySpeed:
    """Play at random for some seconds, at most for an episode of `limit` steps after compiling."""
    elapsed, steps, episodes = 0.0, 0, 0
    for step in itertools.islice(random_steps(env, seed), 1, limit + COMPILING + 1):
        elapsed, steps = elapsed + step.seconds, steps + 1
        episodes += int(np.asarray(step.timestep.terminated | step.timestep.truncated).sum())
        if elapsed >= seconds:
            break
    length = min(steps * env.num_envs / episodes, limit) if episodes else limit
    timed = max(steps - COMPILING, 1) * env.num_envs
    return PlaySpeed(timed / max(elapsed, 1e-9), max(length, 1.0))


def sample_actions(
    spec: EnvSpec, action_mask: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Available actions `(e, n, d)`, uniformly distributed; vectors are normal."""
    parts, start = [], 0
    for width in spec.actions.widths:
        score = random.random((*action_mask.shape[:2], width))
        available = action_mask[..., start : start + width]
        parts.append(np.where(available, score, -1.0).argmax(-1)[..., None])
        start += width
    if spec.actions.num_dimensions:
        parts.append(random.normal(size=(*action_mask.shape[:2], spec.actions.num_dimensions)))
    return np.concatenate(parts, -1).astype(spec.actions.dtype)
