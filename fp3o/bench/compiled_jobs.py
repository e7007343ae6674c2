"""Timed jobs of compiled programs: training iterations, and random actions."""

import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fp3o.bench.timing import PartClock, TimedJob
from fp3o.envs.api import VecEnv
from fp3o.runs.programs import make_program
from fp3o.runs.run_config import RunConfig
from fp3o.spec import Discrete, EnvSpec
from fp3o.training.mesh import Devices


class TrainingJob(NamedTuple):
    """A training iteration as a job, with a clock that also times its rollout."""

    job: TimedJob
    clock: PartClock
    compile_seconds: float

    def note(self) -> str:
        """Compile time; where the rollout is on the host, also the parts of an iteration."""
        text = f"compiled in {self.compile_seconds:.1f} s"
        if "rollout" not in self.clock.best:
            return text
        rollout = self.clock.best["rollout"]
        learning = self.clock.best["total"] - rollout
        return f"rollout {rollout:.2f} s, learning {learning:.2f} s; {text}"


def training_job(config: RunConfig, devices: Devices | None = None) -> TrainingJob:
    """Compile the training of a run, on devices that share it."""
    program = make_program(config.check(), devices)
    state = program.init(config.seed)
    started = time.perf_counter()
    program.compile(state)
    seconds = time.perf_counter() - started

    def run() -> None:
        nonlocal state
        state, _ = program.iterate(state)
        jax.block_until_ready(state.learner)

    clock = PartClock(run)
    if program.on_host:
        clock.watch(program._host, "collect", "rollout")
    return TrainingJob(TimedJob(config.steps_per_iteration * config.seeds, clock), clock, seconds)


def random_play_program(env: VecEnv, steps: int) -> tuple[Any, Any]:
    """A compiled chunk of steps of random available actions, and its first input."""

    def step(carry: Any, key: Array) -> tuple[Any, Array]:
        state, now = carry
        state, now = env.step(state, _sample(env.spec, now.action_mask, key))
        return (state, now), now.reward.mean()

    @partial(jax.jit, donate_argnums=0)
    def chunk(carry: Any, key: Array) -> tuple[Any, Array]:
        return jax.lax.scan(step, carry, jax.random.split(key, steps))

    carry = jax.jit(env.reset)(jax.random.key(0))
    return chunk.lower(carry, jax.random.key(0)).compile(), carry


def random_play_job(env: VecEnv, steps: int) -> TimedJob:
    """Chunks of steps of random available actions, sampled on the device."""
    chunk, carry = random_play_program(env, steps)
    key = jax.random.key(1)

    def run() -> None:
        nonlocal carry, key
        key, now = jax.random.split(key)
        carry, _ = jax.block_until_ready(chunk(carry, now))

    return TimedJob(env.num_envs * steps, run)


def _sample(spec: EnvSpec, mask: Array, key: Array) -> Array:
    """Random available actions `(e, n, d)`."""
    if not isinstance(spec.actions, Discrete):
        return jax.random.uniform(key, mask.shape, minval=-1.0) * mask
    parts, start = [], 0
    for k, width in enumerate(spec.actions.widths):
        logits = jnp.where(mask[..., start : start + width], 0.0, -jnp.inf)
        parts.append(jax.random.categorical(jax.random.fold_in(key, k), logits))
        start += width
    return jnp.stack(parts, -1)
