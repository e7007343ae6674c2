"""What a comparison of two variants can say: which cells count, and how each is judged.

Rules, for every comparison of an experiment:

1. Only cells count in which both variants have the planned steps.
2. Cells in which neither has learned anything do not count, nor those with both at the ceiling.
3. Two variants whose runs are equal in every bit are one run: nothing was compared. Two sharings
   whose runs are equal are one cell.
4. A difference is judged by its 95 % interval, and by its p-value after Holm's correction for the
   number of cells that count.
5. A cell whose interval contains 0 and is wider than the published difference to either side is
   too small to judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from fp3o.experiments.framework.exclusions import Exclusion, exclusion, same_runs
from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.scales import FP3O_HALF, MAPPO_TWICE
from fp3o.experiments.framework.score_table import (
    area_under_curve,
    same_cell,
)
from fp3o.reports.stats.comparisons import holm, paired_p_value, smallest_detectable
from fp3o.reports.stats.intervals import LEVEL, Interval, mean_interval


class Comparison(NamedTuple):
    """Two variants that are compared in every task and sharing."""

    ours: str
    theirs: str
    expected: Literal["better", "equal", ""] = "better"
    """The paper's claim about `ours`; empty if there is none."""
    tasks: tuple[str, ...] = ()
    """The tasks of the claim; empty: those for which the paper has scores, or else all."""


FP3O_AGAINST_MAPPO = (
    Comparison("FP3O", "MAPPO"),
    Comparison("FP3O", MAPPO_TWICE, ""),
    Comparison(FP3O_HALF, "MAPPO", ""),
)
"""The paper's main claim, and its two controls at equal gradient steps."""


@dataclass(frozen=True)
class CellDifference:
    """The difference of two variants in one cell."""

    ours: CellResult
    theirs: CellResult
    difference: Interval
    """Of the scores, paired by seed."""
    p_value: float
    excluded: Exclusion
    published: float | None = None
    """The paper's difference."""
    corrected: float = float("nan")
    """The p-value after Holm's correction; NaN if the cell does not count."""

    @property
    def counts(self) -> bool:
        """Whether the cell is part of the counts."""
        return not self.excluded

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, -1 if it is below, otherwise 0."""
        return int(self.difference.low > 0) - int(self.difference.high < 0)

    @property
    def corrected_sign(self) -> int:
        """The same with Holm's correction for the number of cells."""
        return self.sign if self.corrected <= 1 - LEVEL else 0

    @property
    def detectable(self) -> float:
        """The smallest difference that these seeds would have found with a probability of 80 %."""
        return smallest_detectable(self.difference)

    @property
    def too_small(self) -> bool:
        """Whether a difference as large as the published one may have been missed."""
        known = self.published is not None and self.sign == 0
        return known and self.difference.half > abs(self.published or 0.0)

    def contains(self, value: float) -> bool:
        """Whether a difference is inside the interval."""
        return self.difference.low <= value <= self.difference.high

    @property
    def text(self) -> str:
        """The judgement in a few words."""
        if self.excluded:
            return self.excluded
        if self.too_small:
            return "too small to judge"
        if not self.sign:
            return "not distinguishable"
        word = "higher" if self.sign > 0 else "lower"
        return word if self.corrected_sign else f"{word}, not after Holm"


class SignCounts(NamedTuple):
    """Counts over the cells of a comparison, by the sign of the difference."""

    better: int
    worse: int
    open: int
    corrected_better: int
    """After Holm's correction."""
    corrected_worse: int

    @property
    def cells(self) -> int:
        """Number of cells that count."""
        return self.better + self.worse + self.open


def compare_cells(
    results: CellResults, comparison: Comparison, paper: PaperScores | None = None
) -> list[CellDifference]:
    """The comparison of two variants in every task and sharing that has both."""
    differences = []
    for ours, theirs in pairs(results, comparison):
        values = paired_differences(ours.by_seed, theirs.by_seed)
        interval = mean_interval(values)
        excluded = exclusion(ours, theirs, interval)
        earlier = ([item.ours, item.theirs] for item in differences)
        if not excluded and any(same_runs([ours, theirs], cells) for cells in earlier):
            excluded = "the same runs as another sharing"
        published = _published_difference(ours, theirs, paper or {})
        differences.append(
            CellDifference(ours, theirs, interval, paired_p_value(values), excluded, published)
        )
    return _corrected(differences)


def compare_areas(results: CellResults, comparison: Comparison) -> list[CellDifference]:
    """The same for areas under the curve, in which cells at the ceiling count."""
    differences = []
    for item in compare_cells(results, comparison):
        values = area_differences(item.ours, item.theirs)
        if not values:
            continue
        excluded = "" if item.excluded == "at the ceiling" else item.excluded
        area = mean_interval(values)
        differences.append(
            CellDifference(item.ours, item.theirs, area, paired_p_value(values), excluded)
        )
    return _corrected(differences)


def pairs(results: CellResults, comparison: Comparison) -> list[tuple[CellResult, CellResult]]:
    """The cells of two variants, task by task and sharing by sharing."""
    found = []
    for item in results:
        other = same_cell(item, results, comparison.theirs)
        if item.cell.variant == comparison.ours and other and item.run and other.run:
            found.append((item, other))
    return found


def area_differences(ours: CellResult, theirs: CellResult) -> list[float]:
    """Differences of the areas under the curve, for the seeds that both have."""
    return paired_differences(area_under_curve(ours), area_under_curve(theirs))


def paired_differences(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Differences seed by seed, for the seeds that both have."""
    return [ours[seed] - theirs[seed] for seed in ours if seed in theirs]


def count_signs(differences: Sequence[CellDifference]) -> SignCounts:
    """Counts over the cells that count."""
    counted = [item for item in differences if item.counts]
    signs = np.array([item.sign for item in counted])
    corrected = np.array([item.corrected_sign for item in counted])
    return SignCounts(
        int((signs > 0).sum()),
        int((signs < 0).sum()),
        int((signs == 0).sum()),
        int((corrected > 0).sum()),
        int((corrected < 0).sum()),
    )


def _published_difference(ours: CellResult, theirs: CellResult, paper: PaperScores) -> float | None:
    one, other = paper.get(ours.key), paper.get(theirs.key)
    return one.centre - other.centre if one and other else None


def _corrected(differences: Sequence[CellDifference]) -> list[CellDifference]:
    """With Holm's correction over the cells that count."""
    values = holm([item.p_value if item.counts else np.nan for item in differences])
    return [
        replace(item, corrected=float(value))
        for item, value in zip(differences, values, strict=True)
    ]
