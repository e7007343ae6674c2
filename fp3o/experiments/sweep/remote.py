"""A sweep on a Ray cluster: generations of trials, each a grid of batches that share a program.

The study stays on the starting machine. It proposes as many trials as the cluster can train at the
same time; they are grouped by program and run as cells of a grid, with the same machinery as the
cells of experiments. When all of them have ended, the next generation is proposed.
"""

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.options import WhereOptions
from fp3o.experiments.framework.ray_backend import run_grid_on_ray
from fp3o.experiments.framework.ray_cluster import connect, import_ray
from fp3o.experiments.sweep.batch import read_batch, write_batch
from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.queue import TrialQueue
from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.experiments.sweep.study import FAILED, SweepStudy, TrialRecord
from fp3o.runs.directory import RunDirectory
from fp3o.runs.progress import Display

BATCHES = "batches"
"""Folder of the batches inside that of a sweep."""


class RemoteSweep:
    """Trains the trials of a sweep on a Ray cluster."""

    def __init__(
        self, settings: SweepSettings, folder: SweepFolder, display: Display, where: WhereOptions
    ):
        self.settings, self.folder, self.display, self.where = settings, folder, display, where
        self.study = SweepStudy(settings, folder.path)
        self.queue = TrialQueue(self.study)

    def run(self) -> bool:
        """Train until all trials have ended or an interrupt comes; whether all have ended."""
        ray = import_ray()
        connect(ray, self.where.address, self.display)
        while True:
            generation = self._propose(_places(ray, self.where))
            if not generation:
                return True
            cells = self._cells(generation)
            out = self.folder.path / BATCHES
            if not run_grid_on_ray(self.where, cells, out, self.display):
                return False
            for cell in cells:
                self._take(out / cell.label, cell.label)
            self.folder.write_results(self.study)

    def _propose(self, places: int) -> list[int]:
        """Trials that have not ended, from before an interruption, and new ones."""
        records = self.study.records()
        self.queue.waiting = [row.number for row in records if row.state == "waiting"]
        wanted = places * self.settings.options.parallel
        while len(self.queue.waiting) < wanted and self.queue.proposed < self.settings.trials:
            self.queue.ask()
        return self.queue.waiting

    def _cells(self, generation: list[int]) -> list[Cell]:
        """One cell per batch: trials of one program, in equal shares."""
        by_program: defaultdict[str, list[int]] = defaultdict(list)
        for number in generation:
            by_program[self.queue.key(number)].append(number)
        records, cells = self.study.records(), []
        before = [row for row in records if row.state != "waiting" and row.state != FAILED]
        for trials in by_program.values():
            count = math.ceil(len(trials) / self.settings.options.parallel)
            for part in (trials[k::count] for k in range(count)):
                cell = Cell(
                    self.settings.base.task, "", "", self.queue.config(part[0]), "trials",
                    detail=f"from trial {part[0]}",
                )  # fmt: skip
                path = self.folder.path / BATCHES / cell.label
                write_batch(path, self.settings, before, [records[k] for k in part])
                cells.append(cell)
        return cells

    def _take(self, path: Path, label: str) -> None:
        """Add the results of a batch to the study."""
        records = self.study.records()
        found = {row.number: row for row in read_batch(path)}
        if not found:
            known = RunDirectory(path).read_json("sweep.json")["known"]
            found = {row["number"]: None for row in known if row["state"] == "waiting"}
        for number, row in found.items():
            if records[number].state == "waiting":
                self._end(number, row, label)

    def _end(self, number: int, row: TrialRecord | None, label: str) -> None:
        if row is None:
            failure = self.folder.path / BATCHES / "failures" / f"{label}.txt"
            lines = failure.read_text().strip().splitlines() if failure.exists() else ["unknown"]
            self.study.tell(number, FAILED, (), reason=f"its batch failed: {lines[-1]}")
            return
        for evaluation, score in row.evaluations.items():
            self.study.report(number, evaluation, score)
        facts = {"steps": row.steps, "seconds": row.seconds}
        facts |= {"reason": row.reason} if row.reason else {}
        self.study.tell(number, row.state, row.scores, **facts)


def _places(ray: Any, where: WhereOptions) -> int:
    """Number of batches that the cluster can train at the same time."""
    found = ray.cluster_resources()
    shares = [found.get("CPU", 1) / where.cpus if where.cpus else math.inf]
    shares.append(found.get("GPU", 0) / where.gpus if where.gpus else math.inf)
    least = min(shares)
    return max(1, int(least)) if math.isfinite(least) else 1
