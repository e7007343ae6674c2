"""Train five seeds of FP3O on a task that needs memory and teamwork, and show what they learned.

    python examples/quickstart.py

Three agents are each shown a sign, must remember it for two steps, and are paid as a team for the
share of them that repeats it. Blind teams earn 0.5, the best 1.
"""

import time

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fp3o import Config, Program, Vectorised, probe

ITERATIONS, SEEDS, TASK = 30, 5, "memory"


def main() -> None:
    """Compile, train with a live display, evaluate, print a table."""
    config = Config(sharing="partial", num_envs=32, rollout=12, hidden=(32,), recurrent=16, chunk=6)
    config = config.replace(actor_lr=3e-3, critic_lr=3e-3, minibatches=2)
    console, began = Console(), time.perf_counter()
    program = Program(Vectorised(probe(TASK), config.num_envs), config, num_seeds=SEEDS)
    with console.status("compiling one program for all seeds ..."):
        state, metrics = program.iterate(program.init(seed=0))
    console.print(f"compiled in {time.perf_counter() - began:.1f} s")

    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("training", total=ITERATIONS)
        for _ in range(ITERATIONS):
            state, metrics = program.iterate(state)
            earned = np.asarray(metrics["episode_return"])
            text = f"return {earned.mean():.2f} ± {earned.std():.2f}"
            progress.update(bar, advance=1, description=text)

    returns = program.evaluate(state, Vectorised(probe(TASK), 256), seed=1, num_steps=3)
    table = Table(title=f"probe/{TASK}: deterministic return (blind 0.5, best 1.0)")
    for title in ("seed", "return", "KL of each agent", "gate of the dependent step"):
        table.add_column(title)
    for seed in range(SEEDS):
        kl = " ".join(f"{x:.4f}" for x in np.asarray(metrics["kl"])[seed, -1])
        gate = "open" if metrics["gate"][seed, -1] else "shut"
        table.add_row(str(seed), f"{np.asarray(returns)[seed].mean():.3f}", kl, gate)
    console.print(table)


if __name__ == "__main__":
    main()
