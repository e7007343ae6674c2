"""Fixtures of the tests with MuJoCo."""

from pathlib import Path

import pytest


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes warnings to a file in the current folder; some of these tests cause them."""
    monkeypatch.chdir(tmp_path)
