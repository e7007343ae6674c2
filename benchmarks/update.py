"""Time, compile time and memory of one policy iteration at the paper's sizes.

    python benchmarks/update.py [--tasks halfcheetah 3s5z] [--algorithms ...] [--sharings ...]

The rollout is synthetic, so this is the cost of learning alone: values, advantages, all stages of
the algorithm and the metrics. Times are the fastest of several iterations; compare them as
ratios within one run. `report %` is an upper bound on the share of the metrics: it includes the
evaluation of all policies after each stage, which the next stage needs anyway.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.table import ALGORITHMS
from fp3o.learning.batch import make_batch
from fp3o.learning.config import Config
from fp3o.learning.metrics import stage_metrics
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import StageResult
from fp3o.learning.update import evaluate_policy
from fp3o.spec import Box, Discrete, EnvSpec
from fp3o.training.program import update_learner
from fp3o.training.rollout import RolloutState, empty_hidden_and_stats
from fp3o.types import Batch, Trajectory

TASKS = {
    "halfcheetah": (
        EnvSpec("HalfCheetah-6x1 sizes", Box((1,) * 6), 18, 23, (0,) * 6),
        Config(num_envs=4, rollout=1000, minibatches=32, agent_id=False, time_limit="terminate")
        .replace(actor_lr=1e-5, critic_lr=3e-4, entropy_coef=0.001),
    ),
    "3s5z": (
        EnvSpec("3s5z sizes", Discrete(((14,),) * 8), 252, 299, (0,) * 3 + (1,) * 5),
        Config(num_envs=8, rollout=400, gru_size=64, agent_id=False, time_limit="terminate"),
    ),
}  # fmt: skip
"""Sizes and hyperparameters of the paper; agent ids are already in the observations."""


def synthetic(setup: Setup, seed: int = 0) -> tuple[Trajectory, RolloutState]:
    """A random rollout of the task's sizes, and an empty rollout state."""
    random, spec, config = np.random.default_rng(seed), setup.spec, setup.config
    lead = (config.rollout, config.num_envs, spec.num_agents)
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)  # noqa: E731
    size = spec.state_size if setup.row.critic_input == "state" else spec.obs_size
    ends = jnp.asarray(random.random(lead[:2]) < 0.01)
    discrete = isinstance(spec.actions, Discrete)
    actions = random.integers(0, 14, (*lead, 1)) if discrete else random.normal(size=(*lead, 1))
    trajectory = Trajectory(
        obs=draw(*lead, spec.obs_size),
        critic_input=draw(*lead, size),
        final_critic_input=draw(1, *lead[1:], size),
        action_mask=jnp.broadcast_to(
            jnp.asarray(spec.actions.mask), (*lead, spec.actions.mask.shape[1])
        ),
        alive=jnp.ones(lead, bool),
        episode_start=jnp.roll(ends, 1, axis=0),
        actor_hidden=jnp.zeros((*lead, config.gru_size)),
        action=jnp.asarray(actions, jnp.int32 if discrete else jnp.float32),
        log_prob=jnp.full(lead, -float(np.log(14)) if discrete else -0.5),
        reward=draw(*lead),
        terminated=ends,
        truncated=jnp.zeros_like(ends),
        episode_metrics=jnp.zeros((*ends.shape, 0)),
    )
    return trajectory, RolloutState(None, None, *empty_hidden_and_stats(setup, config.num_envs))  # pyright: ignore


def fastest(run: Callable[[], Any], seconds: float) -> float:
    """Seconds of the fastest of several runs."""
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return min(times)


def diagnostics(
    setup: Setup, learner: Learner, trajectory: Trajectory, rollout: RolloutState
) -> float:
    """Seconds per stage for its metrics, including the evaluation of all policies."""
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
    return fastest(lambda: program(batch, policy, before), 0.3)


def measure(
    task: str, algorithm: str, sharing: str, seconds: float, seeds: int
) -> dict[str, float]:
    """Compile one program and run it for a while."""
    spec, config = TASKS[task]
    setup = Setup(spec, config.replace(algorithm=algorithm, sharing=sharing))
    trajectory, rollout = synthetic(setup)
    inputs = (
        setup.config.hyperparameters.as_arrays(),
        setup.init(0),
        trajectory,
        rollout,
        jax.random.key(0),
    )
    program = partial(update_learner, setup)
    if seeds > 1:
        program = jax.vmap(program)
        inputs = jax.tree.map(lambda x: jnp.stack([x] * seeds), inputs)
    began = time.perf_counter()
    compiled = jax.jit(program).lower(*inputs).compile()
    compile_s = time.perf_counter() - began
    took = fastest(lambda: compiled(*inputs), seconds)
    memory = compiled.memory_analysis()
    assert memory is not None
    parts = memory.temp_size_in_bytes, memory.argument_size_in_bytes, memory.output_size_in_bytes
    peak = sum(parts)
    row = {"ms": took * 1e3, "compile_s": compile_s, "peak_mib": peak / 2**20}
    if seeds == 1:
        stages = compiled(*inputs)[2]["kl"].shape[0]
        report_s = diagnostics(setup, setup.init(0), trajectory, rollout)
        row["report_percent"] = 100 * stages * report_s / took
    return row


def main() -> None:
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--sharings", nargs="+", default=["full", "partial", "none"])
    parser.add_argument("--seconds", type=float, default=3.0, help="time spent on each program")
    parser.add_argument("--seeds", type=int, default=1, help="seeds trained in one program")
    args = parser.parse_args()
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}, seeds: {args.seeds}")
    titles = f"{'ms':>8} {'compile s':>9} {'peak MiB':>9} {'report %':>9}"
    print(f"{'task':12} {'algorithm':9} {'sharing':8} {titles}")
    for task, algorithm, sharing in product(args.tasks, args.algorithms, args.sharings):
        row = measure(task, algorithm, sharing, args.seconds, args.seeds)
        print(
            f"{task:12} {algorithm:9} {sharing:8} {row['ms']:8.0f} {row['compile_s']:9.1f} "
            f"{row['peak_mib']:9.1f} {row.get('report_percent', float('nan')):9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
