"""The examples and the README's program run as they stand, for fewer iterations."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def test_quickstart(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It trains, evaluates, loads the policy and plays an episode with it."""
    monkeypatch.chdir(tmp_path)
    quickstart = runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    quickstart["main"].__globals__["STEPS"] = 1600
    quickstart["main"]()
    printed = capsys.readouterr().out
    assert "compiled in" in printed
    assert len(re.findall(r"seed-\d last", printed)) == 3
    assert re.search(r"one episode: -\d+\.\d\d for each agent", printed)
    assert list(tmp_path.glob("runs/*/report.html"))


@pytest.mark.slow
def test_readme_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's Python block works when pasted."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1].replace("seeds=3", "seeds=3, steps=1600"), names)
    assert names["actions"].shape == (2, 1)
    assert (tmp_path / "episode.gif").stat().st_size > 10_000


def test_two_commands_stand_alone() -> None:
    """Quick start: one command trains, one tests, each alone in its block."""
    start = (ROOT / "README.md").read_text().split("## Quick start")[1].split("\n## ")[0]
    assert re.findall(r"```sh\n(.*?)```", start, re.DOTALL) == ["make demo\n", "make test\n"]
    assert "make test" in (ROOT / ".ci" / "run").read_text()
