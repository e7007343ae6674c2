"""MuJoCo tasks on the host: names and presets, batches of simulations, control of joints."""

from typing import Any

import jax
import numpy as np
import pytest

from fp3o.envs.api import HostEnv
from fp3o.envs.registry import TASKS, get_task
from fp3o.runs.run_config import RunConfig
from fp3o.spec import Box

TASK = "mamujoco/Hopper-3x1"


def test_names_and_presets() -> None:
    """The paper's tasks and presets, bodies of any length, other spellings; error messages."""
    for name in ("Reacher-2x1", "Ant-2x4", "Walker2d-2x3", "Hopper-3x1", "HalfCheetah-6x1",
                 "ManyagentSwimmer-8x2"):  # fmt: skip
        task = TASKS[f"mamujoco/{name}"]
        assert list(task.presets) == ["quick", "paper", "paper-partial", "paper-none", "farama"]
        for preset in task.presets:
            RunConfig.from_preset(task.name, preset).check()
        partial = task.presets["paper-partial"]
        assert partial["head_lr_factor"] == task.spec("paper").num_agents
        tight = name.split("-")[0] in ("Hopper", "Walker2d")
        assert task.presets["paper"]["clip_range"] == (0.05 if tight else 0.2)
    long = get_task("mamujoco/ManySegmentSwimmer-3x4")
    assert long.name == "mamujoco/ManyagentSwimmer-3x4"
    actions = long.spec().actions
    assert isinstance(actions, Box) and actions.sizes == (4, 4, 4)
    assert isinstance(get_task("mamujoco/Humanoid-9|8").env(), HostEnv)
    for words, answer in {
        "mamujoco/HalfCheeta-6x1": "HalfCheetah-6x1", "mamujoco/HalfCheetah-3x2": "2x3",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=answer):
            get_task(words).spec()
    with pytest.raises(ValueError, match="obsk"):
        get_task(TASK).spec("paper:obs=2")
    with pytest.raises(ValueError, match="farama"):
        get_task(TASK).spec("frama")


def test_an_error_in_a_step_leaves_the_state_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error in the middle of a step, the same state gives the same next state."""
    env: Any = get_task(TASK).vec_env("paper", 2)
    state, _ = env.reset(jax.random.key(0))
    action = np.full((2, 3, 1), 0.3, np.float32)
    state, _ = env.step(state, action)
    _, wanted = env.step(state, action)
    with monkeypatch.context() as patch:
        patch.setattr(env, "_record", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            env.step(state, action)
    _, found = env.step(state, action)
    assert np.array_equal(found.reward, wanted.reward)
    assert np.array_equal(found.obs, wanted.obs)


def test_keys_of_any_kind_distinguish_environments() -> None:
    """Random numbers of another implementation are longer; every environment has its own stream."""
    env: Any = get_task(TASK).vec_env("paper", 4)
    for kind in ("threefry2x32", "rbg"):
        state, _ = env.reset(jax.random.key(0, impl=kind))
        assert len({tuple(row) for row in state.stream}) == 4
        both, _ = env.reset(jax.random.split(jax.random.key(0, impl=kind), 2))
        assert len({tuple(row) for row in both.stream}) == 4


def test_videos_colour_what_an_agent_moves() -> None:
    """The paper sends actions to motors in order; an agent's colour is on what it really moves."""
    order: Any = get_task("mamujoco/HalfCheetah-6x1").env("paper")
    joint: Any = get_task("mamujoco/HalfCheetah-6x1").env("paper:routing=joint")
    assert order.task.controlled == [[0], [1], [2], [3], [4], [5]]
    assert joint.task.controlled == [[2], [1], [0], [5], [4], [3]]
    assert order.task.owned == joint.task.owned == ((2,), (1,), (0,), (5,), (4,), (3,))


def test_a_task_is_made_once() -> None:
    """Evaluations of the same task share their compiled programs, on MJX too."""
    name, variant = "mamujoco/InvertedPendulum-1x1", "farama:backend=mjx"
    pytest.importorskip("mujoco.mjx", reason="needs the extra mjx")
    assert get_task(name).vec_env(variant, 2) == get_task(name).vec_env(variant, 2)
