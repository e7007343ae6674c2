"""Finished cells of experiments without training: synthetic results, and run directories."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from report_runs import algorithm_row, make

from fp3o.experiments.framework import paper_results
from fp3o.experiments.framework.grid import Cell, CellResult
from fp3o.experiments.framework.scales import algorithm_variants, cell_config, make_cells
from fp3o.reports.data.record import RunRecord
from fp3o.runs.progress import QuietDisplay

TASK = "mpe/simple_speaker_listener"

PAPER_TABLES = {
    "mamujoco-table": paper_results.PAPER_MAMUJOCO,
    "smac-table": paper_results.PAPER_SMAC,
    "mpe-table": paper_results.PAPER_MPE,
}

TIMING = {"rollout": 0.2, "update": 0.1, "compile": 1.0, "rollout_mib": 3.0, "update_mib": 4.0}
"""Measured times and memory of a cell."""

MACHINE = {"device": "cpu", "versions": {"jax": "0.10.2"}}


class RecordingDisplay(QuietDisplay):
    """Keeps the lines it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def smoke_cells(*algorithms: str, **settings: Any) -> list[Cell]:
    """Tiny cells of some algorithms."""
    variants = algorithm_variants(*algorithms, **settings)
    return [*make_cells([TASK], ["full"], variants, "smoke")]


def result(
    variant: str, values: Iterable[float | None], task: str = "a", won: bool = False
) -> CellResult:
    """A finished cell with these returns (or win rates) per seed."""
    last = [
        {"seed": k, "return": x, "episode_metrics": {"won": x} if won else {}}
        for k, x in enumerate(values)
    ]
    run = RunRecord(Path(variant), {"settings": {}}, {}, {"last": last})
    config = cell_config(TASK, "full", "smoke", "fp3o")
    return CellResult(Cell(task, "full", variant, config), Path("x"), run)


def finished(cell: Cell, folder: Path, seeds: int = 3) -> CellResult:
    """A cell whose run directory was written by hand."""
    if cell.job == "time":
        timing = {**TIMING, "steps": cell.config.steps_per_iteration, "machine": MACHINE}
        return CellResult(cell, folder / cell.label, timing=timing)
    settings: dict[str, Any] = {**cell.config.settings, "seeds": seeds}
    wins = tuple(0.5 + 0.1 * k for k in range(seeds)) if cell.task.startswith("smac") else ()
    returns = tuple(-5.0 - 0.1 * len(cell.label) - k for k in range(seeds))
    agents = cell.config.task_info.spec(cell.config.variant).num_agents
    row = algorithm_row(settings["algorithm"])
    path = make(folder / cell.label, returns, wins=wins, agents=agents, row=row, **settings)
    (path / "timing.jsonl").write_text(json.dumps({"step": 38400, "seconds": 30.0}) + "\n")
    return CellResult(cell, path, RunRecord.read(path))
