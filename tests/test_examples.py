"""The examples and the README's program run as they stand, for fewer iterations."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_quickstart(capsys: pytest.CaptureFixture[str]) -> None:
    """It trains, evaluates and prints a row for every seed."""
    quickstart = runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    quickstart["main"].__globals__["ITERATIONS"] = 2
    quickstart["main"]()
    printed = capsys.readouterr().out
    assert "compiled in" in printed
    assert len(re.findall(r"open|shut", printed)) == quickstart["SEEDS"]


def test_readme_program() -> None:
    """The README's Python block works when pasted."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, object] = {}
    exec(block[1].replace("range(30)", "range(1)"), names)
    assert names["metrics"]["episode_return"].shape == (5,)  # type: ignore[index]
