"""Training with critics that look across agents: algorithms, sharings, seeds, devices, hosts."""

from typing import Any

import jax
import numpy as np
import pytest
from host_probe import HostProbe
from mortal_env import MortalEnv
from tiny_programs import TINY, close

from fp3o.algorithms.table import ALGORITHMS, REGISTERED_IN
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program

CREDIT: Any = PROBES["credit"]
BUILT_IN = [name for name in ALGORITHMS if name not in REGISTERED_IN]
RECURRENT: Any = {"gru_size": 4, "sequence_length": 3}


def program(config: Config, **options: Any) -> Program:
    return Program(VmapEnv(MortalEnv(), config.num_envs), config, **options)


def learns(config: Config, made: Program | None = None) -> None:
    """After two iterations everything is finite, and all parameters of the critics have changed."""
    made = made or program(config)
    first = made.init(0)
    second, metrics = made.iterate(first)
    second, metrics = made.iterate(second)
    assert np.isfinite(metrics["value_loss"]).all()
    for before, after in zip(first.learner.critic, second.learner.critic, strict=True):
        moved = np.asarray(before) != np.asarray(after)
        # A bias before keys shifts all scores alike, and has no gradient.
        assert moved.mean() > 0.7 and np.isfinite(after).all()


def test_a_sequential_algorithm_with_separate_critics_and_a_recurrent_actor() -> None:
    """Each stage updates the critic of its agent, which looks at all agents."""
    learns(TINY.replace(algorithm="happo", sharing="none", critic="graph", **RECURRENT))


@pytest.mark.parametrize("sharing", ["full", "partial", "none", "by_type"])
@pytest.mark.parametrize("critic", ["attention", "graph"])
@pytest.mark.parametrize("algorithm", BUILT_IN)
def test_every_algorithm_and_sharing(algorithm: str, critic: str, sharing: str) -> None:
    """The critic may share other parameters than the actor."""
    other = {"full": None, "partial": "by_type", "none": "full", "by_type": "none"}[sharing]
    config = TINY.replace(algorithm=algorithm, sharing=sharing, critic_sharing=other, critic=critic)
    learns(config.replace(**RECURRENT) if critic == "attention" else config)


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_seeds_in_one_program_are_separate_runs(critic: str) -> None:
    """Two seeds together and one after another."""
    config = TINY.replace(algorithm="a2po", critic=critic)
    together, alone = program(config, num_seeds=2), program(config)
    both, _ = together.iterate(together.init(0))
    for seed in range(2):
        one, _ = alone.iterate(alone.init(seed))
        close(jax.tree.map(lambda x, seed=seed: x[seed], both.learner), one.learner, atol=1e-4)


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_devices_share_the_environments(critic: str) -> None:
    """Two devices learn what one does."""
    config = TINY.replace(algorithm="fp3o", critic=critic, blocks=2)
    results = []
    for devices in (None, jax.devices()[:2]):
        made = program(config, devices=devices)
        state, _ = made.iterate(made.init(0))
        results.append(made.fetch(state.learner))
    close(*results, atol=1e-4)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_host_environments(num_seeds: int | None) -> None:
    """The inputs are put together after the rollout."""
    config = TINY.replace(algorithm="a2po", critic="attention", sharing="none", **RECURRENT)
    env = HostProbe(CREDIT, config.num_envs * (num_seeds or 1))
    learns(config, Program(env, config, num_seeds))
