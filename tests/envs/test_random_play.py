"""Random play: episodes as a baseline, and the speed of an environment."""

from typing import Any

import numpy as np
import pytest
from host_probe import HostProbe

from fp3o.envs import random_play
from fp3o.envs.mamujoco.fused import env as fused_env
from fp3o.envs.random_play import COMPILING, measure_speed, play_at_random, random_episodes
from fp3o.envs.task import Baseline, random_baseline
from fp3o.envs.toys.probe import PROBES
from fp3o.errors import SettingError
from fp3o.runs.baselines import STILL_EPISODES, _no_actions, evaluate_baselines

CREDIT: Any = PROBES["credit"]


def test_random_episodes_are_whole_episodes() -> None:
    """Returns per agent of the first episodes of every round; the same for the same seed."""
    found = random_episodes(HostProbe(CREDIT, 8), 20, limit=3)
    assert found.returns.shape == found.lengths.shape == (20,)
    assert found.episode_metrics.shape == (20, 0)
    assert (found.lengths == 3).all()
    assert {*found.returns.round(4)} <= {0.0, 0.3333, 0.6667, 1.0}
    assert len({*found.returns.round(4)}) > 1
    again = random_episodes(HostProbe(CREDIT, 8), 20, limit=3)
    np.testing.assert_array_equal(found.returns, again.returns)


def test_returns_are_those_of_the_rewards() -> None:
    """Equal to the sums in a rollout with the same seed."""
    play = play_at_random(HostProbe(CREDIT, 4), 3, seed=0)
    expected = play.steps.reward[1:].mean(-1).sum(0)
    found = random_episodes(HostProbe(CREDIT, 4), 4, limit=3)
    np.testing.assert_allclose(found.returns, expected, rtol=1e-6)


def test_episodes_without_an_end_are_nan() -> None:
    """As in evaluations of policies."""
    found = random_episodes(HostProbe(CREDIT, 4), 4, limit=2)
    assert np.isnan(found.returns).all() and np.isnan(found.lengths).all()


@pytest.mark.parametrize(("limit", "length"), [(3, 3.0), (1, 1.0)])
def test_speed(monkeypatch: pytest.MonkeyPatch, limit: int, length: float) -> None:
    """Steps per second of the batch without those that compile; the length, or the limit."""
    clock = iter(range(1000))
    monkeypatch.setattr(random_play.time, "perf_counter", lambda: next(clock))
    speed = measure_speed(HostProbe(CREDIT, 4), limit)
    assert speed.steps_per_second == 4.0  # four environments, a step per second
    assert speed.episode_steps == length
    assert speed.episodes_per_second == 4.0 / length
    assert COMPILING == 2


def test_still_episodes_take_no_actions() -> None:
    """Returns are those of a rollout in which every action is 0, of the task's type."""
    env = HostProbe(CREDIT, 4)
    zeros = _no_actions(env, 3)
    assert zeros.shape == (3, 4, env.spec.num_agents, 1)
    assert zeros.dtype == np.int32 and not zeros.any()
    play = play_at_random(env, 3, seed=0, actions=zeros)
    found = random_episodes(env, 4, limit=3, actions=zeros)
    np.testing.assert_allclose(found.returns, play.steps.reward[1:].mean(-1).sum(0), rtol=1e-6)


def test_robots_that_do_not_move() -> None:
    """An Ant stands for as long as an episode lasts, at no cost; a Walker2d falls."""
    (ant,) = evaluate_baselines("mamujoco/Ant-2x4", "paper", 2).values()
    assert ant["length"] == 1000 and ant["episodes"] == 2 and ant["role"] == "uninformed"
    assert abs(ant["return"] - 1000) < 30
    (walker,) = evaluate_baselines("mamujoco/Walker2d-2x3", "paper", 100).values()
    assert walker["episodes"] == STILL_EPISODES
    assert 100 < walker["length"] < 115 and 90 < walker["return"] < 105


def test_baselines_are_those_of_the_simulator_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another one computes the same, it is not compiled."""
    monkeypatch.setattr(fused_env, "register_step", None)
    task = "mamujoco/Walker2d-2x3"
    (fused,) = evaluate_baselines(task, "paper:backend=fused", 2).values()
    assert fused == evaluate_baselines(task, "paper", 2)["still"]


def test_a_baseline_acts_in_one_way() -> None:
    with pytest.raises(SettingError, match="'x' has both still=True and a function"):
        Baseline("x", "x", "", act=lambda state, key: key, still=True)


def test_every_environment_has_a_random_baseline() -> None:
    """Without a function of the state."""
    (baseline,) = random_baseline(None)
    assert baseline.role == "random" and baseline.act is None
