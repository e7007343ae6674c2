"""Many runs in one process, quickly; and an undamaged run to compare with."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from probe_runs import QUIET, SETTINGS, Originals, StopAfter
from small_runs import TASK

import fp3o
from fp3o.runs import trainer


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Figures are not drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda self, out, **_: out.write("<svg></svg>"))
        yield


@pytest.fixture(scope="module")
def originals(no_figures: None, tmp_path_factory: pytest.TempPathFactory) -> Originals:
    """A run that was stopped, and the same run finished."""
    folder = tmp_path_factory.mktemp("originals")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "stop_signals", StopAfter(4))
        stopped = fp3o.train(TASK, out=folder / "stopped", **SETTINGS).path
    copied = Path(shutil.copytree(stopped, folder / "finished"))
    return Originals(stopped, fp3o.resume(copied, **QUIET).path)
