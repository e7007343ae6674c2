"""Runs on the host: stopped and resumed in mid-episode; environments that fail in workers."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import fp3o
from fp3o.cli.main import main
from fp3o.envs.api import HostEnv
from fp3o.envs.registry import TASKS, get_task
from fp3o.envs.workers.protocol import WorkerPoolError
from fp3o.learning.config import Config
from fp3o.runs import run as runner
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.evaluation import evaluate, evaluate_params, make_program
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program, TrainState

TASK = "mamujoco/Hopper-3x1"
SMALL: dict[str, Any] = {
    "algorithm": "fp3o", "sharing": "partial", "seeds": 2, "num_envs": 2, "rollout": 15,
    "minibatches": 2, "hidden": (8,), "epochs": 1, "eval_every": 0, "eval_episodes": 2,
    "final_episodes": 2, "progress": "quiet", "loggers": (),
}  # fmt: skip
ITERATION = 30


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "report", lambda _, out: out)


def weights(path: Path, seed: int) -> dict[str, np.ndarray]:
    return load_file(path / "policy" / f"seed-{seed}" / "last" / "weights.safetensors")


@pytest.mark.usefixtures("undrawn")
def test_a_run_on_the_host(tmp_path: Path) -> None:
    """Stopped in mid-episode and resumed it is the run that was not; it is judged and filmed."""
    whole = fp3o.train(TASK, out=tmp_path / "whole", steps=4 * ITERATION, **SMALL)
    part = fp3o.train(TASK, out=tmp_path / "part", steps=3 * ITERATION, **SMALL)
    fp3o.resume(part.path, steps=4 * ITERATION, progress="quiet", loggers=())
    for seed in range(2):
        first, second = weights(whole.path, seed), weights(part.path, seed)
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not any(lost(row) for row in metrics(whole.path))  # there are no workers
    found = evaluate(whole.path, 2)
    assert found["task"] == f"{TASK}:paper"
    assert all(np.isfinite(row["return"]) for row in found["policies"])
    film = tmp_path / "film.gif"
    words = ["render", str(whole.path), "--out", str(film), "--episodes", "1", "--seconds", "0.3"]
    assert main(words) == 0
    assert film.stat().st_size > 5_000


def host_program(num_seeds: int | None) -> Program:
    config = Config(
        algorithm="mappo", num_envs=2, rollout=15, minibatches=2, hidden=(8,), agent_id=False,
        gru_size=4, sequence_length=5,
    )  # fmt: skip
    return Program(get_task(TASK).vec_env("paper", 2 * (num_seeds or 1)), config, num_seeds)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_a_state_saved_in_mid_episode_goes_on_exactly(num_seeds: int | None) -> None:
    """Through a checkpoint into a new program: everything after it is the same, bit by bit."""
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


def test_iterating_leaves_the_old_state_good() -> None:
    """The simulations are values: the same state gives the same next one, whatever came between."""
    program = host_program(None)
    state = program.init(0)
    first, _ = program.iterate(state)
    program.iterate(first)
    again, _ = program.iterate(state)
    for one, two in zip(to_arrays(first).values(), to_arrays(again).values(), strict=True):
        assert np.array_equal(one, two)


def test_evaluation_is_what_the_policy_does(tmp_path: Path) -> None:
    """The returns of an evaluation are those of the saved policy, played by hand."""
    plan = RunConfig.from_preset(TASK).with_settings(
        {**PLAIN, "num_envs": 1, "rollout": 1, "minibatches": 1}
    )
    program = make_program(plan)
    actor = program.init(plan.seed).learner.actor
    returns = evaluate_params(program, plan, actor, 3, (4,)).returns
    assert returns.shape == (1, 3)
    from fp3o.policy.export import write_policy

    policy = write_policy(tmp_path / "policy", program.setup, actor, {})
    env = get_task(TASK).vec_env("paper", 3)
    key = jax.random.split(program.keys(plan.seed, 4, 0))[0]
    (state, now), earned = env.reset(key), np.zeros(3)
    playing = np.ones(3, bool)
    while playing.any():
        state, now = env.step(state, policy.act(now.obs)[0])
        earned += np.asarray(now.reward).mean(-1) * playing
        playing &= ~np.asarray(now.terminated | now.truncated)
    np.testing.assert_allclose(returns[0], earned, rtol=1e-4)


PLAIN = {"seeds": 1, "hidden": (8,), "eval_episodes": 3}


def test_names_and_presets() -> None:
    """The paper's tasks and presets, bodies of any length, other spellings; wrong words tell."""
    for name in ("Reacher-2x1", "Ant-2x4", "Walker2d-2x3", "Hopper-3x1", "HalfCheetah-6x1",
                 "ManyagentSwimmer-8x2"):  # fmt: skip
        task = TASKS[f"mamujoco/{name}"]
        assert list(task.presets) == ["paper", "paper-partial", "paper-none", "farama"]
        for preset in task.presets:
            RunConfig.from_preset(task.name, preset).check()
        partial = task.presets["paper-partial"]
        assert partial["head_lr_factor"] == task.spec("paper").num_agents
        tight = name.split("-")[0] in ("Hopper", "Walker2d")
        assert task.presets["paper"]["clip_range"] == (0.05 if tight else 0.2)
    long = get_task("mamujoco/ManySegmentSwimmer-3x4")
    assert long.name == "mamujoco/ManyagentSwimmer-3x4"
    assert long.spec().actions.sizes == (4, 4, 4)  # pyright: ignore
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


def test_an_error_in_a_step_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens in the middle of a step, the same state gives the same next one."""
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


def test_keys_of_any_kind_tell_environments_apart() -> None:
    """Random numbers of another implementation are longer; every environment has its own stream."""
    env: Any = get_task(TASK).vec_env("paper", 4)
    for kind in ("threefry2x32", "rbg"):
        state, _ = env.reset(jax.random.key(0, impl=kind))
        assert len({tuple(row) for row in state.stream}) == 4
        both, _ = env.reset(jax.random.split(jax.random.key(0, impl=kind), 2))
        assert len({tuple(row) for row in both.stream}) == 4


def test_films_colour_what_an_agent_moves() -> None:
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


FEW: dict[str, Any] = {
    **SMALL, "algorithm": "mappo", "sharing": "full", "seeds": 1, "num_envs": 4, "rollout": 5,
    "minibatches": 1, "eval_episodes": 1, "final_episodes": 1,
}  # fmt: skip
"""Settings for the environments of `tiny_zoo`, whose episodes have five steps."""


def counting(folder: Path, *deeds: str, on_failure: str = "replace") -> dict[str, Any]:
    """A task whose workers do these deeds in the thirteenth step they live to see."""
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    folder.mkdir()
    ours = f"workers=1,on_failure={on_failure},timeouts.step=1.5"
    theirs = f"env.folder={str(folder)!r},env.deeds={deeds!r},env.late=12"
    return {"task": "pettingzoo:tiny_zoo:Counting", "variant": f"default:{ours},{theirs}"}


def metrics(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def lost(row: dict[str, Any]) -> dict[str, int]:
    return {name: number for name, number in row.items() if name.startswith("env_")}


@pytest.mark.usefixtures("undrawn")
def test_losses_are_among_the_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Killed, asleep for ever, NaN, wrong shape: training goes on, also later, and tells."""
    task = counting(tmp_path / "deeds", "kill", "hang", "nan", "shape")
    settings = {**FEW, "progress": "plain"}
    with pytest.warns(RuntimeWarning, match="a new worker is started") as told:
        run = fp3o.train(**task, out=tmp_path / "run", steps=3 * 20, **settings)
    assert run.finished and len(told) == 4
    before, first, *others = metrics(run.path)
    assert not any(lost(before).values()) and not any(lost(first).values())
    wanted = {
        "env_crashed": 1, "env_hung": 1, "env_invalid": 2, "env_restarts": 4, "env_lost_steps": 8,
    }  # fmt: skip
    assert [lost(row) for row in others] == [wanted] * 2
    assert lost(run.results) == wanted
    words = "after step 20, workers replaced: 4 (1 crashed, 1 hung, 2 invalid); 8 steps of their"
    assert words in capsys.readouterr().out
    # Episodes that were running when it stopped are lost, too.
    with pytest.warns(RuntimeWarning, match="4 running episodes of 8 steps") as told:
        fp3o.resume(run.path, steps=4 * 20, progress="quiet", loggers=())
    assert len(told) == 1
    assert lost(metrics(run.path)[-1]) == {**wanted, "env_lost_steps": 16}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("kill", "crashed, ended by signal 9"),
        pytest.param("hang", "hung, no reply in time", marks=pytest.mark.slow),
        pytest.param("nan", "invalid, reward is not finite", marks=pytest.mark.slow),
        pytest.param("shape", "invalid, agent 'a_0' has an obs", marks=pytest.mark.slow),
    ],
)
def test_a_failure_that_stops_a_run_loses_nothing(tmp_path: Path, deed: str, words: str) -> None:
    """What was learned before is saved, can be loaded, and the run goes on from there."""
    task = counting(tmp_path / "deeds", deed, on_failure="stop")
    path, settings = tmp_path / "run", {**FEW, "num_envs": 1}
    with pytest.raises(WorkerPoolError, match=f"failed after 2 steps of its episode.*: {words}"):
        fp3o.train(**task, out=path, steps=3 * 5, **settings)
    kept = metrics(path)
    assert [row["iteration"] for row in kept] == [0, 1]
    assert [file.stem for file in (path / "checkpoints").iterdir()] == ["000000001"]
    action, _ = fp3o.Policy.load(path).act(np.zeros((2, 2)))
    assert action.shape == (2, 1)
    assert fp3o.resume(path, progress="quiet", loggers=()).finished
    rows = metrics(path)
    assert rows[:2] == kept and [row["iteration"] for row in rows] == [0, 1, 2, 3]
