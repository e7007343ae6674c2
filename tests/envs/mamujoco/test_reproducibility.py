"""Batches of MuJoCo tasks give the same bits with any threads and after a restart."""

import jax
import numpy as np
import pytest
from mamujoco_native import KEY, WITH_FORCES, draw, make, run, same, velocities

from fp3o.envs.mamujoco.native import NativeVecEnv
from fp3o.envs.mamujoco.simulation import default_threads
from fp3o.runs.checkpoint import from_arrays, to_arrays

pytestmark = pytest.mark.usefixtures("temporary_folder")


@pytest.mark.parametrize(("name", "variant"), [("Walker2d-2x3", "paper"), WITH_FORCES])
def test_results_do_not_depend_on_threads(
    name: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, two, or the number of the environment variable: the same bits, resets included."""
    monkeypatch.setenv("FP3O_THREADS", "2")
    envs = [make(name, variant, 9, threads=count) for count in (1, 2, None)]
    assert [env.simulation.batch.nthread for env in envs] == [1, 2, 2]
    states, _ = zip(*(env.reset(KEY) for env in envs), strict=True)
    if name.startswith("Ant"):  # some fail
        physics = states[0].physics.copy()
        physics[:4, velocities(envs[0])][:, 2] = 6.0
        states = tuple(state._replace(physics=physics) for state in states)
    rng, ends = np.random.default_rng(2), 0
    for _ in range(200 if name.startswith("Walker") else 60):
        action = draw(rng, envs[0])
        states, seen = zip(*map(NativeVecEnv.step, envs, states, [action] * 3), strict=True)
        same((states[0], seen[0]), (states[1], seen[1]))
        same((states[0], seen[0]), (states[2], seen[2]))
        ends += int(seen[0].episode_start.sum())
    assert ends > 3


def test_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread has too few simulations; invalid numbers are rejected."""
    monkeypatch.setenv("FP3O_THREADS", "3")
    assert [default_threads(envs) for envs in (1, 2, 3, 5, 100)] == [1, 1, 2, 3, 3]
    monkeypatch.delenv("FP3O_THREADS")
    assert default_threads(1) == 1 and default_threads(10_000) >= 1
    for wrong in ("abc", "0", "-1", "1.5"):
        monkeypatch.setenv("FP3O_THREADS", wrong)
        with pytest.raises(ValueError, match=f"FP3O_THREADS must be a positive integer.*'{wrong}'"):
            make("Hopper-3x1", threads=None)


@pytest.mark.parametrize(
    ("name", "variant"),
    [("Hopper-3x1", "paper"), ("Reacher-2x1", "paper"), ("HalfCheetah-6x1", "farama"), WITH_FORCES,
     ("Humanoid-9p8", "farama"), ("CoupledHalfCheetah-1p1", "farama"), ("Pusher-3p", "farama")],
)  # fmt: skip
def test_a_saved_state_continues_exactly(name: str, variant: str) -> None:
    """In another process too: the state consists of its arrays."""
    env = make(name, variant, 3)
    state, _ = run(env, env.reset(KEY)[0], 17, seed=1)
    kept = jax.tree.map(np.copy, state)
    wanted = run(env, state, 40, seed=2)
    same(state, kept)  # a returned state is not modified
    stored = from_arrays(make(name, variant, 3).reset(jax.random.key(5))[0], to_arrays(kept))
    for saved in (kept, stored):
        fresh = make(name, variant, 3)
        same(run(fresh, saved, 40, seed=2), wanted)
    used = make(name, variant, 3)
    run(used, used.reset(jax.random.key(3))[0], 10)
    same(run(used, kept, 40, seed=2), wanted)


def test_results_are_not_overwritten() -> None:
    """Results of earlier steps are not modified."""
    env = make(*WITH_FORCES, 3)
    state, first = env.reset(KEY)
    kept = jax.tree.map(np.copy, (state, first))
    _, seen = run(env, state, 1)
    later = jax.tree.map(np.copy, seen)
    run(env, state, 5, seed=3)
    same((state, first), kept)
    same(seen, later)
