"""A finished run, and runs without a report."""

import pytest
from small_runs import SMALL, TASK

import fp3o
from fp3o.runs import run as run_module
from fp3o.runs.run import Run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One finished run, shared by several tests."""
    return fp3o.train(TASK, out=tmp_path_factory.mktemp("runs") / "one", **SMALL)


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds; one run's report is enough."""
    monkeypatch.setattr(run_module, "report", lambda _, out: out)
