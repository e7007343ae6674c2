"""Training of MuJoCo tasks on MuJoCo and in one kernel, in turn.

python benchmarks/mujoco_backends.py --tasks mamujoco/Walker2d-2x3 --algorithm mappo --seeds 5
"""

import argparse
import time
from collections.abc import Callable

import jax

from fp3o.runs.programs import make_program
from fp3o.runs.run_config import RunConfig

BACKENDS = ("native", "fused")


def iteration(task: str, backend: str, algorithm: str, seeds: int) -> Callable[[], float]:
    """A compiled iteration of training; it returns its environment steps per second."""
    settings = {"algorithm": algorithm, "variant": f"paper:backend={backend}", "seeds": seeds}
    config = RunConfig.from_preset(task, "paper-none").with_settings(settings).check()
    program = make_program(config, None)
    state, _ = program.iterate(program.init(0))

    def run() -> float:
        nonlocal state
        started = time.perf_counter()
        state, _ = program.iterate(state)
        jax.block_until_ready(state.learner)
        return config.steps_per_iteration * seeds / (time.perf_counter() - started)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description="MuJoCo and the same steps in one kernel.")
    parser.add_argument("--tasks", nargs="*", default=["mamujoco/Walker2d-2x3"])
    parser.add_argument("--algorithm", default="mappo")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    for task in options.tasks:
        each = [iteration(task, x, options.algorithm, options.seeds) for x in BACKENDS]
        for _ in range(options.repeat):
            rates = [f"{name} {run():,.0f}" for name, run in zip(BACKENDS, each, strict=True)]
            print(f"{task}: {', '.join(rates)} steps/s", flush=True)


if __name__ == "__main__":
    main()
