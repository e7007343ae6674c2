"""TODO."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fp3o.experiments.framework.grid import Cell, CellResult, Experiment, Scale
from fp3o.experiments.framework.run_grid import FAILURES, WORKS, done, refuse_another
from fp3o.reports.data.record import RunRecord, read_runs
from fp3o.reports.experiment_report import ExperimentReport, Failure


def found(cells: Sequence[Cell], out: Path, command: str = "") -> list[CellResult]:
    """The finished cells; `command` does all of them again."""
    there = [cell for cell in cells if done(cell, out)]
    for cell in there:
        refuse_another(cell, out)
    trained = {cell.label: out / cell.label for cell in there if cell.work == "train"}
    runs = {run.path.name: run for run in read_runs([*trained.values()])} if trained else {}
    facts = {
        cell.label: json.loads((out / cell.label / WORKS[cell.work].result).read_text())
        for cell in there
        if cell.work != "train"
    }
    return [
        CellResult(
            cell, out / cell.label, named(runs.get(cell.label), cell, command),
            facts.get(cell.label, {}),
        )
        for cell in there
    ]  # fmt: skip


def named(run: RunRecord | None, cell: Cell, command: str) -> RunRecord | None:
    """A run under the name that its experiment has for it, and how to do it again there."""
    words = " · ".join(filter(None, (cell.variant, cell.sharing, cell.more)))
    if run is None:
        return None
    told = run.settings
    how_long = f"--steps {told['steps']} --seeds {told['seeds']}"
    again = {"command": f"{command} --part {cell.label} {how_long}"} if command else {}
    return replace(run, label=words, config={**run.config, **again})


def exhibit(
    experiment: Experiment, cells: Sequence[Cell], scale: Scale, out: Path, command: str
) -> ExperimentReport:
    """All that can be said about an experiment now."""
    findings = found(cells, out, command)
    shown = experiment.show(findings)
    there = {item.cell.label for item in findings}
    failed = [
        cell.label
        for cell in cells
        if cell.label not in there and (out / FAILURES / f"{cell.label}.txt").exists()
    ]
    return ExperimentReport(
        name=experiment.name, title=experiment.title, question=experiment.question,
        claim=experiment.claim, verdict=shown.verdict, command=command, scale=scale,
        tables=shown.tables, pictures=shown.pictures, notes=shown.notes,
        runs=[item.run for item in findings if item.run],
        failures=[Failure(x, (out / FAILURES / f"{x}.txt").read_text().strip()) for x in failed],
        missing=[cell.label for cell in cells if cell.label not in {*there, *failed}],
        machines=machines(findings),
    )  # fmt: skip


def machines(findings: Sequence[CellResult]) -> str:
    """The devices and versions of all cells, those they were resumed on included."""
    parts: list[Mapping[str, Any]] = []
    for item in findings:
        config = item.run.config if item.run else item.facts["machine"]
        parts += [config, *config.get("resumed", [])]
    devices = dict.fromkeys(str(part["device"]) for part in parts)
    versions = sorted({str(part["versions"]["jax"]) for part in parts})
    return f"{'; '.join(devices)}; jax {', '.join(versions)}" if parts else ""
