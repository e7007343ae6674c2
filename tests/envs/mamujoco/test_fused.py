"""The MuJoCo tasks in one kernel against MuJoCo itself: steps, ends and starts of episodes."""

# pyright: reportAttributeAccessIssue=false

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import fp3o
from fp3o.envs.mamujoco.fused import build
from fp3o.envs.mamujoco.fused import env as fused_env
from fp3o.envs.mamujoco.fused.env import FusedEnv, FusedVecEnv
from fp3o.envs.mamujoco.fused.model_header import model_header
from fp3o.envs.mamujoco.fused.task_header import task_header
from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.envs.mamujoco.task import BodyTask, body_task
from fp3o.learning.config import Config
from fp3o.training.program import Program
from fp3o.types import TimeStep

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler is installed"
)

KEY = jax.random.key(0)
ENVS = 4


def short(name: str, limit: int, variant: str = "paper") -> BodyTask:
    """A task with another time limit."""
    task = body_task(name, variant)
    return dataclasses.replace(task, body=dataclasses.replace(task.body, max_episode_steps=limit))


def numbers(bits: Any) -> np.ndarray:
    """The states of environments in double precision."""
    return np.ascontiguousarray(np.asarray(bits)).view(np.float64).copy()


def same_state(task: BodyTask, native: NativeState, bits: Any) -> Any:
    """The states of a native batch, with the random streams of `bits`."""
    model, values = task.model, numbers(bits)
    data, part = mujoco.MjData(model), int(mujoco.mjtState.mjSTATE_INTEGRATION)
    for row, physics in zip(values, native.physics, strict=True):
        mujoco.mj_setState(model, data, physics, part)
        moving = np.concatenate([data.qpos, data.qvel, data.qacc_warmstart])
        row[: len(moving)] = moving
    moving = model.nq + 2 * model.nv
    values[:, moving], values[:, moving + 1] = native.progress, native.time
    return jnp.asarray(values.view(np.uint32))


def step_both(task: BodyTask, env: FusedEnv, steps: int) -> list[tuple[Any, Any]]:
    """(positions, time step) of MuJoCo and of the kernel, each time from the same state."""
    native, batch = NativeVecEnv(task, ENVS, 1, np.float64), env.vectorise(ENVS)
    state, _ = native.reset(KEY)
    bits, _ = batch.reset(KEY)
    rng, mask, step = np.random.default_rng(0), task.spec.actions.mask, jax.jit(batch.step)
    seen = []
    for _ in range(steps):
        action = (rng.normal(size=(ENVS, *mask.shape)) * mask).astype(np.float32)
        bits, here = step(same_state(task, state, bits), jnp.asarray(action))
        state, there = native.step(state, action)
        moving = task.model.nq + task.model.nv
        both = state.physics[:, 1 : 1 + moving], numbers(bits)[:, :moving]
        seen.append(((both[0], there), (both[1], jax.device_get(here))))
    return seen


def check(there: TimeStep, here: TimeStep) -> None:
    """Equal up to single precision, with the same ends."""
    for name in ("final_obs", "final_state", "reward"):
        mine, theirs = getattr(here, name), getattr(there, name)
        np.testing.assert_allclose(mine, theirs, atol=3e-6, rtol=3e-6, err_msg=name)
    for name in ("action_mask", "alive", "terminated", "truncated", "episode_start"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), name)


def check_steps(task: BodyTask, env: FusedEnv, steps: int = 120) -> None:
    """Positions and velocities agree in double precision, what agents see in single."""
    for (positions, there), (mine, here) in step_both(task, env, steps):
        check(there, here)
        going = ~np.asarray(there.episode_start)  # episodes start from other random numbers
        np.testing.assert_allclose(mine[going], positions[going], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("HalfCheetah-6x1", "paper"),  # Euler, springs, contacts
        ("Ant-2x4", "paper"),  # Runge-Kutta, a free joint, contacts
        pytest.param("Walker2d-2x3", "paper", marks=pytest.mark.slow),  # failures
        pytest.param("Walker2d-2x3", "farama", marks=pytest.mark.slow),
        pytest.param("HalfCheetah-2x3", "farama:obsk=0", marks=pytest.mark.slow),
        pytest.param("Ant-4x2", "paper:routing=joint", marks=pytest.mark.slow),
        pytest.param("ManyagentSwimmer-8x2", "paper", marks=pytest.mark.slow),  # a fluid
        pytest.param("Swimmer-2x1", "farama", marks=pytest.mark.slow),
    ],
)
def test_steps_equal_mujocos(name: str, variant: str) -> None:
    task = body_task(name, variant)
    check_steps(task, FusedEnv(task))


def test_search_along_the_line_finds_the_same_accelerations() -> None:
    """What the solver falls back to, which no state of a body was seen to need."""
    task = body_task("HalfCheetah-6x1", "paper")
    env = FusedEnv(task)
    env._target = build.register_step(task_header(task) + "#define MAX_FULL_STEPS 0\n")
    check_steps(task, env, 60)


def test_episodes_end_and_start() -> None:
    """At the time limit, the next episode starts in the same step, from the task's noise."""
    task = short("HalfCheetah-6x1", 5)
    batch, model = FusedEnv(task).vectorise(256), task.model
    assert isinstance(batch, FusedVecEnv) and batch.jittable
    bits, first = batch.reset(KEY)
    assert first.episode_start.all() and not (first.terminated | first.truncated).any()
    step, still = jax.jit(batch.step), jnp.zeros((256, 6, 1))
    starts, before = [numbers(bits)], bits
    for number in range(1, 11):
        before, (bits, now) = bits, step(bits, still)
        assert (np.asarray(now.truncated) == (number % 5 == 0)).all() and not now.terminated.any()
        np.testing.assert_array_equal(now.episode_start, now.truncated)
        if number % 5 == 0:
            starts.append(numbers(bits))
            assert not np.allclose(now.obs, now.final_obs)
        else:
            np.testing.assert_array_equal(now.obs, now.final_obs)
    again, _ = step(before, still)
    np.testing.assert_array_equal(again, bits)
    qpos = np.stack(starts)[..., : model.nq] - model.qpos0
    qvel = np.stack(starts)[..., model.nq : model.nq + model.nv]
    assert len(np.unique(qpos)) == qpos.size, "every start has its own numbers"
    assert np.abs(qpos).max() < 0.1 and abs(qpos.std() - 0.1 / np.sqrt(3)) < 1e-3
    assert abs(qvel.std() - 0.1) < 2e-3 and abs(qvel.mean()) < 2e-3 and np.abs(qvel).max() > 0.3
    flat = np.concatenate([qpos, qvel], -1).reshape(-1, model.nq + model.nv)
    correlations = np.corrcoef(flat.T) - np.eye(flat.shape[1])
    assert np.abs(correlations).max() < 0.2


def test_one_environment_alone() -> None:
    """The functions of `Env` compute what the batch does, without automatic resets."""
    env = FusedEnv(short("HalfCheetah-6x1", 3))
    state = env.reset(KEY)
    batch = env.vectorise(1)
    bits = state.bits[None]
    for number in range(3):
        action = jnp.full((6, 1), 0.1 * number)
        state, reward, failed, late = env.step(state, action, KEY)
        bits, now = batch.step(bits, action[None])
        np.testing.assert_array_equal(env.observe(state).obs, now.final_obs[0])
        np.testing.assert_array_equal(env.observe(state).state, now.final_state[0])
        np.testing.assert_array_equal(reward, now.reward[0])
        assert (bool(failed), bool(late)) == (False, number == 2)
    assert not np.array_equal(state.bits, bits[0]), "the batch has started anew"
    image = batch.render(bits, "a cheetah")
    assert image.ndim == 3 and image.dtype == np.uint8


def test_invalid_numbers_are_noticed() -> None:
    """A simulation that diverges ends without reward; actions that are not finite give NaN."""
    env = FusedEnv(body_task("HalfCheetah-6x1", "paper"))
    batch = env.vectorise(2)
    bits, _ = batch.reset(KEY)
    values = numbers(bits)
    values[0, :9] = 1e12
    bits, now = batch.step(jnp.asarray(values.view(np.uint32)), jnp.zeros((2, 6, 1)))
    assert now.terminated.tolist() == [True, False] and (now.reward[0] == 0).all()
    assert all(np.isfinite(x).all() for x in now)
    _, now = batch.step(bits, jnp.asarray([[[jnp.nan]] * 6, [[0.0]] * 6]))
    assert np.isnan(now.reward[0]).all() and np.isfinite(now.reward[1]).all()


@pytest.mark.parametrize(
    ("name", "variant", "reason"),
    [
        ("Reacher-2x1", "paper", "cannot observe cos, sin, target_offset"),
        ("Ant-2x4", "farama", "cannot observe clipped_force"),
        ("Hopper-3x1", "farama", "does not have its reward"),
        ("Humanoid-9p8", "farama", "cannot observe"),
    ],
)
def test_other_tasks_are_rejected(name: str, variant: str, reason: str) -> None:
    with pytest.raises(fp3o.UserError, match=rf"{name}.*{reason}.*use backend=native"):
        FusedEnv(body_task(name, variant))


def test_other_models_are_rejected() -> None:
    """Everything that the equations lack is named."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option cone="elliptic"/><worldbody><body><joint type="ball"/>
        <geom size="0.1"/></body><body pos="1 0 0"><freejoint/><geom size="0.1"/></body>
        </worldbody></mujoco>"""
    )
    with pytest.raises(fp3o.UserError, match=r"no ball joints, no collisions between.*no elliptic"):
        model_header(model)


ROLLING = """<mujoco>{option}<worldbody><geom type="plane" size="1 1 1" {floor}/>
    <body {body}><joint name="hinge" {joint}/><geom type="capsule" size="0.1 0.2" {geom}/></body>
    </worldbody><actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("place", "text", "reason"),
    [
        ("option", '<option><flag gravity="disable"/></option>', "flags"),
        ("option", '<option><flag energy="enable"/></option>', "flags"),
        ("floor", 'condim="6"', "dimensions"),
        ("geom", 'condim="1"', None),  # the floor has three, which is more
        ("geom", 'solref="-1000 -10"', "stiffness"),
        ("joint", 'range="0 1" solreflimit="-1000 -10"', "stiffness"),
        ("geom", 'priority="1"', "priorities"),
        ("geom", 'gap="0.1"', "priorities"),
        ("geom", 'fluidshape="ellipsoid"', "fluid shapes"),
        ("joint", 'actuatorfrcrange="-1 1"', "limits of forces at joints"),
        ("body", 'gravcomp="1"', "gravity"),
    ],
)
def test_other_rules_are_rejected(place: str, text: str, reason: str | None) -> None:
    places = dict.fromkeys(("option", "floor", "body", "joint", "geom"), "")
    model_header(mujoco.MjModel.from_xml_string(ROLLING.format(**places)))
    model = mujoco.MjModel.from_xml_string(ROLLING.format(**{**places, place: text}))
    if reason is None:
        model_header(model)
        return
    with pytest.raises(fp3o.UserError, match=f"has no .*{reason}"):
        model_header(model)


def test_older_mujoco_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_env.mujoco, "mj_version", lambda: 3_017_000)
    with pytest.raises(fp3o.UserError, match=r"computes what MuJoCo 4 computes.*backend=native"):
        FusedEnv(body_task("HalfCheetah-6x1", "paper"))


def test_compilers_are_needed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries are kept; without a compiler, or if it fails, the message says so."""
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path))
    header = task_header(body_task("HalfCheetah-6x1", "paper"))
    with pytest.raises(fp3o.UserError, match=r"cannot compile the simulation:\n(.|\n)*error"):
        build.register_step(f"{header}\nnonsense")
    assert not list(tmp_path.iterdir()), "nothing is left of it"
    (tmp_path / "file").touch()
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(fp3o.UserError, match=f"cannot be kept in .*{build.CACHE_VARIABLE}"):
        build.register_step(f"{header}\n// elsewhere")
    monkeypatch.setenv("CXX", "/no/such/g++ -m64")
    with pytest.raises(fp3o.UserError, match=r"CXX is .*, and no /no/such/g\+\+ was found"):
        build.register_step(f"{header}\n// another one")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setattr(build.shutil, "which", lambda _: None)
    with pytest.raises(fp3o.UserError, match=r"needs a compiler: none of c\+\+, g\+\+, clang"):
        build.register_step(f"{header}\n// another one")


def test_options_of_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{shutil.which('env')} -i g++ '-O1'")
    assert build._compiler("CXX", "c++") == [shutil.which("env"), "-i", "g++", "-O1"]


def test_a_broken_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.so").touch()
    with pytest.raises(
        fp3o.UserError, match=rf"broken.so cannot be loaded.*{build.CACHE_VARIABLE}"
    ):
        build._load(tmp_path / "broken.so")


@pytest.mark.slow
def test_trains() -> None:
    """Two seeds in one program compute what a program of each does; `make` works, too."""
    config = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2, algorithm="mappo")
    batch = FusedEnv(short("HalfCheetah-2x3", 3)).vectorise(4)
    program = Program(batch, config, num_seeds=2)
    state, metrics = program.iterate(program.init(0))
    assert (metrics["episodes"] == 8).all() and np.isfinite(metrics["episode_return"]).all()
    alone = Program(batch, config)
    single, _ = alone.iterate(alone.init(1))
    np.testing.assert_allclose(state.learner.actor[0][1], single.learner.actor[0], atol=1e-6)
    env = fp3o.make("mamujoco/HalfCheetah-2x3:paper:backend=fused", num_envs=3)
    env_state, _ = env.reset(KEY)
    _, now = env.step(env_state, jnp.zeros((3, 2, 3)))
    assert now.obs.shape == (3, 2, env.spec.obs_size)


@pytest.mark.slow
def test_policies_need_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their task is on MuJoCo itself; the run goes on with the kernel."""
    task, options = "mamujoco/HalfCheetah-2x3", {"variant": "paper:backend=fused", "hidden": (8,)}
    run = fp3o.train(
        task, **options, steps=96, num_envs=4, rollout=8, minibatches=2, epochs=1, eval_episodes=2,
        final_episodes=2, out=tmp_path / "run", progress="quiet",
    )  # fmt: skip
    assert run.config.variant == "paper:backend=fused"
    policy = fp3o.Policy.load(tmp_path / "run")
    assert policy.card.spec.name == f"{task}:paper"
    monkeypatch.setattr(fused_env, "register_step", None)
    result = fp3o.evaluate(policy, episodes=2)
    assert np.isfinite(result["policies"][0]["return"])
    fp3o.render(policy, tmp_path / "episode.gif", episodes=1, seconds=0.1)
    assert (tmp_path / "episode.gif").stat().st_size
