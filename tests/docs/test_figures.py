"""The programs that draw the figures of the documentation run, and the site builds."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import DOCS, ROOT
from PIL import Image

SLOW = ("auto", "particles")
"""Figures that step environments or compile programs."""
FIGURES = sorted(
    path.stem for path in (DOCS / "figures").glob("*.py") if "def draw(" in path.read_text()
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in FIGURES]
)
def test_figures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program draws an image of the same size as the one in the repository."""
    monkeypatch.syspath_prepend(DOCS / "figures")
    path = importlib.import_module(name).draw(tmp_path)
    kept = DOCS / "assets" / path.name
    assert max(path.stat().st_size, kept.stat().st_size) < 150_000
    with Image.open(path) as new, Image.open(kept) as old:
        assert new.size == old.size


@pytest.mark.slow
def test_site_builds(tmp_path: Path) -> None:
    """`mkdocs build --strict` gives no warning."""
    program = Path(sys.executable).parent / "mkdocs"
    command = [program, "build", "--strict", "--site-dir", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
