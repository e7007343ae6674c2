"""Runs on the host, stopped and resumed in mid-episode."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file
from small_runs import read_metrics, worker_losses

import fp3o
from fp3o.cli.main import main
from fp3o.envs.registry import get_task
from fp3o.learning.config import Config
from fp3o.policy.export import write_policy
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.evaluation import evaluate, evaluate_params
from fp3o.runs.programs import make_program
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program
from fp3o.training.state import TrainState

TASK = "mamujoco/Hopper-3x1"
SMALL: dict[str, Any] = {
    "algorithm": "fp3o", "sharing": "partial", "seeds": 2, "num_envs": 2, "rollout": 15,
    "minibatches": 2, "hidden": (8,), "epochs": 1, "eval_every": 0, "eval_episodes": 2,
    "final_episodes": 2, "progress": "quiet", "loggers": (),
}  # fmt: skip
ITERATION = 30


def weights(path: Path, seed: int) -> dict[str, np.ndarray]:
    return load_file(path / "policy" / f"seed-{seed}" / "last" / "weights.safetensors")


def test_a_run_on_the_host(tmp_path: Path) -> None:
    """Stopped in mid-episode and resumed it equals an uninterrupted run; evaluation and video."""
    whole = fp3o.train(TASK, out=tmp_path / "whole", steps=4 * ITERATION, **SMALL)
    part = fp3o.train(TASK, out=tmp_path / "part", steps=3 * ITERATION, **SMALL)
    fp3o.resume(part.path, steps=4 * ITERATION, progress="quiet", loggers=())
    for seed in range(2):
        first, second = weights(whole.path, seed), weights(part.path, seed)
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not any(worker_losses(row) for row in read_metrics(whole.path))  # there are no workers
    found = evaluate(whole.path, 2)
    assert found["task"] == f"{TASK}:paper"
    assert all(np.isfinite(row["return"]) for row in found["policies"])
    video = tmp_path / "video.gif"
    words = ["render", str(whole.path), "--out", str(video), "--episodes", "1", "--seconds", "0.3"]
    assert main(words) == 0
    assert video.stat().st_size > 5_000


def host_program(num_seeds: int | None) -> Program:
    config = Config(
        algorithm="mappo", num_envs=2, rollout=15, minibatches=2, hidden=(8,), agent_id=False,
        gru_size=4, sequence_length=5,
    )  # fmt: skip
    return Program(get_task(TASK).vec_env("paper", 2 * (num_seeds or 1)), config, num_seeds)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_a_state_saved_in_mid_episode_continues_exactly(num_seeds: int | None) -> None:
    """A new program continues from a checkpoint bit for bit."""
    program, other = host_program(num_seeds), host_program(num_seeds)
    state = program.init(3)
    for _ in range(2):
        state, _ = program.iterate(state)
    assert state.rollout.env_state.time.max() > 0
    copy: TrainState = from_arrays(other.init(0), to_arrays(state))
    for _ in range(2):
        state, _ = program.iterate(state)
        copy, _ = other.iterate(copy)
    for one, two in zip(to_arrays(state).values(), to_arrays(copy).values(), strict=True):
        assert np.array_equal(one, two)


def test_iterating_leaves_the_old_state_valid() -> None:
    """Simulations are values: the same state always gives the same next state."""
    program = host_program(None)
    state = program.init(0)
    first, _ = program.iterate(state)
    program.iterate(first)
    again, _ = program.iterate(state)
    for one, two in zip(to_arrays(first).values(), to_arrays(again).values(), strict=True):
        assert np.array_equal(one, two)


def test_evaluation_is_what_the_policy_does(tmp_path: Path) -> None:
    """The returns of an evaluation are those of the saved policy, run by hand."""
    config = RunConfig.from_preset(TASK).with_settings(
        {**PLAIN, "num_envs": 1, "rollout": 1, "minibatches": 1}
    )
    program = make_program(config)
    actor = program.init(config.seed).learner.actor
    returns = evaluate_params(program, config, actor, 3, (4,)).returns
    assert returns.shape == (1, 3)
    policy = write_policy(tmp_path / "policy", program.setup, actor, {})
    env = get_task(TASK).vec_env("paper", 3)
    key = jax.random.split(program.keys(config.seed, 4, 0))[0]
    (state, now), earned = env.reset(key), np.zeros(3)
    playing = np.ones(3, bool)
    while playing.any():
        state, now = env.step(state, policy.act(now.obs)[0])
        earned += np.asarray(now.reward).mean(-1) * playing
        playing &= ~np.asarray(now.terminated | now.truncated)
    np.testing.assert_allclose(returns[0], earned, rtol=1e-4)


PLAIN = {"seeds": 1, "hidden": (8,), "eval_episodes": 3}
