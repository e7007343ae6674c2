"""The quickstart example and the README's snippet run, with fewer iterations."""

import re
import runpy
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from doc_pages import ROOT

from fp3o.experiments import find_experiment

FAMILIES = {
    "mamujoco/Hopper-3x1": "hidden=(4, 4)",
    "smac/3m": "hidden=(4, 4), gru_size=4",
    "gymnasium/CartPole-v1": "hidden=(4,)",
}
"""A task of other families than the README's, and settings in place of the demo's preset."""


def test_quickstart(
    write_report: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It trains, evaluates, loads the policy and runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fp3o.runs.run.report", write_report)
    quickstart = runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    quickstart["main"].__globals__["STEPS"] = 1600
    quickstart["main"]()
    printed = capsys.readouterr().out
    assert "compiled in" in printed
    assert re.search(r"mean of 100 episodes: -\d+\.\d\d per agent", printed)
    assert list(tmp_path.glob("runs/*/report.html"))


@pytest.mark.parametrize("name", ["custom_environment", "custom_metric", "custom_sharing"])
def test_examples_train(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples with a `main` train for a few steps and print what they say."""
    monkeypatch.chdir(tmp_path)
    main = import_module(name).main
    main(steps=200)
    printed = capsys.readouterr().out
    assert ("gap" if name == "custom_metric" else "Run(") in printed
    assert list(tmp_path.glob("runs/*/results.json"))


def test_custom_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's grid is found by its import path and has two cells."""
    monkeypatch.chdir(tmp_path)
    cells = [*find_experiment("custom_experiment:EXPERIMENT").cells("smoke")]
    assert [cell.variant for cell in cells] == ["always", "if the condition holds"]


def test_every_example_is_run() -> None:
    """Each file in examples/ is in one of the tests."""
    tested = {"quickstart", "custom_environment", "custom_metric", "custom_sharing"}
    elsewhere = {
        "custom_experiment", "custom_algorithm", "custom_network", "starcraft2_game",
        "starcraft2_targets",
    }  # fmt: skip
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == tested | elsewhere


@pytest.mark.slow
@pytest.mark.parametrize("task", FAMILIES)
def test_readme_snippet(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's Python block works for every family; its own is tested as a page."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    small = "num_envs=2, rollout=20, steps=40, minibatches=1, eval_episodes=2, final_episodes=2"
    code = block[1].replace('"mpe/simple_speaker_listener"', repr(task))
    code = code.replace('preset="demo"', f"{FAMILIES[task]}, {small}, sequence_length=1")
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["actions"].shape[0] == 8
    assert (tmp_path / "episode.gif").stat().st_size > 1_000
