"""Parts of a step of a MuJoCo rollout, in microseconds for all environments together.

python benchmarks/rollout_parts.py --task HalfCheetah-6x1
"""

import argparse
from typing import Any

from fp3o.bench.mamujoco_jobs import default_task, mamujoco_config, rollout_job
from fp3o.bench.timing import PartClock, fastest_rates
from fp3o.runs.programs import make_program


def parts(task: str, num_envs: int, seconds: float) -> dict[str, float]:
    """Microseconds per step by part."""
    program: Any = make_program(mamujoco_config(task, "full", num_envs, 1))
    job = rollout_job(program, default_task(task))
    clock = PartClock(job.run)
    policy = program._host.policy
    decide = policy.decide
    policy.decide = lambda *args: clock.timed(decide(*args), "policy")
    clock.watch(program.env.simulation, "step", "physics")
    clock.watch(program.env, "_apply", "controls")
    clock.watch(program.env, "_record", "recording")
    clock.watch(program.env, "_observe", "observing")
    fastest_rates({task: job._replace(run=clock)}, seconds)
    micro = {name: spent * 1e6 * num_envs / job.steps for name, spent in clock.best.items()}
    return {**micro, "rest": 2 * micro["total"] - sum(micro.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description="Parts of a step of a MuJoCo rollout.")
    parser.add_argument("--task", default="HalfCheetah-6x1", help="a body and its partition")
    parser.add_argument("--envs", type=int, nargs="+", default=[4, 64])
    parser.add_argument("--seconds", type=float, default=3.0, help="measuring time per case")
    options = parser.parse_args()
    for num_envs in options.envs:
        found = parts(options.task, num_envs, options.seconds)
        text = "   ".join(f"{name} {value:.0f}" for name, value in found.items())
        print(f"{num_envs:4} environments: {text}", flush=True)


if __name__ == "__main__":
    main()
