"""A finished run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import SMALL, TASK

import fp3o
from fp3o.runs import run as run_module
from fp3o.runs.run import Run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, write_report: Callable[..., Path]) -> Run:
    """One finished run with its report, shared by several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "report", write_report)
        return fp3o.train(TASK, out=tmp_path_factory.mktemp("runs") / "one", **SMALL)
