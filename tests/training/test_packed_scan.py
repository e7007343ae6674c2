"""Loops whose arrays are packed compute what plain ones do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training import packed_scan as module
from fp3o.training import rollout
from fp3o.training.program import Program


@pytest.fixture
def packing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU."""
    monkeypatch.setattr(module, "on_gpu", lambda: True)
    monkeypatch.setattr(rollout, "on_gpu", lambda: True)


def step(carry: Any, x: Any) -> Any:
    """Numbers of all kinds; `bits` are those of a NaN, which a copy must not change."""
    total, count, flag, bits, key = carry
    key, now = jax.random.split(key)
    new = total + x * jax.random.uniform(now, total.shape), count + 1, ~flag, bits ^ 1, key
    return new, {"total": new[0], "flag": flag, "key": now, "bits": bits}


START = (
    jnp.zeros((2, 3)), jnp.zeros((), int), jnp.ones(4, bool), jnp.full(2, 0x7FC00001, jnp.uint32),
    jax.random.key(3),
)  # fmt: skip


def same(one: Any, other: Any) -> None:
    def raw(x: Any) -> Any:
        key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if key else x)

    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(raw(x), raw(y))


@pytest.mark.parametrize("steps", [1, 7, 8])
def test_scan(packing: None, steps: int) -> None:
    xs = jnp.arange(steps, dtype=jnp.float32)
    same(module.packed_scan(step, START, xs), jax.lax.scan(step, START, xs))


def test_while(packing: None) -> None:
    more, once = lambda carry: carry[1] < 5, lambda carry: step(carry, 1.0)[0]
    same(module.packed_while(more, once, START), jax.lax.while_loop(more, once, START))


def test_large_arrays_are_not_packed(packing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PACKED", 10)
    monkeypatch.delattr(module, "pack_arrays")
    xs = jnp.arange(3, dtype=jnp.float32)
    same(module.packed_scan(step, START, xs), jax.lax.scan(step, START, xs))


def test_numbers_that_change_their_type_are_promoted(packing: None) -> None:
    """What JAX's loops do with a carry of Python's numbers, or with one that does not fit."""
    halves = lambda carry, x: ({"t": carry["t"] + 0.5 * x}, carry["t"])  # noqa: E731
    xs = jnp.ones(5)
    same(module.packed_scan(halves, {"t": 0}, xs), jax.lax.scan(halves, {"t": 0}, xs))
    count = lambda carry, x: (carry + 1, carry)  # noqa: E731
    same(module.packed_scan(count, 0, xs), jax.lax.scan(count, 0, xs))
    once, more = lambda carry: carry + 1, lambda carry: carry < 3
    same(module.packed_while(more, once, 0), jax.lax.while_loop(more, once, 0))
    with pytest.raises(TypeError, match="carry"):
        module.packed_scan(halves, {"t": jnp.int32(0)}, xs)
    turned = lambda carry, x: (carry.reshape(3, 2), x)  # noqa: E731
    with pytest.raises(TypeError, match="carry"):
        module.packed_scan(turned, jnp.zeros((2, 3)), xs)


@pytest.mark.parametrize("gru_size", [0, pytest.param(8, marks=pytest.mark.slow)])
def test_training(gru_size: int, request: pytest.FixtureRequest) -> None:
    """A rollout and an evaluation, with and without packing and noise sampled ahead."""
    config = Config(num_envs=4, rollout=6, hidden=(8,), gru_size=gru_size, sequence_length=3)

    def train() -> Any:
        program = Program(VmapEnv(PROBES["memory"], 4), config, num_seeds=2)
        state, metrics = program.iterate(program.init(0))
        keys = program.keys(0, 1)
        env = VmapEnv(PROBES["memory"], 5)
        return state.learner, metrics, program.evaluate(state.learner.actor, env, keys, 3)

    plain = train()
    request.getfixturevalue("packing")
    for x, y in zip(jax.tree.leaves(plain), jax.tree.leaves(train()), strict=True):
        np.testing.assert_allclose(np.asarray(x, float), np.asarray(y, float), atol=1e-5)
