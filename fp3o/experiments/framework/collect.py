"""Reading finished cells, and the report of an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fp3o.experiments.framework.grid import Cell, CellResult, Experiment, Scale
from fp3o.experiments.framework.run_grid import FAILURES, JOBS, cell_finished, check_cell_folder
from fp3o.reports.data.record import RunRecord
from fp3o.reports.experiment_report import ExperimentReport, Failure
from fp3o.runs.directory import RunDirectory


def read_cells(cells: Sequence[Cell], out: Path, command: str = "") -> list[CellResult]:
    """Results of the finished cells; `command` is the one that reproduces all of them."""
    finished = [cell for cell in cells if cell_finished(cell, out)]
    for cell in finished:
        check_cell_folder(cell, out)
    return [_read_cell(cell, out / cell.label, command) for cell in finished]


def _read_cell(cell: Cell, path: Path, command: str) -> CellResult:
    if cell.job != "train":
        return CellResult(cell, path, timing=RunDirectory(path).read_json(JOBS[cell.job].result))
    return CellResult(cell, path, _label_run(RunRecord.read(path), cell, command))


def _label_run(run: RunRecord, cell: Cell, command: str) -> RunRecord:
    """A run with the label of its cell and the command that reproduces it."""
    label = " · ".join(filter(None, (cell.variant, cell.sharing, cell.detail)))
    length = f"--steps {run.settings['steps']} --seeds {run.settings['seeds']}"
    command = (
        f"{command} --part {cell.label} {length}" if command else run.metadata.get("command", "")
    )
    return replace(run, label=label, metadata={**run.metadata, "command": command})


def experiment_report(
    experiment: Experiment, cells: Sequence[Cell], scale: Scale, out: Path, command: str
) -> ExperimentReport:
    """The report of an experiment, from the cells that are finished."""
    results = read_cells(cells, out, command)
    summary = experiment.summarise(results)
    finished = {item.cell.label for item in results}
    errors = {
        cell.label: out / FAILURES / f"{cell.label}.txt"
        for cell in cells
        if cell.label not in finished
    }
    failed = {label: path for label, path in errors.items() if path.exists()}
    return ExperimentReport(
        name=experiment.name, title=experiment.title, question=experiment.question,
        claim=experiment.claim, verdict=summary.verdict, command=command, scale=scale,
        tables=summary.tables, figures=summary.figures, notes=summary.notes,
        runs=[item.run for item in results if item.run],
        failures=[Failure(label, path.read_text().strip()) for label, path in failed.items()],
        missing=[label for label in errors if label not in failed],
        machines=_machines(results), key_result=summary.key_result,
    )  # fmt: skip


def _machines(results: Sequence[CellResult]) -> str:
    """Devices and JAX versions of all cells, including those they were resumed on."""
    records: list[Mapping[str, Any]] = []
    for item in results:
        record = item.run.metadata if item.run else item.timing["machine"]
        records += [record, *record.get("resumed", [])]
    devices = dict.fromkeys(str(record["device"]) for record in records)
    versions = sorted({str(record["versions"]["jax"]) for record in records})
    return f"{'; '.join(devices)}; jax {', '.join(versions)}" if records else ""
