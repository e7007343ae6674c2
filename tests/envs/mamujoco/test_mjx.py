"""The MuJoCo tasks on MJX against MuJoCo itself: paths, ends and new beginnings."""

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
from fp3o.envs.mamujoco.mjx import BODIES, STARTS, MjxGame, Physics, State
from fp3o.envs.mamujoco.native import Native
from fp3o.envs.mamujoco.task import World, world
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


def short(name: str, limit: int, variant: str = "paper") -> World:
    """A task whose episodes end after so many steps."""
    whole = world(name, variant)
    return dataclasses.replace(whole, robot=dataclasses.replace(whole.robot, limit=limit))


def same_start(task: World, native: Native) -> tuple[Any, Any]:
    """A batch at the start of an episode natively, and the same places for MJX."""
    state, _ = native.reset(KEY)
    data, kind = mujoco.MjData(task.model), int(mujoco.mjtState.mjSTATE_INTEGRATION)
    each = []
    for row in state.physics:
        mujoco.mj_setState(task.model, data, row, kind)
        mujoco.mj_forward(task.model, data)
        names = "qpos", "qvel", "qacc_warmstart", *task.fields
        each.append({name: np.array(getattr(data, name)) for name in names})
    fields = {name: jnp.asarray(np.stack([one[name] for one in each])) for name in each[0]}
    qpos, qvel, warm = (fields.pop(name) for name in ("qpos", "qvel", "qacc_warmstart"))
    physics, time = Physics(qpos, qvel, warm, fields), jnp.zeros(ENVS, int)
    gauge = jnp.asarray(state.gauge)
    return state, (State(physics, gauge, time), jax.random.split(KEY, ENVS))


def play(task: World, steps: int, scale: float) -> list[tuple[TimeStep, TimeStep]]:
    """What both show while the same random actions are played from the same start."""
    native, twin = Native(task, ENVS, 1, np.float64), VmapEnv(MjxGame(task), ENVS)
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
    """Within so much of each other, and the same ends."""
    np.testing.assert_allclose(here.final_obs, there.final_obs, atol=obs, rtol=0)
    np.testing.assert_allclose(here.final_state, there.final_state, atol=obs, rtol=0)
    np.testing.assert_allclose(here.reward, there.reward, atol=reward, rtol=0)
    for name in ("legal", "alive", "terminated", "truncated", "start"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), name)


@pytest.mark.parametrize(
    ("name", "scale", "obs", "reward"),
    [
        # Gentle: under full actions MuJoCo itself makes 0.1 of 1e-7 at the start in 50 steps.
        ("HalfCheetah-6x1", 0.3, 1e-3, 5e-5),
        pytest.param("Reacher-2x1", 1.0, 5e-4, 1e-5, marks=pytest.mark.slow),
        pytest.param("ManyagentSwimmer-2x2", 1.0, 3e-4, 5e-5, marks=pytest.mark.slow),
    ],
)
def test_path_is_mujocos(name: str, scale: float, obs: float, reward: float) -> None:
    """An episode of 50 steps, its end by the time limit, and the beginning of the next one."""
    seen = play(short(name, 50), 51, scale)
    for there, here in seen[:50]:
        check(there, here, obs, reward)
    _, last = seen[49]
    assert last.truncated.all() and last.episode_start.all() and not last.terminated.any()
    assert not np.allclose(last.obs, last.final_obs)
    assert np.ptp(last.obs, 0).max() > 0, "all environments began at the same place"
    _, after = seen[50]
    assert not after.episode_start.any() and np.isfinite(after.obs).all()


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_double_precision_is_mujoco(body: str) -> None:
    """Single precision is all that separates them: in double they agree, failures included."""
    task = world(f"{body}-{PARTITIONS[body]}", "farama")
    with jax.enable_x64(True):
        running = np.ones(ENVS, bool)
        for there, here in play(task, 40, 1.0):
            check(rows(there, running), rows(here, running), 1e-6, 1e-6)
            running &= ~np.asarray(there.episode_start)


def test_starts_are_the_tasks_own() -> None:
    """Every start is one the rules draw, seen as MuJoCo shows it, and most are different."""
    task = world("Reacher-2x1", "paper")
    game = MjxGame(task)
    assert isinstance(game, Env)
    start = jax.vmap(game.reset)(jax.random.split(KEY, 256))
    qpos, qvel = np.asarray(start.physics.qpos), np.asarray(start.physics.qvel)
    assert (np.abs(qpos[:, :2]) <= 0.1).all() and (np.abs(qpos[:, 2:]) <= 0.2).all()
    assert (np.abs(qvel[:, :2]) <= 0.005).all() and (qvel[:, 2:] == 0).all()
    assert len(np.unique(qpos, axis=0)) > 256 * (1 - 256 / STARTS)
    assert (np.asarray(start.time) == 0).all()
    data = mujoco.MjData(task.model)
    data.qpos[:], data.qvel[:] = qpos[0], qvel[0]
    mujoco.mj_forward(task.model, data)
    moment = {"qpos": data.qpos, "qvel": data.qvel, "xpos": data.xpos}
    observation = game.observe(jax.tree.map(lambda x: x[0], start))
    readings = task.readings(np, moment)
    for mine, what in zip(observation[:2], ("obs", "state"), strict=True):
        np.testing.assert_allclose(mine, task.show(np, what, readings), atol=1e-5)
    np.testing.assert_allclose(start.gauge[0], task.robot.rules.gauge(np, moment), atol=1e-6)


def test_blown_up_simulation_ends_without_reward() -> None:
    """Speeds beyond all bounds: no bad number comes out, and the episode is over."""
    game = MjxGame(world("InvertedPendulum-1x1", "farama"))
    start = game.reset(KEY)
    fast = start.physics._replace(qvel=jnp.asarray([1e12, 1e12]))
    step = jax.jit(game.step)
    state, reward, failed, late = step(start._replace(physics=fast), jnp.zeros((1, 1)), KEY)
    assert failed and not late and reward == 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((state, game.observe(state))))
    _, reward, failed, _ = step(start, jnp.asarray([[jnp.nan]]), KEY)
    assert failed and np.isnan(reward), "bad actions must not pass for a failure"


@pytest.mark.parametrize(
    ("name", "variant"), [("Ant-2x4", "paper"), ("Humanoid-9p8", "farama"), ("Pusher-3p", "farama")]
)
def test_other_bodies_are_refused(name: str, variant: str) -> None:
    """With the names of those that work."""
    with pytest.raises(ValueError, match=r"does not run on MJX.*HalfCheetah, Hopper"):
        MjxGame(world(name, variant))


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to install it."""
    monkeypatch.delattr(mujoco, "mjx")
    monkeypatch.setitem(sys.modules, "mujoco.mjx", None)
    with pytest.raises(ImportError, match=r"pip install 'fp3o\[mjx\]'"):
        MjxGame(world("Reacher-2x1", "paper"))


def test_trains() -> None:
    """An iteration on the accelerator's path: the whole rollout in one program."""
    config = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2)
    program = Program(VmapEnv(MjxGame(short("InvertedPendulum-1x1", 3, "farama")), 4), config)
    state, metrics = program.iterate(program.init(0))
    assert metrics["episodes"] >= 4 and np.isfinite(metrics["episode_return"])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.learner))
