"""Environment steps per second on the MuJoCo tasks: physics, environment, rollouts, training.

    python benchmarks/mamujoco.py [--task HalfCheetah-6x1] [--only environment other]
    python benchmarks/mamujoco.py --bodies --parts --json numbers.json

Raw physics is `mujoco.batch.Batch.step` alone, on recorded states and controls of random actions.
The environment is `NativeVecEnv.rollout` (physics, observations, rewards, resets) with the same
actions; a rollout adds the decisions of the policy; training adds learning. Episodes start at
random times, so that some end in every chunk. "All" threads is the default number. The physics
under a new policy can be more expensive than under random actions (about 15 % for the cheetah), so
rollouts are compared with both: with random actions, to which the aim refers, and with their own.

Jobs that are compared alternate, chunk by chunk, and the fastest chunk of each counts: compare them
as ratios within one run. The other package is gymnasium-robotics, one environment in one process,
with the same k. It has the newer version of the bodies, we have that of the paper where the paper
has the body; bodies and substeps are nearly the same.
"""

# MuJoCo has no type stubs, and its functions are replaced by timed ones.
# pyright: reportAttributeAccessIssue=false

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from mamujoco_jobs import (
    default_task,
    environment_job,
    mjx_job,
    physics_job,
    profile,
    record_policy,
    record_random,
    rollout_job,
    run_config,
    training_job,
)
from mamujoco_peers import gymnasium_job, has_robotics, robotics_job
from tables import Row, machine, table
from timing import Clock, rates

from fp3o.envs.mamujoco.catalogue import MAMUJOCO, PAPER_TASKS, canonical_name
from fp3o.envs.mamujoco.env import mamujoco_env
from fp3o.envs.mamujoco.simulation import default_threads
from fp3o.runs.evaluation import make_program

SIZES = (4, 20, 64, 256)
"""Numbers of environments."""
MJX_SIZES = (1024, 4096, 8192)
"""Numbers of environments on an accelerator."""
ROLLOUT_AIM = {64: "60 %"}
"""Number of environments -> aimed share of raw physics."""
TRAININGS = {
    "4 environments, 1 seed": (4, 1, "4,000 (2 cores)"),
    "4 environments, 5 seeds": (4, 5, "1.5 times; 60,000 (16 cores, GPU)"),
    "64 environments, 1 seed": (64, 1, ""),
}
"""Environments per seed, seeds, and aimed steps per second."""


def case(num_envs: int, threads: int) -> str:
    return f"{num_envs} environments, {threads} thread{'s' * (threads > 1)}"


def environment(options: argparse.Namespace) -> Iterator[Row]:
    """Raw physics and the environment, with one thread and with all."""
    for num_envs in SIZES:
        recording = record_random(default_task(options.task), num_envs)
        for threads in sorted({1, default_threads(num_envs)}):
            jobs = [physics_job(recording, threads), environment_job(recording, threads)]
            raw, steps = rates(jobs, options.seconds)
            yield {
                "case": case(num_envs, threads),
                "raw steps/s": raw,
                "env steps/s": steps,
                "share": steps / raw,
            }


def rollouts(options: argparse.Namespace) -> Iterator[Row]:
    """Rollouts of FP3O's policy, and raw physics with as many environments and threads."""
    task = default_task(options.task)
    for num_envs in SIZES:
        seeds = 5 if num_envs == 20 else 1
        program = make_program(run_config(options.task, options.sharing, num_envs // seeds, seeds))
        threads = default_threads(num_envs)
        recording, job = record_random(task, num_envs), rollout_job(program, task)
        own = record_policy(job, program, recording)
        jobs = [physics_job(recording, threads), physics_job(own, threads), job]
        raw, raw_own, steps = rates(jobs, options.seconds)
        yield {
            "case": case(num_envs, threads) + ", 5 seeds" * (seeds > 1),
            "raw steps/s": raw,
            "raw, own": raw_own,
            "steps/s": steps,
            "share": steps / raw,
            "share of own": steps / raw_own,
            "aim": ROLLOUT_AIM.get(num_envs, ""),
        }


def training(options: argparse.Namespace) -> Iterator[Row]:
    """Training with FP3O; seconds per iteration (the first one compiles)."""
    configs = [
        run_config(options.task, options.sharing, *sizes[:2]) for sizes in TRAININGS.values()
    ]
    jobs, clocks = zip(*map(training_job, configs), strict=True)
    found = rates(list(jobs), options.seconds, least=2)
    for (name, (*_, aim)), clock, rate in zip(TRAININGS.items(), clocks, found, strict=True):
        rollout = clock.best["rollout"]
        yield {
            "case": name,
            "steps/s": rate,
            "times 1st row": rate / found[0],
            "rollout s": rollout,
            "learning s": clock.best["total"] - rollout,
            "first s": clock.first,
            "aim": aim,
        }


def other(options: argparse.Namespace) -> Iterator[Row]:
    """Random actions: gymnasium-robotics and gymnasium, one environment each, and ours."""
    if not has_robotics():
        return
    task = default_task(options.task)
    few, many, threads = record_random(task, 4), record_random(task, 64), default_threads(64)
    jobs = {
        "gymnasium-robotics": robotics_job(options.task, task.variant.obsk),
        "gymnasium, one agent": gymnasium_job(options.task, task.variant.obsk),
        f"ours, {case(4, 1)}": environment_job(few, 1),
        f"ours, {case(64, threads)}": environment_job(many, threads),
    }
    found = rates(list(jobs.values()), options.seconds)
    for name, rate in zip(jobs, found, strict=True):
        yield {
            "case": name,
            "steps/s": rate,
            "times robotics": rate / found[0],
            "times gymn.": rate / found[1],
        }


def bodies(options: argparse.Namespace) -> Iterator[Row]:
    """The paper's tasks with 64 environments and all threads, and gymnasium-robotics."""
    threads, compared = default_threads(64), has_robotics()
    for name in PAPER_TASKS:
        recording = record_random(default_task(name), 64)
        jobs = [physics_job(recording, threads), environment_job(recording, threads)]
        if compared:
            jobs.append(robotics_job(name, recording.task.variant.obsk))
        raw, steps, *theirs = rates(jobs, options.seconds)
        yield {
            "case": name,
            "raw steps/s": raw,
            "env steps/s": steps,
            "share": steps / raw,
            "other steps/s": theirs[0] if theirs else None,
            "times other": steps / theirs[0] if theirs else None,
        }


def parts(options: argparse.Namespace) -> Iterator[Row]:
    """Microseconds per step of a rollout, for all environments together."""
    for num_envs in (4, 64):
        program: Any = make_program(run_config(options.task, options.sharing, num_envs, 1))
        job = rollout_job(program, default_task(options.task))
        clock = Clock(job.run)
        policy = program._host.policy
        decide = policy.decide
        policy.decide = lambda *args, f=decide, c=clock: c.timed(f(*args), "policy")
        clock.watch(program.env.simulation, "step", "physics")
        clock.watch(program.env, "_apply", "controls")
        clock.watch(program.env, "_record", "recording")
        clock.watch(program.env, "_observe", "observing")
        rates([job._replace(run=clock)], options.seconds)
        micro = {name: spent * 1e6 * num_envs / job.steps for name, spent in clock.best.items()}
        total = micro.pop("total")
        threads = case(num_envs, default_threads(num_envs))
        yield {"case": threads, **micro, "rest": total - sum(micro.values()), "all": total}


def mjx(options: argparse.Namespace) -> Iterator[Row]:
    """MJX: random actions sampled on the device, chunks of steps in one program."""
    env = mamujoco_env(options.task, f"{profile(options.task)}:backend=mjx")
    for num_envs in SIZES[2:3] if jax.default_backend() == "cpu" else MJX_SIZES:
        started = time.perf_counter()
        job = mjx_job(env, num_envs)
        job.run()
        first = time.perf_counter() - started
        (found,) = rates([job], options.seconds)
        yield {"case": f"{num_envs} environments", "steps/s": found, "first chunk s": first}


SECTIONS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "environment": environment, "rollouts": rollouts, "training": training, "other": other,
    "bodies": bodies, "parts": parts, "mjx": mjx,
}  # fmt: skip
DEFAULT_SECTIONS = ("environment", "rollouts", "training", "other")


def parse_arguments() -> argparse.Namespace:
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--task", default="HalfCheetah-6x1", help="a body and its partition")
    parser.add_argument("--sharing", default="full", help="full, partial or none")
    parser.add_argument("--seconds", type=float, default=3.0, help="measuring time per number")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="only these tables")
    parser.add_argument("--bodies", action="store_true", help="also the six tasks of the paper")
    parser.add_argument("--parts", action="store_true", help="also the parts of a step")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    options.task = canonical_name(options.task.removeprefix(f"{MAMUJOCO}/"))
    more = [name for name in ("bodies", "parts") if getattr(options, name)]
    options.sections = [
        name for name in SECTIONS if name in [*(options.only or DEFAULT_SECTIONS), *more]
    ]
    return options


def main() -> None:
    options = parse_arguments()
    description = machine()
    print(", ".join(f"{name} {value}" for name, value in description.items()))
    print(f"{default_task(options.task).spec.name}, {options.sharing} sharing")
    numbers: Row = {
        "machine": description,
        "task": options.task,
        "sharing": options.sharing,
        "tables": {},
    }
    for name in options.sections:
        print(f"\n{name}: {SECTIONS[name].__doc__}")
        numbers["tables"][name] = table(SECTIONS[name](options))
        if options.json:
            options.json.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
