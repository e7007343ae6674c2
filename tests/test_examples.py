"""The examples and the README's program run as they stand, for fewer iterations."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


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


def test_readme_program() -> None:
    """The README's Python block works when pasted."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, object] = {}
    exec(block[1].replace("range(30)", "range(1)"), names)
    assert names["metrics"]["episode_return"].shape == (5,)  # type: ignore[index]
