"""A policy iteration with the kernels and loops for GPUs (interpreted) equals one without them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.bench.learning import synthetic_rollout
from fp3o.learning import losses, returns, update
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.networks import gru, mlp, network
from fp3o.spec import Discrete, EnvSpec
from fp3o.training import faults, program
from fp3o.training.program import update_learner

SPEC = EnvSpec("three agents", Discrete(((5,),) * 3), 70, 80, (0, 1, 1))


def learners_after(sharing: str, gru_size: int, precision: Any = "float32") -> Any:
    """Two seeds after an iteration on random data."""
    update, inputs = iteration(sharing, gru_size, precision)
    return update(*inputs)[0]


def iteration(sharing: str, gru_size: int, precision: Any) -> tuple[Any, Any]:
    """An update of two seeds, and random data for it."""
    config = Config(
        num_envs=8, rollout=8, epochs=1, minibatches=2, sequence_length=2 if gru_size else None,
        hidden=(16, 16), gru_size=gru_size, sharing=sharing, time_limit="terminate",
        precision=precision,
    )  # fmt: skip
    setup = Setup(SPEC, config)
    rollout, key = synthetic_rollout(setup), jax.random.key(0)
    inputs = config.hyperparameters.as_arrays(), setup.init(0), *rollout, key
    both = jax.tree.map(lambda x: jnp.stack([x, x]), inputs)
    return jax.jit(jax.vmap(partial(update_learner, setup))), both


@pytest.mark.parametrize(("sharing", "gru_size"), [("full", 16), ("none", 0), ("partial", 16)])
def test_an_iteration_with_kernels_equals_one_without(sharing, gru_size, monkeypatch):
    plain = learners_after(sharing, gru_size)
    used = []
    for module in (update, network):
        monkeypatch.setattr(module, "on_gpu", lambda: True)
    for module in (losses, faults):
        monkeypatch.setattr(module, "materialised", jax.lax.optimization_barrier)
    for module in (gru, mlp):
        monkeypatch.setattr(module, "use_kernels", lambda: True)
    for module in (returns, gru, program):
        monkeypatch.setattr(module, "scan_unroll", lambda steps=25: steps)
    monkeypatch.setattr(gru, "kernel_works", lambda *_: used.append("gru") or True)
    monkeypatch.setattr(mlp, "mlp_kernel_works", lambda *_: used.append("mlp") or True)
    kernels = learners_after(sharing, gru_size)
    assert {*used} == ({"gru", "mlp"} if gru_size else {"mlp"})
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(kernels), strict=True):
        assert np.abs(one - other).max() < 1e-5


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(("sharing", "gru_size"), [("full", 16), ("none", 0)])
def test_kernels_can_be_lowered_for_gpus(sharing, gru_size, precision, monkeypatch):
    monkeypatch.setattr(gru, "kernel_works", lambda *_: True)
    monkeypatch.setattr(mlp, "mlp_kernel_works", lambda *_: True)
    update, inputs = iteration(sharing, gru_size, precision)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "triton" in update.trace(*inputs).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("gru_size", [0, 16])
def test_half_precision_learns_nearly_the_same(gru_size):
    """Changes of the parameters point in the same direction, and are in single precision."""
    config = Config(rollout=10, hidden=(16, 16), gru_size=gru_size, sharing="partial")
    before = Setup(SPEC, config).init(0)
    single, half = (learners_after("partial", gru_size, p) for p in ("float32", "bfloat16"))
    for start, one, other in zip(*map(flat, (before, single, half)), strict=True):
        assert one.dtype == other.dtype == np.float32
        one, other = one - start, other - start
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert 0.97 < cosine < 0.999999


def flat(learner: Any) -> list[np.ndarray]:
    """Parameters of actor and critic, of the first seed where there are two."""
    parts = [jax.tree.leaves(part) for part in (learner.actor, learner.critic)]
    first = [[x[0] if x.ndim == 3 else x for x in part] for part in parts]
    return [np.concatenate([np.ravel(x) for x in part]) for part in first]
