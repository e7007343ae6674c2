"""The command line: commands that read a run, options, user errors, displays."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_runs import SMALL, TASK

import fp3o
from fp3o.cli.main import main
from fp3o.errors import MissingExtraError
from fp3o.runs.progress import PlainDisplay, TrainingStatus, duration_text, make_display
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig


def test_command_line(finished: Run, tmp_path: Path, capsys: Any) -> None:
    """The commands that only read, on a finished run."""
    ask = lambda *words: (main([str(word) for word in words]), capsys.readouterr().out)  # noqa: E731
    status, text = ask("evaluate", finished.path, "--episodes", "16", "--json")
    assert status == 0
    assert len(json.loads(text)["policies"]) == 2
    assert ask("export", finished.path, "--out", tmp_path / "mine")[0] == 0
    assert fp3o.Policy.load(tmp_path / "mine").card.spec.name == TASK
    assert ask("report", finished.path, "--out", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    status, text = ask("list", "--json")
    assert {"fp3o", "a2po"} <= json.loads(text)["algorithms"].keys()
    status, text = ask("doctor", "--json")
    tasks = next(row for row in json.loads(text) if row["name"] == "tasks")
    assert status == 0 and {"mpe", "mamujoco", "smac"} <= {*tasks["detail"].split(", ")}
    assert "fp3o train" in ask("--help")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "mpe/simple_spred"], "did you mean 'mpe/simple_spread'"),
        (["train", TASK, "--sharing", "partal"], "did you mean 'partial'"),
        (["train", "--seeds", "2", TASK], "name the task first"),
        (["train", TASK, "--preset", "papr"], "no preset 'papr'"),
        (["train", TASK, "--config", "nowhere.json"], "nowhere.json"),
        (["train", TASK, "--loggers", "wandd"], "did you mean 'wandb'"),
        (["resume", "nowhere"], "there is no directory nowhere"),
        (["evaluate", "nowhere"], "nowhere"),
        (["render", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["experiment", "mpe-tabel"], "did you mean 'mpe-table'"),
    ],
)
def test_user_errors_are_explained(
    words: list[str], message: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that says what was wrong, no traceback, and no files left behind."""
    monkeypatch.chdir(tmp_path)
    assert main(words) in (1, 2)
    error = capsys.readouterr().err
    assert message in error.replace("\n", " ")
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_wrong_options_are_explained(capsys: Any) -> None:
    """An unknown option suggests the nearest known one."""
    with pytest.raises(SystemExit) as stop:
        main(["train", TASK, "--step", "5"])
    assert stop.value.code == 2
    assert "--steps" in capsys.readouterr().err


def test_options_reach_the_run_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file changes the preset, the command line changes the file."""
    seen: list[Any] = []

    def start_run(config: RunConfig, *_: Any, **__: Any) -> Any:
        seen.append(config)
        return SimpleNamespace(finished=False)

    monkeypatch.setattr("fp3o.runs.train.start_run", start_run)
    (tmp_path / "a.toml").write_text("seeds = 3\nclip_range = 0.1\nhidden = [16]")
    words = shlex.split("--clip-range 0.3 --sharing 0,1 --steps 2M --no-agent-id --algorithm coppo")
    words += ["--preset", "paper", "--config", str(tmp_path / "a.toml")]
    main(["train", "mpe/simple_reference", *words])
    settings = seen[0].settings
    wanted = {
        "seeds": 3, "clip_range": 0.3, "hidden": [16], "sharing": [0, 1], "steps": 2_000_000,
        "agent_id": False, "algorithm": "coppo", "epochs": 15,
    }  # fmt: skip
    assert {name: settings[name] for name in wanted} == wanted
    main(["train"])
    assert seen[1].settings == RunConfig.from_preset().settings


def test_missing_extras_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If a package is missing, the message names its extra, and nothing is written."""
    monkeypatch.setattr("fp3o.runs.loggers.find_spec", lambda name: None)
    for name in ("wandb", "mlflow"):
        with pytest.raises(MissingExtraError, match=rf"pip install 'fp3o\[{name}\]'"):
            fp3o.train(TASK, out=tmp_path / "run", loggers=[name], **SMALL)
    assert not list(tmp_path.iterdir())


def test_displays(capsys: Any) -> None:
    """Lines hold steps, rate, time left, return with spread, KL and the condition."""
    status = TrainingStatus("a task", 1000, 0, 2)
    row = {"episode_return": 1.0, "kl": [[0.1, 0.2]], "condition_holds": True}
    status.advance(500, [row, {**row, "episode_return": 3.0}])
    screen = make_display("plain")
    assert isinstance(screen, PlainDisplay)
    screen.update(status)
    text = capsys.readouterr().out
    for words in (
        "50.0 %",
        "500/1k",
        "steps/s",
        "left",
        "2.00 ± 1.00",
        "0.2000",
        "condition 100 %",
    ):
        assert words in text
    live = make_display("live")
    live.update(status)
    live.close()
    assert "a task" in capsys.readouterr().out
    assert (duration_text(3675), duration_text(75)) == ("1:01:15", "1:15")
