"""The radio tasks: by hand, their baselines, random play, and a run from training to video."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_runs import SMALL

import fp3o
from fp3o.envs.check import check_env
from fp3o.envs.check_facts import action_text
from fp3o.envs.random_play import play_at_random, sample_actions
from fp3o.envs.registry import get_task
from fp3o.envs.scripted import run_scripted
from fp3o.envs.toys.radio import BEACONS, RADIO_TASKS, radio_baselines
from fp3o.envs.vectorise import VmapEnv
from fp3o.policy import ChoicesAndVector
from fp3o.sharing.auto import auto_sharing
from fp3o.spec import Box, Discrete, Mixed

GUIDE, PAIR = RADIO_TASKS["guide"], RADIO_TASKS["pair"]


def test_a_step_by_hand() -> None:
    """The channel is heard a step later, moves are limited, and the reward is a distance."""
    state = GUIDE.reset(jax.random.key(0))._replace(goal=jnp.array([2, 3]))
    before = GUIDE.observe(state)
    assert before.obs[0].tolist() == [0, 0, 0, 1, 0, 0]  # the goal of the vehicle, and padding
    np.testing.assert_array_equal(before.obs[1], [*state.position[1], 0, 0, 0, 0])
    action = jnp.array([[1.0, 9.0, 9.0], [0.0, 5.0, -0.5]])
    state, reward, terminated, truncated = GUIDE.step(state, action, jax.random.key(1))
    after = GUIDE.observe(state)
    np.testing.assert_allclose(after.obs[1, :2], before.obs[1, :2] + jnp.array([0.2, -0.1]), 1e-5)
    assert after.obs[1, 2:].tolist() == [0, 1, 0, 0] and not (terminated | truncated)
    distance = np.linalg.norm(np.asarray(after.obs[1, :2]) - BEACONS[3])
    np.testing.assert_allclose(reward, [-distance] * 2, rtol=1e-5)
    np.testing.assert_array_equal(after.state[0], [0, 0, 0, 1, *after.obs[1]])


def test_specifications() -> None:
    """Sizes, names and meanings fit each other."""
    assert GUIDE.spec.actions == Mixed(Discrete(((4,), (1,))), Box((0, 2)))
    assert PAIR.spec.actions == Mixed(Discrete(((4,), (4,))), Box((2, 2)))
    assert action_text(GUIDE.spec.actions) == "4, 1 and vectors of 0, 2"
    for env in (GUIDE, PAIR):
        counts = env.spec.actions.mask.sum(1).tolist()
        assert [len(names) for names in env.spec.action_names] == counts


@pytest.mark.parametrize("name", RADIO_TASKS)
def test_baselines(name: str) -> None:
    """Random actions, waiting at the centre, and the oracle, which always wins."""
    env = RADIO_TASKS[name]
    returns, won = {}, {}
    for baseline in radio_baselines(env):
        scores, metrics, _ = run_scripted(env, baseline.act, jax.random.key(0), 32)
        returns[baseline.role], won[baseline.role] = float(scores.mean()), float(metrics.mean())
    assert returns["random"] < returns["uninformed"] < -18 and returns["oracle"] > -3
    assert won["oracle"] == 1 and won["uninformed"] == 0


def test_random_play() -> None:
    """Available choices and normal vectors; agents with different abilities stay apart."""
    assert check_env(get_task("radio/pair").env(), steps=40).ok
    mask = np.broadcast_to(PAIR.spec.actions.mask, (500, 2, 6)).copy()
    mask[:, 0, 1:3] = False
    drawn = sample_actions(PAIR.spec, mask, np.random.default_rng(0))
    assert drawn.shape == (500, 2, 3) and drawn.dtype == np.float32
    assert {*drawn[:, 0, 0].tolist()} == {0, 3} and {*drawn[:, 1, 0].tolist()} == {0, 1, 2, 3}
    assert abs(drawn[..., 1:].std() - 1) < 0.1
    env = VmapEnv(GUIDE, 32)
    assert play_at_random(env, 2, 0).actions.shape == (2, 32, 2, 3)
    assert auto_sharing(env, 60) == (0, 1)


def test_from_training_to_video(tmp_path: Path) -> None:
    """A run, its policy in NumPy, an evaluation and a video."""
    run = fp3o.train("radio/guide", out=tmp_path / "run", **SMALL)
    policy = fp3o.Policy.load(run.path)
    assert policy.card.spec.agents == ("guide", "vehicle")
    actions, _ = policy.act([np.zeros(4), np.zeros(6)])
    assert actions.shape == (2, 3) and actions.dtype == np.float32
    assert actions[0, 0] in range(4) and not actions[0, 1:].any() and actions[1, 0] == 0
    given, _ = policy.distribution([np.zeros(4), np.zeros(6)])
    assert isinstance(given, ChoicesAndVector)
    assert given.choices.probabilities[1].tolist() == [1, 0, 0, 0]
    assert (given.vector.std[1] > 0).all() and not given.vector.std[0].any()
    assert policy.agent(0).act(np.zeros(4))[0].shape == (1,)
    assert policy.agent(1).act(np.zeros(6))[0].shape == (3,)
    assert all(np.isfinite(row["return"]) for row in run.evaluate(4)["policies"])
    run.render(tmp_path / "radio.gif", episodes=1, seconds=1)
    assert (tmp_path / "radio.gif").stat().st_size > 1000
