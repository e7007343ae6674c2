"""Pixel tasks: what agents see, what is rewarded, and that seeing is needed."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.envs.scripted import run_scripted
from fp3o.envs.toys.pixels import IMAGE_CHANNELS, PIXEL_TASKS, Cells, Cover, pixel_baselines

ENV = Cover(2, 4)
STATE = Cells(jnp.array([[0, 1], [3, 3]]), jnp.array([[0, 3], [2, 1]]), jnp.zeros((), int))


def images(env: Cover, state: Cells) -> np.ndarray:
    """Images `(n, h, w, c)`, of which the flattened ones begin every observation."""
    image = env.spec.image
    assert image is not None
    obs = np.asarray(env.observe(state).obs)
    return obs[:, :-1].reshape(env.num_agents, *image)


def test_agents_are_in_the_middle_of_their_images() -> None:
    """Targets and the other agent are where they are relative to the agent; then the border."""
    seen = images(ENV, STATE)
    middle = ENV.size - 1
    for agent, other in ((0, 1), (1, 0)):
        own = np.asarray(STATE.agents[agent])
        for channel, cells in ((1, STATE.targets), (2, np.asarray(STATE.agents)[[other]])):
            wanted = np.zeros((7, 7))
            for row, column in np.asarray(cells) - own + middle:
                wanted[row, column] = 1.0
            np.testing.assert_array_equal(seen[agent, ..., channel], wanted)
        inside = 1 - seen[agent, ..., 0]
        assert inside.sum() == ENV.size**2
        assert inside[middle, middle] == 1


def test_the_state_is_all_images_stacked_along_the_channels() -> None:
    """Then the time, as in the observations."""
    spec, state = ENV.spec, np.asarray(ENV.observe(STATE).state)
    shape = (7, 7, 2 * IMAGE_CHANNELS)
    assert spec.state_image == shape
    stacked = state[:, :-1].reshape(2, *shape)
    for agent, image in enumerate(images(ENV, STATE)):
        part = slice(agent * IMAGE_CHANNELS, (agent + 1) * IMAGE_CHANNELS)
        np.testing.assert_array_equal(stacked[0, ..., part], image)
    np.testing.assert_array_equal(stacked[0], stacked[1])


def test_blind_agents_see_nothing() -> None:
    assert not images(replace(ENV, blind=True), STATE).any()
    assert fp3o.make("pixels/cover-2", variant="blind").spec.name == "pixels/cover-2:blind"


def test_covering_is_rewarded() -> None:
    """A share per step; walls stop a move; the episode ends after ten steps."""
    key = jax.random.key(0)
    right, down = 4, 2
    state, reward, ended, _ = ENV.step(STATE, jnp.array([[right], [down]]), key)
    np.testing.assert_array_equal(state.agents, [[0, 2], [3, 3]])
    assert reward.tolist() == [0.0, 0.0] and not ended
    state, reward, _, _ = ENV.step(state, jnp.array([[right], [right]]), key)
    np.testing.assert_allclose(reward, 0.5 / 10)
    both = state._replace(agents=state.targets, time=jnp.array(9))
    state, reward, ended, _ = ENV.step(both, jnp.array([[0], [0]]), key)
    np.testing.assert_allclose(reward, 1 / 10)
    assert ended and ENV.episode_metrics(state) == 1


@pytest.mark.parametrize("name", PIXEL_TASKS)
def test_the_oracle_always_wins(name: str) -> None:
    """Random agents do not."""
    env = Cover(*PIXEL_TASKS[name])
    scores = {
        baseline.role: run_scripted(env, baseline.act, jax.random.key(0), 64)[:2]
        for baseline in pixel_baselines(env)
    }
    assert scores["oracle"][1].all() and scores["oracle"][0].min() > 0.4
    assert scores["random"][0].mean() < 0.25


def test_it_is_a_valid_task_that_can_be_rendered() -> None:
    """`fp3o check` finds nothing, and a frame has its colours."""
    assert fp3o.check_env(fp3o.make("pixels/cover-2", num_envs=4), steps=20).ok
    frame = ENV.render(STATE, "step 0")
    assert frame.dtype == np.uint8 and frame.shape[1:] == (4 * 64, 3)
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 5


def test_an_image_that_does_not_fit_is_a_problem() -> None:
    class Wrong(Cover):
        @property
        def spec(self) -> fp3o.EnvSpec:
            return replace(super().spec, image=(9, 9, 9))

    with pytest.raises(fp3o.UserError, match="cannot begin with an image of 9 x 9 x 9"):
        fp3o.Program(fp3o.VmapEnv(Wrong(2, 4), 2), fp3o.Config(num_envs=2, rollout=2))
    report = fp3o.check_env(Wrong(2, 4))
    assert any("image of 9 x 9 x 9" in problem.what for problem in report.problems)
