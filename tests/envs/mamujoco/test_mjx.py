"""The MuJoCo tasks on MJX against MuJoCo itself: trajectories, ends and starts of episodes."""

# pyright: reportAttributeAccessIssue=false

import dataclasses
import sys
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from fp3o.envs.api import Env
from fp3o.envs.mamujoco.mjx import MJX_BODIES, NUM_STARTS, MjxEnv, MjxPhysics, MjxState
from fp3o.envs.mamujoco.native import NativeVecEnv
from fp3o.envs.mamujoco.task import BodyTask, body_task
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program
from fp3o.types import TimeStep

pytest.importorskip("mujoco.mjx")

KEY = jax.random.key(0)
ENVS = 4
PARTITIONS = {
    "HalfCheetah": "6x1", "Hopper": "3x1", "Walker2d": "2x3", "Reacher": "2x1",
    "ManyagentSwimmer": "8x2", "Swimmer": "2x1", "InvertedPendulum": "1x1",
    "InvertedDoublePendulum": "1x1",
}  # fmt: skip


def short(name: str, limit: int, variant: str = "paper") -> BodyTask:
    """A task with another time limit."""
    task = body_task(name, variant)
    return dataclasses.replace(task, body=dataclasses.replace(task.body, max_episode_steps=limit))


def same_start(task: BodyTask, native: NativeVecEnv) -> tuple[Any, Any]:
    """A native batch at the start of an episode, and the same states for MJX."""
    state, _ = native.reset(KEY)
    data, part = mujoco.MjData(task.model), int(mujoco.mjtState.mjSTATE_INTEGRATION)
    each = []
    for row in state.physics:
        mujoco.mj_setState(task.model, data, row, part)
        mujoco.mj_forward(task.model, data)
        names = "qpos", "qvel", "qacc_warmstart", *task.field_names
        each.append({name: np.array(getattr(data, name)) for name in names})
    fields = {name: jnp.asarray(np.stack([one[name] for one in each])) for name in each[0]}
    qpos, qvel, warm = (fields.pop(name) for name in ("qpos", "qvel", "qacc_warmstart"))
    physics, time = MjxPhysics(qpos, qvel, warm, fields), jnp.zeros(ENVS, int)
    progress = jnp.asarray(state.progress)
    return state, (MjxState(physics, progress, time), jax.random.split(KEY, ENVS))


def step_both(task: BodyTask, steps: int, scale: float) -> list[tuple[TimeStep, TimeStep]]:
    """Time steps of both under the same random actions from the same initial state."""
    native, twin = NativeVecEnv(task, ENVS, 1, np.float64), VmapEnv(MjxEnv(task), ENVS)
    one, other = same_start(task, native)
    rng, mask, step = np.random.default_rng(0), task.spec.actions.mask, jax.jit(twin.step)
    seen = []
    for _ in range(steps):
        action = rng.uniform(-scale, scale, (ENVS, *mask.shape)) * mask
        one, there = native.step(one, action)
        other, here = step(other, jnp.asarray(action))
        seen.append((there, jax.device_get(here)))
    return seen


def rows(step: TimeStep, which: np.ndarray) -> TimeStep:
    """Some of the environments."""
    return jax.tree.map(lambda x: np.asarray(x)[which], step)


def check(there: TimeStep, here: TimeStep, obs: float, reward: float) -> None:
    """Equal up to tolerances, with the same ends."""
    np.testing.assert_allclose(here.final_obs, there.final_obs, atol=obs, rtol=0)
    np.testing.assert_allclose(here.final_state, there.final_state, atol=obs, rtol=0)
    np.testing.assert_allclose(here.reward, there.reward, atol=reward, rtol=0)
    for name in ("action_mask", "alive", "terminated", "truncated", "episode_start"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), name)


@pytest.mark.parametrize(
    ("name", "scale", "obs", "reward"),
    [
        # Small actions: under large ones MuJoCo itself turns 1e-7 into 0.1 within 50 steps.
        ("HalfCheetah-6x1", 0.3, 1e-3, 5e-5),
        pytest.param("Reacher-2x1", 1.0, 5e-4, 1e-5, marks=pytest.mark.slow),
        pytest.param("ManyagentSwimmer-2x2", 1.0, 3e-4, 5e-5, marks=pytest.mark.slow),
    ],
)
def test_trajectories_equal_mujocos(name: str, scale: float, obs: float, reward: float) -> None:
    """An episode of 50 steps, its end by the time limit, and the start of the next one."""
    seen = step_both(short(name, 50), 51, scale)
    for there, here in seen[:50]:
        check(there, here, obs, reward)
    _, last = seen[49]
    assert last.truncated.all() and last.episode_start.all() and not last.terminated.any()
    assert not np.allclose(last.obs, last.final_obs)
    assert np.ptp(last.obs, 0).max() > 0, "all environments started from the same state"
    _, after = seen[50]
    assert not after.episode_start.any() and np.isfinite(after.obs).all()


@pytest.mark.slow
@pytest.mark.parametrize("body", MJX_BODIES)
def test_double_precision_is_mujoco(body: str) -> None:
    """In double precision they agree, failures included."""
    task = body_task(f"{body}-{PARTITIONS[body]}", "farama")
    with jax.enable_x64(True):
        running = np.ones(ENVS, bool)
        for there, here in step_both(task, 40, 1.0):
            check(rows(there, running), rows(here, running), 1e-6, 1e-6)
            running &= ~np.asarray(there.episode_start)


def test_initial_states_follow_the_rules() -> None:
    """Initial states are those of the task, observed as in MuJoCo, and most are different."""
    task = body_task("Reacher-2x1", "paper")
    env = MjxEnv(task)
    assert isinstance(env, Env)
    start = jax.vmap(env.reset)(jax.random.split(KEY, 256))
    qpos, qvel = np.asarray(start.physics.qpos), np.asarray(start.physics.qvel)
    assert (np.abs(qpos[:, :2]) <= 0.1).all() and (np.abs(qpos[:, 2:]) <= 0.2).all()
    assert (np.abs(qvel[:, :2]) <= 0.005).all() and (qvel[:, 2:] == 0).all()
    assert len(np.unique(qpos, axis=0)) > 256 * (1 - 256 / NUM_STARTS)
    assert (np.asarray(start.time) == 0).all()
    data = mujoco.MjData(task.model)
    data.qpos[:], data.qvel[:] = qpos[0], qvel[0]
    mujoco.mj_forward(task.model, data)
    fields = {"qpos": data.qpos, "qvel": data.qvel, "xpos": data.xpos}
    observation = env.observe(jax.tree.map(lambda x: x[0], start))
    readings = task.readings(np, fields)
    np.testing.assert_allclose(observation.obs, task.obs_from(np, readings), atol=1e-5)
    np.testing.assert_allclose(observation.state, task.state_from(np, readings), atol=1e-5)
    progress = task.body.rewards.progress(np, fields)
    np.testing.assert_allclose(start.progress[0], progress, atol=1e-6)


def test_a_diverged_simulation_ends_without_reward() -> None:
    """With huge velocities all results are finite and the episode ends."""
    env = MjxEnv(body_task("InvertedPendulum-1x1", "farama"))
    start = env.reset(KEY)
    fast = start.physics._replace(qvel=jnp.asarray([1e12, 1e12]))
    step = jax.jit(env.step)
    state, reward, failed, late = step(start._replace(physics=fast), jnp.zeros((1, 1)), KEY)
    assert failed and not late and reward == 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((state, env.observe(state))))
    _, reward, failed, _ = step(start, jnp.asarray([[jnp.nan]]), KEY)
    assert failed and np.isnan(reward), "invalid actions must not count as a failure"


@pytest.mark.parametrize(
    ("name", "variant"), [("Ant-2x4", "paper"), ("Humanoid-9p8", "farama"), ("Pusher-3p", "farama")]
)
def test_other_bodies_are_rejected(name: str, variant: str) -> None:
    """The message names the bodies that work."""
    with pytest.raises(ValueError, match=r"does not run on MJX.*HalfCheetah, Hopper"):
        MjxEnv(body_task(name, variant))


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to install it."""
    monkeypatch.delattr(mujoco, "mjx")
    monkeypatch.setitem(sys.modules, "mujoco.mjx", None)
    with pytest.raises(ImportError, match=r"pip install 'fp3o\[mjx\]'"):
        MjxEnv(body_task("Reacher-2x1", "paper"))


def test_trains() -> None:
    """One training iteration, with the rollout in one program."""
    config = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2)
    program = Program(VmapEnv(MjxEnv(short("InvertedPendulum-1x1", 3, "farama")), 4), config)
    state, metrics = program.iterate(program.init(0))
    assert metrics["episodes"] >= 4 and np.isfinite(metrics["episode_return"])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.learner))
