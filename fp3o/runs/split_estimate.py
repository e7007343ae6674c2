"""Estimate of what a division among devices gains, before anything is compiled.

The gradient steps are divided, and their sums over the devices are added. Everything else is
overhead that stays: small arrays take as long as smaller ones. The estimate is rough, but tells a
division that saves many times its cost from one that costs more than it saves.
"""

import os
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fp3o.algorithms.schedules import SCHEDULES
from fp3o.runs.limits import num_parameters
from fp3o.runs.run_config import RunConfig


class Speed(NamedTuple):
    """What the estimate assumes about a platform."""

    operations: float
    """Floating-point operations per second in gradient steps."""
    sum_seconds: float
    """Duration of one sum over devices of small arrays."""


SPEEDS = {"gpu": Speed(3e13, 25e-6), "tpu": Speed(3e13, 10e-6), "cpu": Speed(2e10, 1e-4)}
"""Operations on an H200: from its iterations of 3s5z `many` with 256 and 128 environments. The
duration of a sum is not measured: a usual one between GPUs of one machine. The numbers of TPUs and
CPUs are assumptions."""

H200_MILLISECONDS = {1: 38.7, 2: 30.2, 4: 26.1, 8: 34.0}
"""Iteration of FP3O on 3s5z, preset `many`, one seed, with the share of environments of each of so
many devices: `fp3o bench devices` on an H200, JAX 0.11.2. With 32 environments minibatches are too
small for the kernel of the GRU."""


class SplitEstimate(NamedTuple):
    """Effect of a division per iteration."""

    sums: int
    """Sums over the devices."""
    sum_seconds: float
    saved_seconds: float
    """Work of one device that the others take over."""

    @property
    def pays(self) -> bool:
        """Whether more is saved than added."""
        return self.saved_seconds > self.sum_seconds


def num_sums(config: RunConfig) -> int:
    """Sums over devices per iteration: two per gradient step, and those of statistics."""
    learner = config.learner
    per_epoch = 2 * learner.minibatches * learner.row.critic_passes + 1
    return num_stages(config) * (learner.epochs * per_epoch + 12) + 8


def num_stages(config: RunConfig) -> int:
    """Stages of an iteration of the algorithm."""
    row, agents = config.learner.row, config.task_info.spec(config.variant).num_agents
    stages = jax.eval_shape(
        lambda score: (
            SCHEDULES[row.schedule](jax.random.key(0), score, config.learner.epochs, row).member
        ),
        jax.ShapeDtypeStruct((agents,), jnp.float32),
    )
    return stages.shape[0]


def estimate_split(config: RunConfig, shares: int, platform: str) -> SplitEstimate:
    """Estimate for devices that share the environments of a seed."""
    learner, speed = config.learner, SPEEDS.get(platform, SPEEDS["gpu"])
    spec, sums = config.task_info.spec(config.variant), num_sums(config)
    shared = replace(learner, sharing="full", critic_sharing=None)
    weights = sum(num_parameters(spec, shared))
    # Stages that update some agents only have together the work of one that updates all.
    whole = num_stages(config) if learner.stage_facts(spec).whole_team else 1
    rows = config.steps_per_iteration * spec.num_agents * whole * learner.epochs
    work = 6 * weights * rows / speed.operations
    at_once = min(shares, os.cpu_count() or 1) if platform == "cpu" else shares
    return SplitEstimate(sums, sums * speed.sum_seconds, work * (1 - 1 / at_once))


def split_lines(config: RunConfig, shape: tuple[int, int], platform: str) -> list[str]:
    """What a run says about its division into seeds and environments."""
    seeds, shares = shape
    envs = config.learner.num_envs
    lines = [
        f"{seeds * shares} devices: {config.seeds // seeds} of {config.seeds} seeds and "
        f"{envs // shares} of {envs} environments each"
    ]
    if shares == 1:
        return [*lines, "seeds exchange nothing: no sums over devices"]
    found = estimate_split(config, shares, platform)
    lines.append(
        f"about {found.sums} sums over devices per iteration, {1e3 * found.sum_seconds:.1f} ms by "
        f"estimate; gradient steps become {1e3 * found.saved_seconds:.1f} ms shorter"
    )
    if not found.pays:
        lines.append(
            "this division is probably slower than one device: give devices different --seeds, or "
            "more environments (--num-envs) to each"
        )
    return lines


def doctor_estimate() -> str:
    """Speed of several H200s, from times of one, in a sentence."""
    config = RunConfig.from_preset("smac/3s5z", "many")
    added = 1e3 * estimate_split(config, 2, "gpu").sum_seconds
    one = H200_MILLISECONDS[1]
    parts = [
        f"{devices}: {one / (time + added):.1f}x, with {devices}x the environments "
        f"{devices * one / (one + added):.1f}x"
        for devices, time in H200_MILLISECONDS.items()
        if devices > 1
    ]
    return f"estimate for H200s, one seed of 3s5z `many`: {'; '.join(parts)}. Seeds: no cost"
