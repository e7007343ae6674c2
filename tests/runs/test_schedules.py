"""Runs whose hyperparameters have schedules: settings, metrics, and exact resumption."""

import json
from pathlib import Path
from typing import Any

import kill_and_resume
import numpy as np
import pytest
from kill_and_resume import differences, environment, interrupted, whole
from probe_runs import StopAfter, weights
from small_runs import SMALL, TASK, read_metrics

import fp3o
from fp3o.cli.train import read_train_options, train_command
from fp3o.cli.train_options import TrainOptions
from fp3o.runs import trainer
from fp3o.runs.run import Run

SCHEDULES: dict[str, Any] = {
    "actor_lr": "5e-3:0",
    "critic_lr": "warmup:peak=5e-3,fraction=0.5,end=1e-3",
    "clip_range": "cosine:start=0.3,end=0.1",
    "entropy_coef": "piecewise:0=0.05,0.5=0.01",
    "gamma": "0.9:0.99",
}
QUIET: dict[str, Any] = {"progress": "quiet", "loggers": ()}
SCHEDULED = {**SMALL, **SCHEDULES, **QUIET}


def values(run: Run, name: str) -> np.ndarray:
    """A hyperparameter over the iterations; the same for both seeds."""
    first, second = run.series(name).value
    np.testing.assert_array_equal(first, second)
    return first


def test_a_constant_schedule_is_the_constant(tmp_path: Path, finished: Run) -> None:
    """Bit for bit; the metrics have the value in addition."""
    lr, clip = finished.settings["actor_lr"], finished.settings["clip_range"]
    same: dict[str, Any] = {"actor_lr": f"constant:value={lr}", "clip_range": f"{clip}:{clip}"}
    run = fp3o.train(TASK, out=tmp_path / "run", **SMALL, **same)
    assert weights(run.path) == weights(finished.path)
    rows = read_metrics(run.path)
    assert [rows[k].pop("actor_lr") for k in range(2, len(rows))] == [lr] * (len(rows) - 2)
    for row in rows[2:]:
        assert row.pop("clip_range") == clip
    assert rows == read_metrics(finished.path)


def test_a_scheduled_run_resumes_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of every iteration are logged; a longer run continues at its own share."""
    run = fp3o.train(TASK, out=tmp_path / "whole", **SCHEDULED)
    assert {name: run.settings[name] for name in SCHEDULES} == SCHEDULES
    config = json.loads((run.path / "config.json").read_text())
    assert config["settings"]["actor_lr"] == "5e-3:0"
    np.testing.assert_allclose(values(run, "actor_lr"), 5e-3 * (1 - np.arange(6) / 6), rtol=1e-5)
    np.testing.assert_allclose(values(run, "entropy_coef"), [0.05] * 3 + [0.01] * 3, rtol=1e-6)
    assert not run.series("gae_lambda").step.size

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "stop_signals", StopAfter(3))
        part = fp3o.train(TASK, out=tmp_path / "part", **SCHEDULED)
    assert not part.finished and part.step == 96
    assert fp3o.resume(part.path, **QUIET).finished
    assert differences(run.path, part.path) == []

    longer = fp3o.resume(part.path, steps=24 * 8, **QUIET)
    found = values(longer, "actor_lr")
    np.testing.assert_allclose(found[:6], values(run, "actor_lr"), rtol=1e-5)
    np.testing.assert_allclose(found[6:], [5e-3 * 2 / 8, 5e-3 * 1 / 8], rtol=1e-5)


def test_killed_runs_with_schedules_resume_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After SIGKILL at random times the result equals an uninterrupted run, bit for bit."""
    flags = [word for name, text in SCHEDULES.items() for word in (f"--{name}", text)]
    flags = [word.replace("_", "-") if word.startswith("--") else word for word in flags]
    monkeypatch.setattr(kill_and_resume, "SETTINGS", [*flags, *kill_and_resume.SETTINGS])
    env, steps = environment(tmp_path / "cache"), 48 * 30
    whole(tmp_path / "whole", TASK, steps, env)
    left = interrupted(tmp_path / "killed", TASK, steps, 2, env)
    assert len(left) == 2
    assert differences(tmp_path / "whole", tmp_path / "killed") == []
    assert len({row["actor_lr"] for row in read_metrics(tmp_path / "killed")[2:]}) == 30


def read_flags(*flags: str) -> dict[str, Any]:
    options = read_train_options(TrainOptions, [TASK, *flags], train_command)
    return options.settings.config.settings


def test_the_command_line_and_settings_files(tmp_path: Path) -> None:
    """The same text everywhere; a flag replaces the schedule of a file."""
    file = tmp_path / "settings.toml"
    file.write_text('actor_lr = "5e-4:0"\nvalue_clip = "cosine:start=0.2,end=0.1"\n')
    found = read_flags("--config", str(file), "--critic-lr", "piecewise:0=5e-4,0.5=1e-4")
    assert found["actor_lr"] == "5e-4:0"
    assert found["value_clip"] == "cosine:start=0.2,end=0.1"
    assert found["critic_lr"] == "piecewise:0=5e-4,0.5=1e-4"
    found = read_flags("--config", str(file), "--actor-lr", "1e-3", "--value-clip", "None")
    assert (found["actor_lr"], found["value_clip"]) == (1e-3, None)


def test_wrong_schedules_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line and in Python, before anything is written."""
    with pytest.raises(SystemExit):
        read_flags("--actor-lr", "cosin:start=1,end=0")
    assert "did you mean 'cosine'" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit):
        read_flags("--actor-lr", "high")
    assert "'high' is no number; a schedule is written as" in capsys.readouterr().err
    for wrong, message in (
        ({"actor_lr": "cosine:start=1"}, "actor_lr: the schedule cosine needs the option end"),
        ({"clip_range": "0.2:0"}, "clip_range must be above 0, got 0.0 in its schedule"),
        ({"gamma": ["0.9:1"]}, "gamma must be a number"),
        ({"num_envs": "1:2"}, "num_envs must be an integer"),
    ):
        with pytest.raises(fp3o.SettingError, match=message):
            fp3o.train(TASK, out=tmp_path / "run", **{**SMALL, **wrong})
    assert not (tmp_path / "run").exists()
