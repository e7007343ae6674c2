"""Batches of the MuJoCo tasks: made, placed in a state, stepped with random actions, compared."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

from typing import Any

import jax
import mujoco
import numpy as np

from fp3o.envs.mamujoco.catalogue import body_entry, listed_names
from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.envs.mamujoco.task import body_task
from fp3o.types import TimeStep

KEY = jax.random.key(0)
TASKS = [
    (name, profile)
    for name in listed_names()
    if (entry := body_entry(name))
    for profile in entry.profiles
]
WITH_FORCES = ("Ant-2x4", "farama")
"""A task whose observations include forces, which are computed after each step."""


def make(name: str, variant: str = "paper", envs: int = 1, **more: Any) -> NativeVecEnv:
    """A batch, by default in double precision."""
    return NativeVecEnv(
        body_task(name, variant), envs, **{"threads": 1, "dtype": np.float64, **more}
    )


def draw(rng: np.random.Generator, env: NativeVecEnv, scale: float = 1.2) -> np.ndarray:
    """Random actions, some beyond the limits."""
    mask = env.spec.actions.mask
    return rng.uniform(-scale, scale, (env.num_envs, *mask.shape)) * mask


def run(
    env: NativeVecEnv, state: NativeState, steps: int, seed: int = 0
) -> tuple[NativeState, list[TimeStep]]:
    """Random actions for some steps, and all time steps."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        state, timestep = env.step(state, draw(rng, env))
        seen.append(timestep)
    return state, seen


def rows(tree: Any, *which: Any) -> Any:
    """Some environments of a tree of arrays, copied."""
    return jax.tree.map(lambda x: np.asarray(x)[list(which)].copy(), tree)


def same(one: Any, other: Any) -> None:
    """Two trees are equal bit for bit."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype) and a.tobytes() == b.tobytes()


def velocities(env: NativeVecEnv) -> slice:
    """Indices of qvel in the integration state, after the time and qpos."""
    model = env.task.model
    return slice(1 + model.nq, 1 + model.nq + model.nv)


def place(env: NativeVecEnv, qpos: np.ndarray, qvel: np.ndarray) -> NativeState:
    """All environments at one position and velocity, as at the start of an episode."""
    state, _ = env.reset(KEY)
    everyone = np.arange(env.num_envs)
    batch, fields = env.simulation.batch, env.simulation.fields
    batch.reset(everyone, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
    fields["qpos"][...], fields["qvel"][...] = qpos, qvel
    batch.forward(everyone)
    progress = np.array(env.task.body.rewards.progress(np, fields))
    return state._replace(physics=batch.state.copy(), progress=progress)


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
