"""Multi-Agent MuJoCo: environment and rollouts beside raw physics and gymnasium-robotics; training.

Raw physics is `mujoco.batch.Batch.step` alone, on recorded states and controls of random actions.
The environment adds observations, rewards and resets; a rollout adds the decisions of the policy;
training adds learning. Episodes start at random times, so that some end in every chunk. The physics
of the states that a new policy visits can be more expensive than that of random actions, so
rollouts are compared with both.

gymnasium-robotics and gymnasium step one environment in one process, with the same k. They have the
newer version of the bodies, we have that of the paper where the paper has the body; bodies and
substeps are nearly the same.
"""

from collections.abc import Iterator
from functools import partial

import jax

from fp3o.bench.compiled_jobs import random_play_job, training_job
from fp3o.bench.mamujoco_jobs import (
    default_task,
    environment_job,
    mamujoco_config,
    physics_job,
    profile,
    record_policy,
    record_random,
    rollout_job,
)
from fp3o.bench.mamujoco_peers import gymnasium_job, robotics_job
from fp3o.bench.measurement import BenchSettings, Measurement, SpeedComparison, optional_job
from fp3o.envs.mamujoco.catalogue import MAMUJOCO, canonical_name
from fp3o.envs.mamujoco.env import mamujoco_env
from fp3o.envs.mamujoco.simulation import default_threads
from fp3o.envs.vectorise import vectorise
from fp3o.runs.programs import make_program

ROBOTICS, ONE_AGENT = "gymnasium-robotics", "gymnasium, one agent"

MJX_SIZES, MJX_STEPS = (1024, 4096, 8192), 20
"""Numbers of environments on an accelerator, and steps per chunk."""


def measure_mamujoco(settings: BenchSettings) -> Iterator[Measurement]:
    """All parts for one or more tasks."""
    sizes = (64,) if settings.quick else (4, 20, 64, 256)
    for name in map(canonical_name, settings.names(MAMUJOCO, ("HalfCheetah-6x1",))):
        for num_envs in sizes:
            yield from _environment(name, num_envs, settings)
        for num_envs in sizes:
            yield from _rollouts(name, num_envs, settings)
        yield from _training(name, settings)
        if jax.default_backend() != "cpu":
            yield from _mjx(name, settings)


def _title(part: str, num_envs: int, threads: int) -> str:
    return f"{part}, {num_envs} environments, {threads} thread{'s' * (threads > 1)}"


def _environment(name: str, num_envs: int, settings: BenchSettings) -> Iterator[Measurement]:
    """The environment with one thread and with all, raw physics, and the other packages."""
    task = default_task(name)
    recording, reach = record_random(task, num_envs), task.variant.obsk
    jobs, pairs, case = {}, [], ""
    for threads in sorted({1, default_threads(num_envs)}):
        case = _title(f"{name}, environment", num_envs, threads)
        physics = _title("raw physics", num_envs, threads)
        jobs |= {
            case: environment_job(recording, threads),
            physics: physics_job(recording, threads),
        }
        pairs.append((case, physics))
    for peer, build in {ROBOTICS: robotics_job, ONE_AGENT: gymnasium_job}.items():
        jobs[peer] = optional_job(ROBOTICS, partial(build, name, reach))
        pairs.append((case, peer))
    yield from SpeedComparison(jobs, pairs).measure(settings)


def _rollouts(name: str, num_envs: int, settings: BenchSettings) -> Iterator[Measurement]:
    """Rollouts of FP3O's policy, and raw physics with as many environments and threads."""
    task, threads = default_task(name), default_threads(num_envs)
    seeds = 5 if num_envs == 20 else 1
    sharing = next(iter(settings.sharings), "full")
    program = make_program(mamujoco_config(name, sharing, num_envs // seeds, seeds))
    recording, job = record_random(task, num_envs), rollout_job(program, task)
    own = record_policy(job, program, recording)
    case = _title(f"{name}, rollouts", num_envs, threads) + ", 5 seeds" * (seeds > 1)
    raw, same = _title("raw physics", num_envs, threads), "raw physics of the same states"
    jobs = {case: job, raw: physics_job(recording, threads), same: physics_job(own, threads)}
    yield from SpeedComparison(jobs, [(case, raw), (case, same)]).measure(settings)


def _training(name: str, settings: BenchSettings) -> Iterator[Measurement]:
    """Training with FP3O; batches are compared with the paper's, four environments of one seed."""
    sizes = ((4, 1),) if settings.quick else ((4, 1), (4, 5), (64, 1))
    sharing = next(iter(settings.sharings), "full")
    titles = [f"{name}, training, {n} environments, {s} seed{'s' * (s > 1)}" for n, s in sizes]
    trainings = {
        title: training_job(mamujoco_config(name, sharing, *size))
        for title, size in zip(titles, sizes, strict=True)
    }
    pairs = [(title, titles[0] if title != titles[0] else "") for title in titles]
    jobs = {title: training.job for title, training in trainings.items()}
    notes = {title: training.note for title, training in trainings.items()}
    yield from SpeedComparison(jobs, pairs, notes=notes).measure(settings, least=2)


def _mjx(name: str, settings: BenchSettings) -> Iterator[Measurement]:
    """The approximate physics on the accelerator."""
    for num_envs in MJX_SIZES[: 1 if settings.quick else None]:
        case = f"{name}, MJX, {num_envs} environments"

        def build(count: int = num_envs):
            env = mamujoco_env(name, f"{profile(name)}:backend=mjx")
            return random_play_job(vectorise(env, count), MJX_STEPS)

        job = optional_job("mujoco.mjx", build, "'fp3o[mjx]'")
        yield from SpeedComparison({case: job}, [(case, "")]).measure(settings)
