"""Share of the metrics in a policy iteration at the paper's sizes.

    python benchmarks/metrics_share.py --algorithms fp3o mappo

An upper bound: it includes the evaluation of all policies after each stage, which the next stage
needs anyway.
"""

import argparse
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp

from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.table import ALGORITHMS
from fp3o.bench.learning import SIZES, UpdateProgram, compile_update
from fp3o.bench.timing import TimedJob, fastest_rates
from fp3o.learning.batch import make_batch
from fp3o.learning.metrics import stage_metrics
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import StageResult
from fp3o.learning.update import evaluate_policy
from fp3o.types import Batch


def metrics_seconds(setup: Setup, update: UpdateProgram) -> float:
    """Seconds per stage for its metrics, including the evaluation of all policies."""
    _, learner, trajectory, rollout, _ = update.inputs
    hparams, partner = setup.config.hyperparameters.as_arrays(), jnp.arange(setup.spec.num_agents)
    data, *_ = jax.jit(partial(make_batch, setup))(
        hparams, learner, trajectory, rollout.critic_hidden
    )
    batch = data.batch
    policy, before = jax.jit(partial(evaluate_policy, setup))(learner.actor, batch)

    stages = SCHEDULES[setup.row.schedule](
        jax.random.key(0), jnp.zeros(setup.spec.num_agents), setup.config.epochs, setup.row
    )
    first = jax.tree.map(lambda x: x[0], stages)

    def stage_report(batch: Batch, old: Any, before: Any) -> Any:
        new, after = evaluate_policy(setup, learner.actor, batch)
        result = StageResult(first, before, after, old, new)
        return stage_metrics(setup, hparams, batch, result, partner)

    program = jax.jit(stage_report)
    jax.block_until_ready(program(batch, policy, before))
    run = TimedJob(1, lambda: jax.block_until_ready(program(batch, policy, before)))
    return 1 / fastest_rates({"metrics": run}, 0.3)["metrics"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Share of the metrics in a policy iteration.")
    parser.add_argument("--tasks", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--algorithms", nargs="+", default=["fp3o"], choices=ALGORITHMS)
    parser.add_argument("--sharings", nargs="+", default=["full", "partial", "none"])
    options = parser.parse_args()
    for task, algorithm, sharing in product(options.tasks, options.algorithms, options.sharings):
        spec, config = SIZES[task]
        setup = Setup(spec, config.replace(algorithm=algorithm, sharing=sharing))
        update = compile_update(setup, seeds=1)
        job = TimedJob(1, lambda run=update: jax.block_until_ready(run.run(*run.inputs)))
        seconds = 1 / fastest_rates({"update": job}, 2.0)["update"]
        stages = update.run(*update.inputs)[2]["kl"].shape[0]
        share = 100 * stages * metrics_seconds(setup, update) / seconds
        print(f"{task} {algorithm} {sharing}: {1e3 * seconds:.0f} ms, metrics {share:.1f} %")


if __name__ == "__main__":
    main()
