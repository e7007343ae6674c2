"""TODO."""

import time
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.spec import Discrete, EnvSpec
from fp3o.types import TimeStep

Level = Literal["error", "warning", "note"]


class Problem(NamedTuple):
    """Something that was found."""

    level: Level
    """`error`: training would fail or learn something wrong; `warning`: probably; `note`: a fact
    worth knowing."""
    what: str
    fix: str = ""


class RandomPlay(NamedTuple):
    """A stretch of play: what was seen, `(t + 1, e, ...)`, and what it took."""

    steps: TimeStep
    actions: np.ndarray
    seconds: float
    state: Any
    """Of the environments, after their reset."""


class _WrongShapeError(Exception):
    def __init__(self, problems: list[Problem]):
        super().__init__(str(problems))
        self.problems = problems


def play_at_random(
    env: VecEnv, steps: int, seed: int, actions: np.ndarray | None = None
) -> RandomPlay:
    """A stretch of play with random legal actions, or given ones."""
    random, step = np.random.default_rng(seed), jax.jit(env.step) if env.jittable else env.step
    state, now = env.reset(jax.random.key(seed))
    _refuse_shapes(env, now, "reset")
    first, seen, done, taken = state, [now], [], 0.0
    for t in range(steps):
        action = (
            random_actions(env.spec, np.asarray(now.action_mask), random)
            if actions is None
            else actions[t]
        )
        began = time.perf_counter()
        state, now = jax.block_until_ready(step(state, action))
        taken += (time.perf_counter() - began) if t else 0.0  # the first step may compile
        if t == 0:
            _refuse_shapes(env, now, "step")
        seen.append(now)
        done.append(action)
    path = TimeStep._make(np.stack([*map(np.asarray, part)]) for part in zip(*seen, strict=True))
    seconds = max(taken, 1e-9) * steps / max(steps - 1, 1)
    return RandomPlay(path, np.stack(done), seconds, first)


def random_actions(
    spec: EnvSpec, action_mask: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Legal actions `(e, n, d)`, all equally likely; vectors from the normal distribution."""
    if not isinstance(spec.actions, Discrete):
        return random.normal(size=action_mask.shape).astype(np.float32)
    parts, begin = [], 0
    for width in spec.actions.widths:
        chance = random.random((*action_mask.shape[:2], width))
        parts.append(np.where(action_mask[..., begin : begin + width], chance, -1.0).argmax(-1))
        begin += width
    return np.stack(parts, -1).astype(np.int32)


def _refuse_shapes(env: VecEnv, now: TimeStep, when: str) -> None:
    """Arrays of other shapes or kinds than promised make everything else meaningless."""
    spec, e = env.spec, env.num_envs
    n, flag, team = spec.num_agents, (e,), (e, spec.num_agents)
    choices = spec.actions.mask.shape[1]
    obs, view = (*team, spec.obs_size), (*team, spec.state_size)
    wanted = (
        obs, view, (*team, choices), team, team, flag, flag, flag, obs, view,
        (e, len(spec.episode_metrics)),
    )  # fmt: skip
    booleans = {"action_mask", "alive", "terminated", "truncated", "episode_start"}
    problems = []
    for name, shape, found in zip(TimeStep._fields, wanted, now, strict=True):
        kind = "b" if name in booleans else "f"
        got = np.shape(found), np.asarray(found).dtype
        if got[0] != shape:
            cure = f"an array of {shape}: {e} environments, {n} agents, then what each has"
            problems.append(Problem("error", f"{name} after {when} has shape {got[0]}", cure))
        elif got[1].kind != kind:
            cure = "booleans" if kind == "b" else "floats of 32 bits"
            problems.append(Problem("error", f"{name} after {when} is {got[1]}", cure))
    if problems:
        raise _WrongShapeError(problems)
