"""Worker processes that fail in every way."""

import gc
import os
import signal
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from worker_pools import FAR, IDLE, QUICK, batch, counts, gone, idle, living, plan_of, pool

from fp3o.envs.workers import pool as pools
from fp3o.envs.workers.protocol import FailureCounts, WorkerPoolError


def test_failures_of_every_kind_at_once(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost episodes are truncated without reward at the last observation; others continue."""
    kinds = ("exit", "raise", "unpicklable", "shape", "nan", "text", "hang with a child")
    env = batch(monkeypatch, *((kind, 3) for kind in kinds), ("", ""))
    state, now = env.reset(jax.random.key(0))
    for _ in range(2):
        state, now = env.step(state, idle(8))
    assert not now.truncated.any()
    with pytest.warns(RuntimeWarning) as caught:
        state, now = env.step(state, idle(8))
    lost = np.arange(8) < 7
    np.testing.assert_array_equal(now.truncated, lost)
    np.testing.assert_array_equal(now.episode_start, lost)
    assert not now.terminated.any()
    np.testing.assert_array_equal(now.reward[:, 0], ~lost)
    np.testing.assert_array_equal(now.final_obs[:, 0, 0], np.where(lost, 2, 3))
    np.testing.assert_array_equal(now.obs[:, 0, 0], np.where(lost, 0, 3))
    np.testing.assert_array_equal(now.final_state[:, 0, 0], FAR * np.arange(8))
    np.testing.assert_array_equal(now.state[:, 0, 0], FAR * np.arange(8) + lost)
    np.testing.assert_array_equal(now.episode_metrics[:, 2], np.where(lost, 2, 3))
    assert not now.episode_metrics[:, 0].any() and now.action_mask.all() and now.alive.all()
    assert env.failure_counts() == counts(crashed=2, hung=1, invalid=4, restarts=7, lost_steps=14)
    messages = [str(warning.message) for warning in caught]
    parts = ("exit code 7", "the game has no mood", "not a tuple of 8", "(1, 3), expected",
             "not finite", "not a tuple of 8", "no reply in time")  # fmt: skip
    for number, (text, part) in enumerate(zip(messages, parts, strict=True)):
        assert text.startswith(f"worker {number}: ") and part in text
        assert "after 2 steps" in text
    for _ in range(2):
        state, now = env.step(state, idle(8))
    np.testing.assert_array_equal(now.terminated, ~lost)
    np.testing.assert_array_equal(now.episode_metrics[:, 0], ~lost)
    np.testing.assert_array_equal(state.time, 2 * lost)
    assert len(living(traces)) == 8  # the hanging worker's child is gone as well
    env.close()
    assert gone(traces)


def test_failures_in_resets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is replaced until an episode starts; episodes that ended before are not lost."""
    hasty = QUICK._replace(reset=3)
    made = pool(("raise", "reset"), ("exit", "reset"), ("", ""), timeouts=hasty)
    plan_of(made)[FAR + 1] = ("hang", "reset")
    with pytest.warns(RuntimeWarning, match="after 0 steps"):
        replies = made.reset(range(3))
    assert [int(reply[1][0, 0]) for reply in replies] == [1, FAR + 2, 2 * FAR]
    assert made.failures == FailureCounts(crashed=2, hung=1, restarts=3)
    made.close()

    env = batch(monkeypatch, ("raise", "again"), ("", ""))
    state, now = env.reset(jax.random.key(0))
    for _ in range(4):
        state, now = env.step(state, idle(2))
    with pytest.warns(RuntimeWarning, match="worker 0: crashed"):
        state, now = env.step(state, idle(2))
    assert now.terminated.all() and not now.truncated.any()
    np.testing.assert_array_equal(now.reward, 1.0)
    np.testing.assert_array_equal(now.final_obs[:, 0, 0], 5)
    assert env.failure_counts() == counts(crashed=1, restarts=1)
    env.close()


def test_a_worker_that_always_fails(traces: Path) -> None:
    """Three restarts in succession, then an error that says what happened and what to do."""
    made = pool(("", ""), ("exit", 1))
    plan_of(made).update({FAR + i: ("exit", 1) for i in range(10)})
    made.reset(range(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(WorkerPoolError, match="worker 1 failed 4 times") as error:
            for _ in range(10):
                made.reset([*{0, 1} - {*made.step({0: IDLE, 1: IDLE})}])
    for part in ("crashed, exit code 7", "the game says goodbye", "fp3o doctor"):
        assert part in str(error.value)
    assert len(caught) == 3
    assert made.failures == FailureCounts(crashed=4, restarts=3)
    assert gone(traces)


def test_a_completed_step_resets_the_failure_count(traces: Path) -> None:
    """Only consecutive failures count; a worker killed from outside is replaced like others."""
    made = pool(("exit", 2), timeouts=QUICK._replace(restarts=1))
    plan_of(made).update(dict.fromkeys(range(3), ("exit", 2)))
    made.reset([0])
    for _ in range(3):
        assert 0 in made.step({0: IDLE})
        with pytest.warns(RuntimeWarning, match="after 1 steps"):
            assert not made.step({0: IDLE})
        made.reset([0])
    made.step({0: IDLE})
    (number,) = living(traces)
    os.kill(number, signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="ended by signal 9"):
        assert not made.step({0: IDLE})
    assert made.failures == FailureCounts(crashed=4, restarts=4, lost_steps=4)


def test_no_process_is_left_behind(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers end with their pool, even one that does not close."""
    monkeypatch.setattr(pools, "CLOSE_SECONDS", 0.5)
    made = pool(("stay", ""), ("", ""))
    made.reset(range(2))
    assert len(living(traces)) == 2
    del made
    gc.collect()
    assert gone(traces)


def test_states_that_are_not_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments cannot go back: running episodes are truncated at the last observation."""
    env = batch(monkeypatch, ("", ""), ("", ""))
    first, begun = env.reset(jax.random.key(0))
    state, now = env.step(first, idle(2))
    env.step(state, idle(2))
    with pytest.warns(RuntimeWarning, match="2 running episodes of 2 steps"):
        again, now = env.step(state, idle(2))
    assert now.truncated.all() and now.episode_start.all() and not now.reward.any()
    np.testing.assert_array_equal(now.final_obs[:, 0, 0], 1)
    np.testing.assert_array_equal(now.obs, begun.obs)
    assert env.failure_counts() == counts(lost_steps=2)
    _, now = env.step(again, idle(2))
    np.testing.assert_array_equal(now.obs[:, 0, 0], 1)
    _, now = env.step(first, idle(2))  # it restarts identically, so it continues
    np.testing.assert_array_equal(now.obs[:, 0, 0], 1)
    assert not now.truncated.any() and env.failure_counts() == counts(lost_steps=2)
    env.reset(jax.random.key(0))
    env._pool.seeds[0] = 7
    env.close()
    _, now = env.step(first, idle(2))  # one of them starts differently
    np.testing.assert_array_equal(now.truncated, [True, False])
    np.testing.assert_array_equal(now.final_state[:, 0, 0], [0, FAR])
    np.testing.assert_array_equal(now.state[:, 0, 0], [7, FAR])
    env.close()
