"""Sweeps on a cluster: batches of trials as cells of a grid."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_sweeps import small_settings, small_sweep, trial_facts

from fp3o.experiments.framework.options import WhereOptions
from fp3o.experiments.framework.run_grid import run_cell
from fp3o.experiments.sweep import remote
from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.launch import continue_sweep, run_sweep
from fp3o.experiments.sweep.remote import RemoteSweep
from fp3o.runs.atomic import RunError
from fp3o.runs.progress import QuietDisplay

ON_RAY = WhereOptions(on="ray")


class OneNode:
    """As much of Ray as a sweep uses."""

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cells run in this process, as on a node; their labels."""
    labels: list[str] = []

    def run_cells(where: Any, cells: Any, out: Path, display: Any) -> bool:
        labels.extend(cell.label for cell in cells)
        return all(run_cell(cell, out, display).finished for cell in cells)

    monkeypatch.setattr(remote, "import_ray", OneNode)
    monkeypatch.setattr(remote, "connect", lambda *_: None)
    monkeypatch.setattr(remote, "run_grid_on_ray", run_cells)
    return labels


@pytest.mark.slow
def test_generations_of_batches(
    cluster: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores are those of a sweep here, and it resumes between two generations."""
    points = {"actor_lr": [1e-3, 5e-2, 2e-2, 1e30, 3e-3, 4e-3]}
    settings = small_settings(points, sampler="grid", trials=None, parallel=3, pruner="none")

    def interrupted(self: RemoteSweep, path: Path, label: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RemoteSweep, "_take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(settings, tmp_path / "ray", QuietDisplay(), ON_RAY)
    result = continue_sweep(tmp_path / "ray", QuietDisplay(), where=ON_RAY)
    assert cluster == ["credit-from_trial_0"] * 2 + ["credit-from_trial_3"]
    here = small_sweep(tmp_path / "here", search=points, sampler="grid", trials=None, pruner="none")
    for one, other in zip(result.trials, here.trials, strict=True):
        assert (one.state, one.params) == (other.state, other.params)
        np.testing.assert_allclose(one.scores, other.scores, rtol=2e-6, atol=2e-6)
        assert one.evaluations.keys() == other.evaluations.keys()
    assert "diverged" in result.trials[3].reason
    with pytest.raises(RunError, match="add --on ray"):
        continue_sweep(tmp_path / "ray", QuietDisplay())


def test_a_batch_that_fails_fails_its_trials(
    cluster: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: Any) -> bool:
        raise MemoryError("no memory left")

    from fp3o.experiments.framework import run_grid

    broken = {**run_grid.JOBS, "trials": run_grid.JOBS["trials"]._replace(run=no_memory)}
    monkeypatch.setattr(run_grid, "JOBS", broken)
    monkeypatch.setattr(
        remote, "run_grid_on_ray",
        lambda _, cells, out, display: [run_cell(cell, out, display) for cell in cells] and True,
    )  # fmt: skip
    settings = small_settings({"actor_lr": [1e-3, 5e-2]}, sampler="grid", trials=None)
    result = run_sweep(settings, tmp_path / "ray", QuietDisplay(), ON_RAY)
    assert [row.reason for row in result.trials] == [
        "its batch failed: MemoryError: no memory left"
    ] * 2
    assert result.best is None and SweepFolder(result.path).exists()


@pytest.mark.slow
def test_a_real_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    script = Path(__file__).parents[2] / "support" / "ray_sweep.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "ray")], capture_output=True, text=True,
        timeout=600, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert done.returncode == 0 and '{"finished": true}' in done.stdout, done.stderr[-2000:]
    from ray_sweep import grid_sweep

    here = run_sweep(grid_sweep(), tmp_path / "here", QuietDisplay())
    for one, other in zip(trial_facts(tmp_path / "ray"), trial_facts(here.path), strict=True):
        assert one["params"] == other["params"]
        np.testing.assert_allclose(one["scores"], other["scores"], rtol=2e-6, atol=2e-6)
