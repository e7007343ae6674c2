"""Actions that are huge or not finite, and MuJoCo simulations that diverge."""

import numpy as np
import pytest
from mamujoco_native import KEY, TASKS, WITH_FORCES, draw, make, place, rows, same, velocities

from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.errors import NonFiniteError

pytestmark = pytest.mark.usefixtures("temporary_folder")


@pytest.mark.parametrize(("name", "profile"), TASKS)
def test_huge_actions(name: str, profile: str) -> None:
    """Actuators have limits: all numbers stay finite."""
    env = make(name, profile, 2, dtype=np.float32)
    state, _ = env.reset(KEY)
    rng = np.random.default_rng(6)
    for _ in range(20):
        state, timestep = env.step(state, 1e6 * np.sign(draw(rng, env)))
        assert all(np.isfinite(x).all() for x in timestep)


def test_non_finite_actions() -> None:
    """Rejected with the agent's index; padding does not matter."""
    env = make("Pusher-3p", "farama", 2)
    state, _ = env.reset(KEY)
    for wrong in (np.nan, np.inf):
        action = np.zeros((2, 3, 3))
        action[1, 2, 1] = wrong
        with pytest.raises(NonFiniteError, match=rf"agent 2 .*{wrong}.*dimension 1.*environment 1"):
            env.step(state, action)
    action = np.zeros((2, 3, 3))
    wanted = env.step(state, action)
    action[:, 1, 1:] = np.nan
    same(env.step(state, action), wanted)


def spoil(env: NativeVecEnv, state: NativeState, which: int, value: float) -> NativeState:
    """Set the velocities of one environment."""
    physics = state.physics.copy()
    physics[which, velocities(env)] = value
    return state._replace(physics=physics)


@pytest.mark.parametrize("value", [1e12, np.nan])
@pytest.mark.parametrize(
    ("name", "variant"), [("HalfCheetah-6x1", "paper"), ("Hopper-3x1", "paper"), WITH_FORCES]
)
def test_a_simulation_that_diverges(name: str, variant: str, value: float) -> None:
    """Its episode ends with a warning each time; other environments are unaffected."""
    env, calm = make(name, variant, 4), make(name, variant, 4)
    others, rng = (0, 1, 3), np.random.default_rng(8)
    state, _ = env.reset(KEY)
    undisturbed, _ = calm.reset(KEY)
    for t in range(12):
        action = draw(rng, env, 0.1)
        undisturbed, expected = calm.step(undisturbed, action)
        if t in (3, 4, 8):
            state = spoil(env, state, 2, value)
            with pytest.warns(RuntimeWarning, match=rf"{name}:{variant}.*1 of 4.*number 2"):
                state, now = env.step(state, action)
            assert now.terminated[2] and not now.truncated[2] and now.episode_start[2]
            assert state.time[2] == 0 and not now.reward[2].any()
        else:
            state, now = env.step(state, action)  # a warning here would be an error
            assert not now.episode_start[2]
        assert all(np.isfinite(x).all() for x in now)
        same(rows((state, now), *others), rows((undisturbed, expected), *others))
    assert state.episode.tolist() == [1, 1, 4, 1] and state.time.tolist() == [12, 12, 3, 12]


@pytest.mark.parametrize(
    ("name", "variant", "qvel"),
    [
        ("InvertedDoublePendulum-1x1", "farama", [58, 135, 74]),
        ("Walker2d-2x3", "paper", [1535, -1219, -870, 2196, -2603, -2200, 134, 432, 671]),
        ("Hopper-3x1", "farama", [-463, -1244, -3331, 1125, 2280, -592]),
        ("Ant-2x4", "farama",
         [24, -86, 388, 70, 280, 219, -447, -319, 224, 80, -285, 244, 162, -43]),
    ],
)  # fmt: skip
def test_a_simulation_that_diverges_in_the_last_substep(
    name: str, variant: str, qvel: list[float]
) -> None:
    """MuJoCo notices in the next step only; nothing invalid may be returned until then."""
    env = make(name, variant, dtype=np.float32)
    state = place(env, env.task.model.qpos0, np.array(qvel))
    with pytest.warns(RuntimeWarning, match="diverged in 1 of .*number 0"):
        state, now = env.step(state, np.zeros((1, *env.spec.actions.mask.shape)))
    assert now.terminated[0] and not now.reward.any()
    assert all(np.isfinite(x).all() and np.abs(x).max(initial=0) < 1e11 for x in now)
    _, now = env.step(state, np.zeros((1, *env.spec.actions.mask.shape)))
    assert not now.episode_start[0] and np.abs(now.reward).max() < 20
