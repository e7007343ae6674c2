"""The paper's MuJoCo tasks: observations, routing, rewards and ends against a plain model."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

import mamujoco_paper as plain
import mamujoco_paper_tables as tables
import mujoco
import numpy as np
import pytest
from mamujoco_native import KEY, draw, make, place

from fp3o.envs.mamujoco.catalogue import PAPER_TASKS
from fp3o.envs.mamujoco.task import body_task
from fp3o.spec import Box

pytestmark = pytest.mark.usefixtures("temporary_folder")


@pytest.mark.parametrize("task", tables.LITERAL)
def test_lists_of_the_paper(task: str) -> None:
    """The plain model's rule for observations gives the lists written down."""
    found, written = plain.PlainTask(task).observed, tables.LITERAL[task]
    assert [row.split() for row in found[: len(written)]] == [row.split() for row in written]
    assert len(found) == len(written) or task == "ManyagentSwimmer-8x2"


def concatenated(task: str, actions: np.ndarray) -> list[float]:
    """The paper: concatenated actions go to the actuators in their order."""
    return [float(x) for row, own in zip(actions, tables.OWNED[task], strict=True)
            for x in row[: len(own)]]  # fmt: skip


def to_own_joints(task: str, actions: np.ndarray, model: mujoco.MjModel) -> list[float]:
    """Every agent controls its own joints, whatever the order of their actuators."""
    control = [float("nan")] * model.nu
    for row, own in zip(actions, tables.OWNED[task], strict=True):
        for value, name in zip(row, own, strict=True):
            actuators = [
                i for i in range(model.nu) if model.actuator_trnid[i, 0] == model.joint(name).id
            ]
            control[actuators[0]] = float(value)
    return control


@pytest.mark.parametrize(
    ("task", "variant"),
    [
        *[(task, "paper") for task in tables.OWNED],
        *[(task, "paper:routing=joint") for task in tables.OWNED],
        ("HalfCheetah-6x1", "paper:obsk=2"),
        ("ManyagentSwimmer-8x2", "paper:obsk=0"),
    ],
)
def test_equals_plain_model_of_the_paper(task: str, variant: str) -> None:
    """Observations, states, rewards and ends at every step, from the raw simulation."""
    env, rng = make(task, variant), np.random.default_rng(4)
    copy = plain.PlainTask(task, env.task.variant.obsk)
    state, timestep = env.reset(KEY)
    ended = 0
    for t in range(110):
        if timestep.episode_start[0]:
            copy.place(env.simulation.fields["qpos"][0], env.simulation.fields["qvel"][0])
        if task.startswith("Ant") and t % 50 == 49:  # ants do not fail by themselves
            qvel = copy.data.qvel.copy()
            qvel[2] = 5.0
            state = place(env, copy.data.qpos, qvel)
            copy.place(copy.data.qpos.copy(), qvel)
        action = draw(rng, env)
        if "joint" in variant:
            control = to_own_joints(task, action[0], copy.model)
        else:
            control = concatenated(task, action[0])
        reward, failed = copy.step(control)
        state, timestep = env.step(state, action)
        seen = copy.observe()
        np.testing.assert_allclose(timestep.final_obs[0], seen[0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(timestep.final_state[0], seen[1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(timestep.reward[0], reward, rtol=1e-9, atol=1e-9)
        assert bool(timestep.terminated[0]) == bool(timestep.episode_start[0]) == failed
        assert not timestep.truncated[0]
        ended += failed
    assert (ended > 0) == (task.split("-")[0] in ("Ant", "Hopper", "Walker2d"))


@pytest.mark.parametrize(("task", "moved"), [("Ant-2x4", True), ("Walker2d-2x3", True),
                                             ("HalfCheetah-6x1", True), ("Reacher-2x1", False),
                                             ("Hopper-3x1", False)])  # fmt: skip
def test_routing(task: str, moved: bool) -> None:
    """The paper's agents control other joints than they observe, where the orders differ."""
    action = np.arange(1.0, 1.0 + body_task(task, "paper").model.nu)
    action = action.reshape(body_task(task, "paper").spec.actions.mask.shape)
    order, joint = (body_task(task, v).controls(action) for v in ("paper", "paper:routing=joint"))
    assert order.tolist() == concatenated(task, action)
    assert joint.tolist() == to_own_joints(task, action, body_task(task, "paper").model)
    assert (order.tolist() != joint.tolist()) == moved


PAPER_SIZES = {
    "Reacher-2x1": ((1,) * 2, 12, 13, 0.02),
    "Ant-2x4": ((4,) * 2, 27, 113, 0.05),
    "Walker2d-2x3": ((3,) * 2, 11, 19, 0.008),
    "Hopper-3x1": ((1,) * 3, 12, 14, 0.008),
    "HalfCheetah-6x1": ((1,) * 6, 18, 23, 0.05),
    "ManyagentSwimmer-8x2": ((2,) * 8, 22, 44, 0.02),
}
"""Sizes of actions, observation and state; seconds per step."""


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_sizes_of_the_paper(task: str) -> None:
    """The sizes of the published tasks."""
    actions, obs, state, seconds = PAPER_SIZES[task]
    found = body_task(task, "paper")
    assert isinstance(found.spec.actions, Box) and found.spec.actions.sizes == actions
    assert (found.spec.obs_size, found.spec.state_size) == (obs, state)
    assert found.step_seconds == pytest.approx(seconds)
