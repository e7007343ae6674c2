"""Finished cells of experiments without training: synthetic results, and run directories."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
    variant: str,
    values: Iterable[float | None],
    task: str = "a",
    won: bool = False,
    curves: Sequence[Sequence[float]] = (),
    **more: Any,
) -> CellResult:
    """A finished cell with these returns (or win rates) per seed.

    `curves` are evaluations at equal shares of training; `more` are metrics of each of their lines.
    It has the planned steps, and two iterations.
    """
    name = "won" if won else "return"
    last = [
        {"seed": k, "return": x, "episode_metrics": {"won": x} if won else {}}
        for k, x in enumerate(values)
    ]
    config = cell_config(TASK, "full", "smoke", "fp3o")
    steps = config.iterations * config.steps_per_iteration
    lines = {
        seed: {
            k: {"step": steps * k // (len(row) - 1), f"eval_{name}": x, **more}
            for k, x in enumerate(row)
        }
        for seed, row in enumerate(curves)
    }
    results = {"last": last, "steps": steps}
    run = RunRecord(Path(variant), {"settings": config.settings}, lines, results)
    return CellResult(Cell(task, "full", variant, config), Path("x"), run)


def with_results(item: CellResult, **more: Any) -> CellResult:
    """A cell with other entries of its results."""
    assert item.run
    return replace(item, run=replace(item.run, results={**item.run.results, **more}))


def finished(cell: Cell, folder: Path, seeds: int = 3) -> CellResult:
    """A cell whose run directory was written by hand, with the planned steps."""
    if cell.job == "time":
        timing = {**TIMING, "steps": cell.config.steps_per_iteration, "machine": MACHINE}
        return CellResult(cell, folder / cell.label, timing=timing)
    settings: dict[str, Any] = {**cell.config.settings, "seeds": seeds}
    wins = tuple(0.5 + 0.1 * k for k in range(seeds)) if cell.task.startswith("smac") else ()
    returns = tuple(-5.0 - 0.1 * len(cell.label) - k for k in range(seeds))
    agents = cell.config.task_info.spec(cell.config.variant).num_agents
    row = algorithm_row(settings["algorithm"])
    path = make(folder / cell.label, returns, wins=wins, agents=agents, row=row, **settings)
    steps = cell.config.iterations * cell.config.steps_per_iteration
    results = json.loads((path / "results.json").read_text())
    (path / "results.json").write_text(json.dumps({**results, "steps": steps}))
    (path / "timing.jsonl").write_text(json.dumps({"step": steps, "seconds": 30.0}) + "\n")
    return CellResult(cell, path, RunRecord.read(path))
