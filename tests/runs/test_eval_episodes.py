"""Numbers of evaluation episodes follow the measured speed, before the run starts."""

import json
from pathlib import Path
from typing import Any

import pytest
from host_cues import CueTask
from small_runs import SMALL

import fp3o
from fp3o.envs.random_play import PlaySpeed
from fp3o.envs.registry import parse_task
from fp3o.runs import eval_episodes
from fp3o.runs.eval_episodes import (
    FINAL_EPISODES,
    affordable,
    choose_episodes,
    evaluation_episodes,
    task_speed,
)
from fp3o.runs.run_config import RunConfig

OPEN = {name: x for name, x in SMALL.items() if name not in ("eval_episodes", "final_episodes")}


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the measured speed: episodes of three steps per second."""

    def measure(episodes_per_second: float) -> None:
        found = PlaySpeed(3 * episodes_per_second, 3.0)
        monkeypatch.setattr(eval_episodes, "task_speed", lambda task, variant: found)

    return measure


@pytest.mark.parametrize(
    ("per_second", "number"),
    [(1e-3, 32), (1.0, 32), (2.0, 50), (6.6, 100), (33.0, 500), (1e6, 1000)],
)
def test_round_numbers(per_second: float, number: int) -> None:
    """As many as fit into 30 seconds, between 32 and 1000."""
    assert affordable(FINAL_EPISODES, per_second, 30.0) == number


@pytest.mark.usefixtures("registries")
def test_numbers_of_a_run(speed: Any) -> None:
    """Per seed, and said in one line; numbers that are given stay as they are."""
    speed(8.0)
    task = fp3o.register_env(CueTask()).name
    config, lines = RunConfig.from_preset(task), []
    chosen = choose_episodes(config, lines.append)
    assert (chosen.eval_episodes, chosen.final_episodes) == (16, 100)
    assert "16 episodes per seed during training and 100 at the end (about 25 s" in lines[0]
    assert "8 episodes/s" in lines[0] and "1M steps take at least" in lines[1]
    five = choose_episodes(config.with_settings({"seeds": 5, "eval_episodes": 7}), lines.append)
    assert (five.eval_episodes, five.final_episodes) == (7, 32)
    given = config.with_settings({"eval_episodes": 3, "final_episodes": 5})
    assert choose_episodes(given, lines.append) is given


def test_short_compiled_episodes_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep the usual numbers."""
    monkeypatch.setattr(eval_episodes, "task_speed", None)
    zero = RunConfig.from_preset("probe/credit").with_settings({"eval_episodes": 0})
    assert choose_episodes(zero, print).eval_episodes == 100
    assert RunConfig.from_preset("mpe/simple_spread", "paper").final_episodes == 1000


def test_long_compiled_episodes_are_measured(speed: Any) -> None:
    """Battles, for example: 1000 of them take minutes on a CPU."""
    speed(10.0)
    task, lines = parse_task("smac/27m_vs_30m")[0], []
    assert evaluation_episodes(task, None, 2, lines.append) == 100
    assert lines == [
        "evaluating 100 episodes per policy (about 20 s at the measured 10 episodes/s)"
    ]
    speed(1e4)
    assert evaluation_episodes(task, None, 2, lines.append) == 1000


def test_the_speed_of_a_batch_is_measured() -> None:
    """Also of compiled environments, without their compilation."""
    speed = task_speed(*parse_task("probe/memory"))
    assert speed.steps_per_second > 100 and speed.episode_steps == 3


@pytest.mark.usefixtures("registries")
def test_the_run_stores_its_numbers(speed: Any, tmp_path: Path) -> None:
    """In config.json, before training; a resumed run does not measure again."""
    speed(0.01)
    run = fp3o.train(CueTask(), out=tmp_path / "run", loggers=(), **OPEN)
    settings = json.loads((run.path / "config.json").read_text())["settings"]
    assert (settings["eval_episodes"], settings["final_episodes"]) == (8, 32)
    assert run.results["evaluation"]["episodes"] == 32
    random = run.results["baselines"]["random"]
    assert random["role"] == "random" and random["episodes"] == 32
    assert 0.2 < random["return"] < 0.8
    speed(1e6)
    more = fp3o.resume(run.path, steps=2 * SMALL["steps"], progress="quiet", loggers=())
    assert more.results["evaluation"]["episodes"] == 32
    found = fp3o.evaluate(run.path, 4)
    assert found["baselines"]["random"]["episodes"] == 4
    speed(2.0)
    assert fp3o.evaluate(run.path)["episodes"] == 32  # two policies share the time


def test_negative_numbers_are_refused() -> None:
    """0 is the only number that is not taken as it is."""
    with pytest.raises(ValueError, match="final_episodes must be at least 0"):
        RunConfig.from_preset("probe/credit").with_settings({"final_episodes": -1}).check()
