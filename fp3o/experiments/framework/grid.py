"""An experiment as a grid of cells: its runs, their results, and their summary.

An experiment is a function from a scale to cells, and one from results to a summary. A cell is
identified by its task, its sharing, and the variant that is compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fp3o.envs.task import BaselineRole
from fp3o.reports.data.measures import RETURN, WIN_RATE, Measure
from fp3o.reports.data.record import RunRecord
from fp3o.reports.experiment_report import CaptionedFigure, KeyResult, ResultTable
from fp3o.runs.directory_name import safe_name
from fp3o.runs.run_config import RunConfig

Scale = Literal["paper", "gpu", "laptop", "smoke"]

SCALES: Mapping[Scale, str] = {
    "paper": "the paper's tasks, steps and batches: days",
    "gpu": "the paper's hyperparameters, larger batches for SMAC and fewer steps for MuJoCo",
    "laptop": "small tasks or few steps: minutes per cell on two cores",
    "smoke": "two tiny iterations, to test that everything runs: seconds per cell, meaningless "
    "numbers",
}
"""Sizes of an experiment."""

Lines = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Lines of a figure: name -> x (k,) and values per seed (s, k)."""

PAPER_SHARINGS = ("full", "partial", "none")
"""The sharings compared in the paper."""


@dataclass(frozen=True)
class Cell:
    """One cell of a grid: its identity and the run configuration."""

    task: str
    sharing: str
    variant: str
    """Title of the compared variant in tables."""
    config: RunConfig
    job: str = "train"
    """Kind of work, one of `run_grid.JOBS`."""
    detail: str = ""
    """Distinguishes cells with equal task, sharing and variant, such as a rollout size."""

    @property
    def label(self) -> str:
        """Name of its directory."""
        parts = map(slug, (self.sharing, self.variant, self.detail))
        return "-".join(filter(None, (safe_name(self.task.split("/")[-1]), *parts)))


def slug(text: str) -> str:
    """A text as part of a file name."""
    kept = "".join(x if x.isalnum() or x == "_" else " " for x in text.lower())
    return "_".join(kept.split())


@dataclass(frozen=True)
class CellResult:
    """A finished cell."""

    cell: Cell
    path: Path
    run: RunRecord | None = None
    """The trained run."""
    timing: Mapping[str, Any] = field(default_factory=dict)
    """Measured times and memory, if nothing was trained."""
    judged_by: Measure | None = None
    """Measure that replaces the task's own one, where that says nothing."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, sharing, variant."""
        return self.cell.task, self.cell.sharing, self.cell.variant

    @property
    def measure(self) -> Measure:
        """Measure of the cell's score."""
        return self.judged_by or self.task_measure

    @property
    def task_measure(self) -> Measure:
        """Measure of the task: the win rate if it has one, else the return."""
        rows = self.run.results["last"] if self.run else []
        wins = any("won" in (row.get("episode_metrics") or {}) for row in rows)
        return WIN_RATE if wins else RETURN

    @property
    def by_seed(self) -> dict[int, float]:
        """Score of the last policy per seed; seeds without a finished episode are left out."""
        rows = self.run.results["last"] if self.run else []
        scores = {int(row["seed"]): self.measure.value(row) for row in rows}
        return {seed: score for seed, score in scores.items() if np.isfinite(score)}

    @property
    def seeds(self) -> np.ndarray:
        """The scores of `by_seed` as an array."""
        return np.array([*self.by_seed.values()])

    def baseline(self, role: BaselineRole) -> Mapping[str, Any] | None:
        """Evaluation of the task's baseline with this role; None if it has none."""
        baselines = (self.run.results.get("baselines") or {}) if self.run else {}
        return next((row for row in baselines.values() if row.get("role") == role), None)


CellResults = Sequence[CellResult]


def pad_columns(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays over seeds (s,) of several cells as (s, cells); NaN where a cell has fewer seeds."""
    most = max(column.size for column in columns)
    rows = [np.pad(x, (0, most - x.size), constant_values=np.nan) for x in columns]
    return np.stack(rows, axis=1)


@dataclass(frozen=True)
class Summary:
    """Content of an experiment's report that depends on its results."""

    verdict: Sequence[str]
    tables: Sequence[ResultTable] = ()
    figures: Sequence[CaptionedFigure] = ()
    notes: Sequence[str] = ()
    key_result: KeyResult | None = None
    """The result in short; by default the verdict's last sentence."""


NOTHING_FINISHED = Summary(["No cell is finished yet."])


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question, the grid of runs that answers it, and how its results are summarised."""

    name: str
    """Name on the command line."""
    title: str
    question: str
    cells: Callable[[Scale], Iterator[Cell]]
    summarise: Callable[[CellResults], Summary]
    claim: str = ""
    """The paper's claim; empty if the experiment is not in the paper."""
    order: int = 100
    """Position in lists of experiments."""
