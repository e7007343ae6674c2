"""The folder of a small recurrent policy."""

import shutil
from pathlib import Path

import pytest
from small_policies import saved_policy


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("original") / "best"
    saved_policy("partial", 4, "discrete", place)
    return place


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A small recurrent policy's folder."""
    return Path(shutil.copytree(original, tmp_path / "best"))
