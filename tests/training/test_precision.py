"""Training with products of the networks in bfloat16."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program


class OnHost(VmapEnv):
    """The environments, stepped from Python."""

    jittable = False

    def step(self, state: Any, action: Any) -> Any:
        return super().step(state, jnp.asarray(action))


@pytest.mark.parametrize(
    ("gru_size", "kind", "num_seeds"),
    [(0, VmapEnv, None), (8, VmapEnv, 2), (0, OnHost, None), (8, OnHost, None)],
)
def test_half_precision(gru_size: int, kind: Any, num_seeds: int | None) -> None:
    """The state stays in float32, and rollout and learner agree about the policies."""
    config = Config(num_envs=4, rollout=10, hidden=(8,), gru_size=gru_size, precision="bfloat16")
    program = Program(kind(PROBES["memory"], 4), config, num_seeds)
    before = program.init(0)
    after, metrics = program.iterate(before)
    for one, other in zip(*map(jax.tree.leaves, (before, after)), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
    assert np.max(metrics["replay_error"]) < 0.01
    assert np.isfinite(np.asarray(metrics["value_loss"])).all()
    wrong = [x.dtype for x in jax.tree.leaves(after.learner) if x.dtype == jnp.bfloat16]
    assert not wrong
