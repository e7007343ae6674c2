"""Environment steps per second of rollouts of host environments, by number of players.

python benchmarks/players.py --envs 64 --blocks 8 --players 0 1 2 4 8
"""

import argparse
import os
from functools import partial
from typing import Any

from fp3o.bench.timing import TimedJob, fastest_rates
from fp3o.envs.registry import get_task
from fp3o.runs.player_process import ProcessPlayers
from fp3o.runs.players import make_pool
from fp3o.runs.programs import make_program
from fp3o.runs.progress import make_display
from fp3o.runs.run_config import RunConfig
from fp3o.training.host_rollout import disable_async_dispatch


def rates(config: RunConfig, players: int, seconds: float) -> tuple[float, float]:
    """Steps per second of rollouts alone, and of whole iterations."""
    source = ProcessPlayers(players) if players else None
    pool = make_pool(config, source, make_display("plain"))
    program: Any = make_program(config, pool=pool)
    state = program.init(config.seed)
    keys = program._split_keys(state.key)[1]
    collect = getattr(program.env, "collect", partial(program._host.collect, program.env))
    steps = config.seeds * config.steps_per_iteration
    jobs = {
        "rollout": TimedJob(steps, lambda: collect(state.learner.actor, state.rollout, keys)),
        "iteration": TimedJob(steps, lambda: program.iterate(state)[1]["episodes"] + 0),
    }
    found = fastest_rates(jobs, seconds)
    program.env.close()
    return found["rollout"], found["iteration"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of rollouts by number of players.")
    parser.add_argument("--task", default="mamujoco/HalfCheetah-6x1")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--players", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rollout", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0, help="measuring time per case")
    options = parser.parse_args()
    disable_async_dispatch()
    names = {"num_envs": options.envs, "blocks": options.blocks, "rollout": options.rollout}
    settings = {**names, "seeds": options.seeds, "minibatches": 1, "epochs": 1}
    preset = "paper" if "paper" in get_task(options.task).presets else None
    config = RunConfig.from_preset(options.task, preset).with_settings(settings).resolve()
    print(
        f"{options.task}, {options.seeds} seeds, {options.envs} environments in {options.blocks} "
        f"blocks, rollouts of {options.rollout} steps, {os.cpu_count()} cores"
    )
    for players in options.players:
        rollout, iteration = rates(config, players, options.seconds)
        print(
            f"{players:3} players: {rollout:9,.0f} steps/s of rollouts, "
            f"{iteration:9,.0f} steps/s of iterations",
            flush=True,
        )


if __name__ == "__main__":
    main()
