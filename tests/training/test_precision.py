"""Training with products of the networks in bfloat16."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import SettingError
from fp3o.learning.check_config import check_config
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.spec import Discrete, EnvSpec
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


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("gru_size", [0, 8])
def test_observations_in_single_precision_and_parameters_in_double(
    gru_size: int, precision: Any
) -> None:
    config = Config(num_envs=4, rollout=10, hidden=(8,), gru_size=gru_size, precision=precision)
    with jax.enable_x64(True):
        setup = Setup(EnvSpec("any", Discrete(((2,),) * 3), 4, 4, (0,) * 3), config)
        learner, x = setup.init(0), jnp.ones((3, 10, 7), jnp.float32)
        hidden, starts = jnp.zeros((3, 1 if gru_size else 10, gru_size)), jnp.zeros((3, 10), bool)
        x = x.astype(jnp.bfloat16) if precision == "bfloat16" else x

        def loss(params: Any) -> Any:
            return setup.critic(params)(x, hidden, starts)[0].sum()

        gradients = jax.tree.leaves(jax.grad(loss)(learner.critic))
        assert {x.dtype for x in gradients} == {np.dtype("float64")}


def test_half_precision_is_for_the_built_in_network() -> None:
    config = Config(precision="bfloat16", network="custom_network:Attention")
    with pytest.raises(SettingError, match="built-in network"):
        check_config(config, PROBES["memory"].spec)
