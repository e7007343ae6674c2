"""One policy iteration at the paper's sizes: learning alone, on a synthetic rollout.

Values, advantages, all stages of the algorithm and the metrics. Algorithms are compared with MAPPO
under the same sharing.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.algorithms.table import ALGORITHMS
from fp3o.bench.measurement import ITERATION, BenchSettings, Measurement, SpeedComparison
from fp3o.bench.timing import TimedJob
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.spec import Box, Discrete, EnvSpec
from fp3o.training.program import update_learner
from fp3o.training.rollout import RolloutState, empty_hidden_and_stats
from fp3o.training.seeds import SeedThreads, over_seeds
from fp3o.types import Trajectory

SIZES = {
    "mamujoco/HalfCheetah-6x1": (
        EnvSpec("HalfCheetah-6x1 sizes", Box((1,) * 6), 18, 23, (0,) * 6),
        Config(num_envs=4, rollout=1000, minibatches=32, agent_id=False, time_limit="terminate")
        .replace(actor_lr=1e-5, critic_lr=3e-4, entropy_coef=0.001),
    ),
    "smac/3s5z": (
        EnvSpec("3s5z sizes", Discrete(((14,),) * 8), 252, 299, (0,) * 3 + (1,) * 5),
        Config(num_envs=8, rollout=400, gru_size=64, agent_id=False, time_limit="terminate"),
    ),
}  # fmt: skip
"""Sizes and hyperparameters of the paper; agent ids are already in the observations."""

BASE = "mappo"
"""The algorithm that others are compared with."""


class UpdateProgram(NamedTuple):
    """A compiled policy iteration of one or more seeds."""

    run: Any
    inputs: tuple[Any, ...]
    compile_seconds: float

    def note(self) -> str:
        """Compile time and memory."""
        found = self.run.memory_analysis()
        parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
        mebibytes = sum(getattr(found, part, 0) for part in parts) / 2**20
        share = " per seed" if isinstance(self.run, SeedThreads) else ""
        return f"compiled in {self.compile_seconds:.1f} s, {mebibytes:.0f} MiB{share}"


def measure_learning(settings: BenchSettings) -> Iterator[Measurement]:
    """Algorithms x sharings at the sizes of both tasks."""
    names = [name for name in SIZES if name in settings.tasks] or [*SIZES]
    algorithms = settings.algorithms or (("fp3o", BASE) if settings.quick else tuple(ALGORITHMS))
    sharings = settings.sharings or (("full",) if settings.quick else ("full", "partial", "none"))
    for task in names[: 1 if settings.quick else None]:
        for sharing in sharings:
            yield from _measure_sharing(task, sharing, algorithms, settings)


def _measure_sharing(
    task: str, sharing: str, algorithms: tuple[str, ...], settings: BenchSettings
) -> Iterator[Measurement]:
    """The algorithms in turn; MAPPO is one of them."""
    spec, config = SIZES[task]
    titles = {name: f"{name}, {sharing}, {spec.name}" for name in {*algorithms, BASE}}
    programs = {}
    for name, title in titles.items():
        setup = Setup(spec, config.replace(algorithm=name, sharing=sharing))
        programs[title] = compile_update(setup, settings.seeds)
    jobs = {
        title: TimedJob(1, partial(_run, program.run, program.inputs))
        for title, program in programs.items()
    }
    pairs = [(titles[name], "" if name == BASE else titles[BASE]) for name in algorithms]
    notes = {title: program.note for title, program in programs.items()}
    yield from SpeedComparison(jobs, pairs, ITERATION, notes).measure(settings)


def _run(program: Any, inputs: tuple[Any, ...]) -> None:
    jax.block_until_ready(program(*inputs))


def compile_update(setup: Setup, seeds: int) -> UpdateProgram:
    """Compile a policy iteration on a synthetic rollout."""
    hparams = setup.config.hyperparameters.as_arrays()
    inputs = hparams, setup.init(0), *synthetic_rollout(setup), jax.random.key(0)
    num_seeds, samples = None, setup.config.num_envs * setup.config.rollout
    if seeds > 1:
        num_seeds, inputs = seeds, jax.tree.map(lambda x: jnp.stack([x] * seeds), inputs)
    program = over_seeds(partial(update_learner, setup), num_seeds, (0,) * len(inputs), samples)
    started = time.perf_counter()
    program = program.lower(*inputs).compile()
    return UpdateProgram(program, inputs, time.perf_counter() - started)


def synthetic_rollout(setup: Setup) -> tuple[Trajectory, RolloutState]:
    """A random rollout of the task's sizes, and an empty rollout state."""
    random, spec, config = np.random.default_rng(0), setup.spec, setup.config
    lead = (config.rollout, config.num_envs, spec.num_agents)
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)  # noqa: E731
    size = spec.state_size if setup.row.critic_input == "state" else spec.obs_size
    ends = jnp.asarray(random.random(lead[:2]) < 0.01)
    discrete, mask = isinstance(spec.actions, Discrete), jnp.asarray(spec.actions.mask)
    choices = mask.shape[1]
    if discrete:
        actions = jnp.asarray(random.integers(0, choices, (*lead, 1)), jnp.int32)
    else:
        actions = draw(*lead, choices)
    trajectory = Trajectory(
        obs=draw(*lead, spec.obs_size),
        critic_input=draw(*lead, size),
        final_critic_input=draw(1, *lead[1:], size),
        action_mask=jnp.broadcast_to(mask, (*lead, choices)),
        alive=jnp.ones(lead, bool),
        episode_start=jnp.roll(ends, 1, axis=0),
        actor_hidden=jnp.zeros((*lead, config.gru_size)),
        action=actions,
        log_prob=jnp.full(lead, -float(np.log(choices)) if discrete else -0.5),
        reward=draw(*lead),
        terminated=ends,
        truncated=jnp.zeros_like(ends),
        episode_metrics=jnp.zeros((*ends.shape, 0)),
    )
    return trajectory, RolloutState(None, None, *empty_hidden_and_stats(setup, config.num_envs))  # pyright: ignore
