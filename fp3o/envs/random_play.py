"""Rollouts of random available actions, for checks and for automatic sharing."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep


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
    random, step = np.random.default_rng(seed), jax.jit(env.step) if env.jittable else env.step
    state, now = env.reset(jax.random.key(seed))
    inspect(now, "reset")
    first, timesteps, taken, seconds = state, [now], [], 0.0
    for t in range(steps):
        mask = np.asarray(now.action_mask)
        action = sample_actions(env.spec, mask, random) if actions is None else actions[t]
        started = time.perf_counter()
        state, now = jax.block_until_ready(step(state, action))
        seconds += (time.perf_counter() - started) if t else 0.0  # the first step may compile
        if t == 0:
            inspect(now, "step")
        timesteps.append(now)
        taken.append(action)
    fields = zip(*timesteps, strict=True)
    rollout = TimeStep._make(np.stack([*map(np.asarray, field)]) for field in fields)
    seconds = max(seconds, 1e-9) * steps / max(steps - 1, 1)
    return RandomPlay(rollout, np.stack(taken), seconds, first)


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
    return np.concatenate(parts, -1).astype(np.int32 if spec.actions.integers else np.float32)
