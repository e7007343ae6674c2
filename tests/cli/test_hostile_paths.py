"""Paths and names with markup of the terminal are text in every command."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_runs import make
from rich.console import Console

from fp3o.cli import listing
from fp3o.cli.main import main
from fp3o.cli.train import conclude
from fp3o.runs.progress import LiveDisplay, TrainingStatus
from fp3o.runs.run import Run

NAMES = ("[/red]x", "[bold", "[link=http://e.vil]y[/link]", "[/]")


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run in a directory with such a name."""
    return make(tmp_path / request.param, (-5.0,), iterations=1, plain=True)


def test_the_summary_of_training(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paths are printed as they are."""
    monkeypatch.setattr(Run, "config", property(lambda _: _renderable()))
    assert conclude(Run.load(run), quiet=False) == 0
    assert f"report   {run / 'report.html'}" in capsys.readouterr().out


def _renderable() -> Any:
    class Info:
        variant, task, task_info = "", "probe/credit", property(lambda self: self)
        renderable = staticmethod(lambda variant: True)

    return Info()


@pytest.mark.parametrize("command", ["report", "evaluate", "render", "resume", "export", "train"])
def test_commands_name_such_a_directory(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an error, here: markup does not make it another one."""
    out = tmp_path / "[/red]x"
    arguments = [str(out), "--out", str(tmp_path / "y")] if command in ("export",) else [str(out)]
    if command == "train":
        (tmp_path / "[").write_text("")
        out = tmp_path / "[" / "red]x"
        arguments = ["probe/credit", "--out", str(out)]
    assert main([command, *arguments]) in (1, 2)
    output = capsys.readouterr()
    assert str(out) in output.err.replace("\n", "") and "Traceback" not in output.err


def test_the_live_panel_and_its_spinner() -> None:
    """Titles are names of tasks, algorithms and cells."""
    stream = io.StringIO()
    display = LiveDisplay(Console(file=stream, force_terminal=True, width=200))
    for name in NAMES:
        status = TrainingStatus(name, 10, 5, 1)
        status.numbers = {name: name}
        with display.waiting(f"rendering {name}"):
            display.say(name)
        display.update(status)
        display.close()
    assert all(name in stream.getvalue() for name in NAMES)


def test_components_with_markup_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Custom tasks and schemes have texts of their own."""
    data = {
        "tasks": {
            name: {"agents": 1, "actions": "[/x]", "variants": [], "presets": [], "summary": name}
            for name in NAMES
        },
        "algorithms": {},
        "loggers": NAMES,
        "families": dict(zip(NAMES, NAMES, strict=True)),
        "sharings": dict(zip(NAMES, NAMES, strict=True)),
        "experiments": dict(zip(NAMES, NAMES, strict=True)),
    }
    monkeypatch.setattr(listing, "listing", lambda pattern: data)
    console = Console(file=io.StringIO(), width=200)
    for table in listing.listing_tables():
        console.print(table)


def test_a_platform_that_is_not_there(tmp_path: Path) -> None:
    """One message that names the variable; nothing is written."""
    environment = {**os.environ, "JAX_PLATFORMS": "nonsense", "PYTHONPATH": os.getcwd()}
    program = [sys.executable, "-m", "fp3o", "train", "probe/credit", "--out", str(tmp_path / "x")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "JAX_PLATFORMS='nonsense'" in done.stderr and "Unset" in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_the_doctor_names_a_platform_that_is_not_there() -> None:
    """Once; tasks are not tried on it."""
    environment = {**os.environ, "JAX_PLATFORMS": "tpu", "PYTHONPATH": os.getcwd()}
    program = [sys.executable, "-m", "fp3o", "doctor"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    text = " ".join(done.stdout.split())
    assert done.returncode == 1 and "Traceback" not in done.stderr + done.stdout
    assert text.count("RuntimeError") == 1 and "not tested" in text
