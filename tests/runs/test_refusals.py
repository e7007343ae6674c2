"""Bad input is refused before anything runs: what was wrong, what is allowed, the nearest match."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.toys.probe import PROBES, Probe, probe
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import NonFiniteError
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.setup import Setup
from fp3o.training.program import Program

SPEC = PROBES["credit"].spec
TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"algorithm": "mapo"}, ["unknown algorithm 'mapo'", "did you mean 'mappo'", "happo"]),
        ({"sharing": "ful"}, ["unknown sharing 'ful'", "did you mean 'full'", "by_type"]),
        ({"sharing": (0, 1)}, ["maps 2 agents", "task has 3"]),
        ({"critic_sharing": (0, 0, 0, 1)}, ["maps 4 agents", "task has 3"]),
        ({"sharing": (0, -1, 1)}, ["numbers from 0 on", "-1"]),
        ({"sharing": ((0, 0, 0),) * 3}, ["has 3 layers", "network has 2"]),
        ({"minibatches": 5}, ["5 minibatches do not divide", "24 chunks", "1, 2, 3, 4, 6"]),
        ({"gru_size": 8, "sequence_length": 4}, ["chunk length 4 does not divide", "rollout of 6"]),
        ({"gru_size": 8}, ["chunk length 10 does not divide", "rollout of 6"]),
        ({"actor_lr": -1e-3}, ["actor_lr must be at least 0", "-0.001"]),
        ({"critic_lr": float("nan")}, ["critic_lr must be at least 0", "nan"]),
        ({"clip_range": 0.0}, ["clip must be above 0"]),
        ({"gamma": 1.5}, ["gamma must be between 0 and 1", "1.5"]),
        ({"entropy": -0.1}, ["entropy must be at least 0"]),
        ({"epochs": 0}, ["epochs must be at least 1"]),
        ({"num_envs": 0}, ["num_envs must be at least 1"]),
        ({"hidden": ()}, ["layers need positive sizes"]),
        ({"activation": "rellu"}, ["unknown activation 'rellu'", "did you mean 'relu'"]),
        ({"std_param": "softplus"}, ["unknown std", "sigmoid"]),
        ({"actor_rl": 1.0}, ["unknown setting 'actor_rl'", "did you mean 'actor_lr'"]),
    ],
    ids=str,
)
def test_refuses(changes: dict[str, Any], words: list[str]) -> None:
    """Each mistake is named, with what would be right."""
    with pytest.raises(ValueError) as caught:
        Setup(SPEC, TINY.replace(**changes))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"blocks": 4}, "blocks must be 1 to 3"),
        ({"refresh_ratios": True, "schedule": "sequential"}, "whole team"),
        ({"split": "averge"}, "did you mean 'average'"),
        ({"on_failed_condition": "undo"}, "keep, revert"),
        ({"schedule": "in_turns"}, "did you mean 'in_turn'"),
    ],
    ids=str,
)
def test_refuses_rows_that_cannot_work(changes: dict[str, Any], words: str) -> None:
    """The same for a row of one's own."""
    row = dataclasses.replace(ALGORITHMS["fp3o"])
    for name, value in changes.items():
        # Past the type checks that run under test only: users meet the message, not the checker.
        object.__setattr__(row, name, value)
    with pytest.raises(ValueError, match=words):
        Setup(SPEC, TINY.replace(algorithm=row))


def test_refuses_unknown_probe_and_wrong_batch() -> None:
    """Names of tasks and sizes of batches."""
    with pytest.raises(ValueError, match="did you mean 'memory'"):
        probe("memry")
    with pytest.raises(ValueError, match=r"8 environments.*num_envs=4"):
        Program(VmapEnv(PROBES["credit"], 8), TINY)


def test_rates_of_every_seed_are_checked() -> None:
    """An array of rates is refused for its one bad number."""
    with pytest.raises(ValueError, match=r"clip must be above 0, got -0\.1"):
        Setup(
            SPEC,
            dataclasses.replace(TINY, hparams=Hyperparameters(clip_range=jnp.array([0.1, -0.1]))),
        )


@dataclasses.dataclass(frozen=True)
class Broken(Probe):
    """Agent 1 of an environment produces NaN at the second step of an episode."""

    part: str = "reward"

    def step(self, state: Any, action: Any, key: Any) -> Any:
        new, reward, terminated, truncated = super().step(state, action, key)
        bad = jnp.where((jnp.arange(3) == 1) & (state.time == 1), jnp.nan, 0.0)
        return new, reward + bad if self.part == "reward" else reward, terminated, truncated

    def observe(self, state: Any) -> Any:
        seen = super().observe(state)
        bad = jnp.where((jnp.arange(3) == 1) & (state.time == 1), jnp.nan, 0.0)[:, None]
        parts = {name: getattr(seen, name) for name in ("obs", "state")}
        spoilt = {n: x + (bad if n == self.part else 0.0) for n, x in parts.items()}
        return seen._replace(**spoilt)


@pytest.mark.parametrize(
    ("part", "words", "num_seeds"),
    [
        ("reward", "reward", None),
        ("reward", "reward", 2),
        ("obs", "observation", None),
        ("state", "critic's view", None),
    ],
)
def test_numbers_that_are_not_finite(part: str, words: str, num_seeds: int | None) -> None:
    """Environment, agent and step are named, and the state from before is still good."""
    game = Broken("broken", (1, 1, 1), (2, 2, 2), length=3, part=part)
    program = Program(VmapEnv(game, 4), TINY, num_seeds)
    state = program.init(0)
    with pytest.raises(NonFiniteError) as caught:
        program.iterate(state)
    message = f"the {words} is not finite in environment 0, agent 1, step 1"
    assert message in str(caught.value)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.learner))
