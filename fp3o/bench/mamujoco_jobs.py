"""Timed jobs of the MuJoCo tasks: physics, environment, rollouts."""

# MuJoCo has no type stubs, and its functions are replaced by timed ones.
# pyright: reportAttributeAccessIssue=false

from itertools import cycle, islice
from typing import Any, NamedTuple

import jax
import numpy as np
from mujoco.batch import Batch

from fp3o.bench.timing import TimedJob
from fp3o.envs.mamujoco.catalogue import MAMUJOCO
from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.envs.mamujoco.simulation import default_threads
from fp3o.envs.mamujoco.task import BodyTask, body_task
from fp3o.envs.registry import get_task
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program

RECORDED_STEPS = 64
"""Steps of random actions that are recorded and repeated."""
CHUNK_STEPS = 4_000
"""Approximate environment steps per chunk and thread: long enough to time, and short enough for
undisturbed measurements."""


class Recording(NamedTuple):
    """Recorded steps of one batch of environments."""

    task: BodyTask
    state: NativeState
    """The last state."""
    physics: np.ndarray
    """(m, e, ...): integration states before each step."""
    controls: np.ndarray
    """(m, e, nu)."""
    actions: np.ndarray
    """(m, e, n, d)."""

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return self.physics.shape[1]


def record_random(task: BodyTask, num_envs: int) -> Recording:
    """Record steps of random actions, after as many unrecorded ones."""
    env, mask = NativeVecEnv(task, num_envs), task.spec.actions.mask
    draw = np.random.default_rng(0).uniform
    actions = draw(-1, 1, (RECORDED_STEPS, num_envs, *mask.shape)).astype(np.float32)
    state, physics = with_random_times(env.reset(jax.random.key(0))[0], task), []
    for action in (*actions, *actions):
        physics.append(state.physics)
        state, _ = env.step(state, action)
    controls = task.controls(actions.astype(np.float64))
    return Recording(task, state, np.stack(physics[-RECORDED_STEPS:]), controls, actions)


def with_random_times(state: NativeState, task: BodyTask) -> NativeState:
    """The same simulations, at random times within their episodes."""
    random = np.random.default_rng(1)
    return state._replace(time=random.integers(task.body.max_episode_steps, size=len(state.time)))


def chunk_length(num_envs: int, threads: int) -> int:
    """Steps per chunk."""
    return min(1000, max(40, CHUNK_STEPS * threads // num_envs))


def physics_job(recording: Recording, threads: int) -> TimedJob:
    """Raw physics."""
    num_envs, skip = recording.num_envs, recording.task.body.frame_skip
    steps = chunk_length(num_envs, threads)
    batch = Batch(recording.task.model, num_envs, nthread=threads)
    control = batch.bind("ctrl")

    def run() -> None:
        recorded = cycle(zip(recording.physics, recording.controls, strict=True))
        for physics, controls in islice(recorded, steps):
            batch.state[...] = physics
            control[...] = controls
            batch.step(nstep=skip)

    return TimedJob(num_envs * steps, run)


def environment_job(recording: Recording, threads: int) -> TimedJob:
    """Steps of the environment."""
    steps, state = chunk_length(recording.num_envs, threads), recording.state
    env = NativeVecEnv(recording.task, recording.num_envs, threads)
    now = env.reset(jax.random.key(0))[1]

    def run() -> None:
        nonlocal state
        state, _ = env.rollout(
            state, now, lambda t, *_: recording.actions[t % RECORDED_STEPS], steps
        )

    return TimedJob(recording.num_envs * steps, run)


def rollout_job(program: Program, task: BodyTask) -> TimedJob:
    """A part of a rollout of the policy; a complete one would be too long for a chunk."""
    state = program.init(0)
    num_envs = program.env.num_envs * (program.num_seeds or 1)
    steps = chunk_length(num_envs, default_threads(num_envs))
    carry, actor = state.rollout, state.learner.actor
    carry = carry._replace(env_state=with_random_times(carry.env_state, task))
    keys = program._split_keys(state.key)[1][..., :steps]

    def run() -> None:
        nonlocal carry
        carry, _ = program._host.collect(program.env, actor, carry, keys)

    return TimedJob(num_envs * keys.shape[-1], run)


def record_policy(job: TimedJob, program: Program, recording: Recording) -> Recording:
    """Record the last steps of a chunk of a rollout, instead of random actions."""
    env, kept = getattr(program.env, "env", program.env), []  # without the axis of seeds
    inner = env._apply

    def apply(controls: np.ndarray, action: Any) -> None:
        inner(controls, action)
        kept.append((env.simulation.physics, controls.copy()))

    env._apply = apply
    job.run()
    del env._apply
    physics, controls = map(np.stack, zip(*kept[-RECORDED_STEPS:], strict=True))
    return recording._replace(physics=physics, controls=controls)


def mamujoco_config(name: str, sharing: str, num_envs: int, seeds: int) -> RunConfig:
    """FP3O with the preset `paper`, or `farama` where the paper does not have the body."""
    settings = {"algorithm": "fp3o", "sharing": sharing, "num_envs": num_envs, "seeds": seeds}
    return RunConfig.from_preset(f"{MAMUJOCO}/{name}", profile(name)).with_settings(settings)


def default_task(name: str) -> BodyTask:
    """A task under its first variant."""
    return body_task(name, profile(name))


def profile(name: str) -> str:
    """A task's first variant, which has a preset of the same name: `paper` where there is one."""
    return get_task(f"{MAMUJOCO}/{name}").variants[0]
