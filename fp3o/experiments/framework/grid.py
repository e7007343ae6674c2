"""Experiments as grids: cells with plans, the scales they can be run at, what was found.

An experiment is a function from a scale to cells, and one from what was found to what is shown.
Cells are told apart by a few words: the task, the sharing, and the variant that is compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fp3o.reports.data.measures import Measure, measure
from fp3o.reports.data.record import RunRecord
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.runs.run_config import RunConfig

Scale = Literal["paper", "gpu", "laptop", "smoke"]

SCALES: Mapping[Scale, str] = {
    "paper": "the paper's tasks, steps and batches: days",
    "gpu": "the paper's hyperparameters, with large batches for battles and fewer steps for bodies",
    "laptop": "small tasks or few steps: minutes a cell on two cores",
    "smoke": "two tiny iterations, to see that everything works: seconds a cell, numbers mean "
    "nothing",
}
"""How large an experiment can be."""

SHARINGS = ("full", "partial", "none")


@dataclass(frozen=True)
class Cell:
    """One place of a grid: what tells it from the others, and the work to be done there."""

    task: str
    sharing: str
    variant: str
    """What is compared, as tables call it."""
    config: RunConfig
    work: str = "train"
    """One of `conduct.WORKS`."""
    more: str = ""
    """A fourth word where three do not tell it from the others, such as a rollout size."""

    @property
    def label(self) -> str:
        """The name of its directory."""
        own = map(slug, (self.sharing, self.variant, self.more))
        return "-".join(filter(None, (self.task.split("/")[-1], *own)))


def slug(words: str) -> str:
    """Words as a part of a file's name."""
    kept = "".join(x if x.isalnum() or x == "_" else " " for x in words.lower())
    return "_".join(kept.split())


@dataclass(frozen=True)
class CellResult:
    """A finished cell."""

    cell: Cell
    path: Path
    run: RunRecord | None = None
    """What was trained."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was measured, if nothing was trained."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Task, sharing, variant."""
        return self.cell.task, self.cell.sharing, self.cell.variant

    @property
    def measure(self) -> Measure:
        """What its task is judged by: wins where there are some, else the return."""
        rows = self.run.results["last"] if self.run else []
        return measure("won" if rows and "won" in (rows[0].get("outcomes") or {}) else "return")

    @property
    def by_seed(self) -> dict[int, float]:
        """What the last policy of every seed reached."""
        rows = self.run.results["last"] if self.run else []
        return {int(row["seed"]): self.measure.of(row) for row in rows}

    @property
    def seeds(self) -> np.ndarray:
        """The same as numbers in a row."""
        return np.array([*self.by_seed.values()])


CellResults = Sequence[CellResult]


def side_by_side(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers of seeds (s,) of several cells as (s, cells); NaN where a cell has fewer seeds."""
    most = max(column.size for column in columns)
    rows = [np.pad(x, (0, most - x.size), constant_values=np.nan) for x in columns]
    return np.stack(rows, axis=1)


@dataclass(frozen=True)
class Summary:
    """What an experiment makes of its findings."""

    verdict: Sequence[str]
    tables: Sequence[ResultTable] = ()
    pictures: Sequence[CaptionedFigure] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A question, the runs that answer it, and how the answer is shown."""

    name: str
    title: str
    question: str
    cells: Callable[[Scale], Iterator[Cell]]
    show: Callable[[CellResults], Summary]
    claim: str = ""
    """What the paper says; empty where the experiment is not in the paper."""
