"""Fixtures of the tests with worker processes."""

from pathlib import Path

import pytest


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which processes leave their ids."""
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setenv("FAKE_TRACES", str(folder))
    return folder
