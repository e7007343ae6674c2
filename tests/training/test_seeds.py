"""Seeds on a CPU run in threads, each with exactly the numbers of a run of its own."""

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training import seeds
from fp3o.training.program import Program
from fp3o.training.seeds import SeedThreads
from fp3o.training.state import TrainState

TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2, sharing="partial")


def trained(num_seeds: int | None, seed: int, compiled: bool = False) -> tuple[TrainState, Any]:
    """State and metrics after two iterations."""
    trained = Program(VmapEnv(PROBES["credit"], 4), TINY, num_seeds)
    assert isinstance(trained._iterate, SeedThreads) == bool(num_seeds)
    state = trained.init(seed)
    if compiled:
        trained.compile(state)
    return trained.iterate(trained.iterate(state)[0])


@pytest.mark.parametrize("compiled", [False, True])
def test_seeds_in_threads_are_runs_of_one_seed(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds, "MIN_SAMPLES", 24)
    together = trained(3, 10, compiled)
    for i in range(3):
        alone = trained(None, 10 + i)
        own = jax.tree.map(lambda x, i=i: x[i], together)
        for one, other in zip(*map(jax.tree.leaves, (own, alone)), strict=True):
            if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
                one, other = jax.random.key_data(one), jax.random.key_data(other)
            np.testing.assert_array_equal(one, other)


def test_tiny_programs_and_gpus_run_all_seeds_in_one_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_threads() -> bool:
        made = Program(VmapEnv(PROBES["credit"], 4), TINY, num_seeds=3)
        return isinstance(made._iterate, SeedThreads)

    assert not in_threads()
    monkeypatch.setattr(seeds, "MIN_SAMPLES", 24)
    assert in_threads()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not in_threads()


def test_seeds_run_at_the_same_time_and_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    meeting = threading.Barrier(3, timeout=60)
    traced: list[int] = []
    wait: list[bool] = []

    def meet() -> None:
        if wait:
            meeting.wait()

    def function(x: Any, y: Any) -> Any:
        traced.append(1)
        jax.debug.callback(meet)
        return {"sum": x + y}

    run = SeedThreads(jax.jit(function), 3, (0, 1))
    x, y = jnp.arange(6.0).reshape(3, 2), np.arange(6.0, dtype=np.float32).reshape(2, 3)
    run(x, y)  # compiles with one seed alone
    wait.append(True)
    np.testing.assert_array_equal(run(x, y)["sum"], x + y.T)
    assert len(traced) == 1


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    def function(x: Any) -> Any:
        raise ValueError("not this seed")

    with pytest.raises(ValueError, match="not this seed"):
        SeedThreads(jax.jit(function), 2, (0,))(jnp.zeros(2))


def test_threads_have_the_settings_of_the_caller() -> None:
    with jax.enable_x64(True):
        x = jnp.arange(4.0)
        for _ in range(2):
            result = SeedThreads(jax.jit(lambda x: x / 3), 4, (0,))(x)
            assert result.dtype == np.float64
            np.testing.assert_array_equal(result, x / 3)
