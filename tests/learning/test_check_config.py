"""Invalid settings are rejected before anything is compiled, with the nearest match."""

import dataclasses
import time
from typing import Any

import jax.numpy as jnp
import pytest

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.toys.probe import PROBES, probe
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.training.program import Program

SPEC = PROBES["credit"].spec
TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=1)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"algorithm": "mapo"}, ["unknown algorithm 'mapo'", "did you mean 'mappo'", "happo"]),
        ({"sharing": "ful"}, ["unknown sharing 'ful'", "did you mean 'full'", "by_type"]),
        ({"sharing": (0, 1)}, ["is for 2 agents", "task has 3"]),
        ({"critic_sharing": (0, 0, 0, 1)}, ["is for 4 agents", "task has 3"]),
        ({"sharing": (0, -1, 1)}, ["numbers from 0 on", "-1"]),
        ({"sharing": ((0, 0, 0),) * 3}, ["has 3 layers", "network has 2"]),
        ({"minibatches": 5}, ["5 minibatches do not divide", "24 sequences", "1, 2, 3, 4, 6"]),
        (
            {"gru_size": 8, "sequence_length": 4},
            ["sequence_length 4 does not divide", "rollout of 6"],
        ),
        ({"gru_size": 8}, ["sequence_length 10 does not divide", "rollout of 6"]),
        ({"actor_lr": -1e-3}, ["actor_lr must be at least 0", "-0.001"]),
        ({"critic_lr": float("nan")}, ["critic_lr must be at least 0", "nan"]),
        ({"clip_range": 0.0}, ["clip_range must be above 0"]),
        ({"gamma": 1.5}, ["gamma must be between 0 and 1", "1.5"]),
        ({"entropy_coef": -0.1}, ["entropy_coef must be at least 0"]),
        ({"epochs": 0}, ["epochs must be at least 1"]),
        ({"num_envs": 0}, ["num_envs must be at least 1"]),
        ({"hidden": ()}, ["layers need positive sizes"]),
        ({"activation": "rellu"}, ["unknown activation 'rellu'", "did you mean 'relu'"]),
        ({"std_param": "softplus"}, ["unknown std_param", "sigmoid"]),
        ({"hidden": (4,) * 65}, ["at most 64 hidden layers"]),
        ({"gru_size": 10_001}, ["at most 64 hidden layers of 10000 units"]),
        ({"rollout": 2**31}, ["a rollout has at most 2147483647 samples", "lower num_envs"]),
        ({"epochs": 2**31}, ["epochs must be at most 2147483647"]),
        ({"actor_rl": 1.0}, ["unknown setting 'actor_rl'", "did you mean 'actor_lr'"]),
    ],
    ids=str,
)
def test_rejects(changes: dict[str, Any], fragments: list[str]) -> None:
    """The message says what was wrong and what is allowed."""
    with pytest.raises(ValueError) as caught:
        Setup(SPEC, TINY.replace(**changes))
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"blocks": 4}, "blocks of agents must be 1 to 3"),
        ({"blocks": "x"}, "blocks must be an integer or none, got 'x'"),
        ({"gated": "maybe"}, "gated must be true or false, got 'maybe'"),
        ({"rounds": 0}, "rounds must be between 1 and 1000, got 0"),
        ({"critic_passes": 10**9}, "critic_passes must be between 1 and 1000"),
        ({"inner_clip": float("nan")}, "inner_clip must be at least 0, got nan"),
        ({"clip_slope": 7.0}, "clip_slope must be between 0 and 1"),
        ({"refresh_ratios": True, "schedule": "sequential"}, "whole team"),
        ({"split": "averge"}, "did you mean 'average'"),
        ({"on_failed_condition": "undo"}, "keep, revert"),
        ({"schedule": "sequentials"}, "did you mean 'sequential'"),
    ],
    ids=str,
)
def test_rejects_rows_that_cannot_work(changes: dict[str, Any], fragments: str) -> None:
    """The same for a custom row."""
    row = dataclasses.replace(ALGORITHMS["fp3o"])
    for name, value in changes.items():
        # Bypasses the type checks that run only under test, so that the message is reached.
        object.__setattr__(row, name, value)
    with pytest.raises(ValueError, match=fragments):
        Setup(SPEC, TINY.replace(algorithm=row))


def test_divisors_are_found_quickly() -> None:
    """The nearest ones below and above, for numbers of any size."""
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"divisors near 7 are 1, 2, 4, 5, 8, 10, 16, 20$"):
        Setup(SPEC, TINY.replace(num_envs=10**6, rollout=1000, minibatches=7))
    with pytest.raises(ValueError, match=r"divisors near 1000000000 are 1$"):
        Setup(SPEC, TINY.replace(num_envs=1, rollout=2**31 - 1, minibatches=10**9))
    assert time.perf_counter() - started < 1


def test_rejects_unknown_probe_and_wrong_batch() -> None:
    """Names of tasks and sizes of batches."""
    with pytest.raises(ValueError, match="did you mean 'memory'"):
        probe("memry")
    with pytest.raises(ValueError, match=r"8 environments.*num_envs=4"):
        Program(VmapEnv(PROBES["credit"], 8), TINY)


def test_hyperparameters_of_every_seed_are_checked() -> None:
    """An array with a single invalid number is rejected."""
    with pytest.raises(ValueError, match=r"clip_range must be above 0, got -0\.1"):
        Setup(SPEC, TINY.replace(clip_range=jnp.array([0.1, -0.1])))
