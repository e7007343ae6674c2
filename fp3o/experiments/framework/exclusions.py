"""Cells that do not count: unfinished, not learned, at the ceiling, or the same runs twice."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.score_table import planned_steps
from fp3o.experiments.framework.unlearned import TaskAndSharing, has_learned, unlearned_cells
from fp3o.reports.stats.intervals import Interval

CEILING = 99.0
"""Win rate in percent above which two variants cannot be distinguished by their wins."""

Exclusion = Literal[
    "", "below the planned steps", "not learned", "at the ceiling", "equal in every bit",
    "the same runs as another sharing", "one seed",
]  # fmt: skip
"""Why a cell does not count; empty if it does."""


def aggregate_exclusions(results: CellResults) -> dict[TaskAndSharing, Exclusion]:
    """Tasks and sharings that are no part of any aggregate, and why."""
    excluded: dict[TaskAndSharing, Exclusion] = {}
    groups: list[list[CellResult]] = []
    for key in unlearned_cells(results):
        excluded[key] = "not learned"
    for key in dict.fromkeys((item.cell.task, item.cell.sharing) for item in results):
        group = [item for item in results if (item.cell.task, item.cell.sharing) == key]
        if not all(map(finished, group)):
            excluded.setdefault(key, "below the planned steps")
        elif all(map(at_ceiling, group)):
            excluded.setdefault(key, "at the ceiling")
        elif any(same_runs(group, other) for other in groups):
            excluded.setdefault(key, "the same runs as another sharing")
        groups.append(group)
    return excluded


def exclusion(ours: CellResult, theirs: CellResult, difference: Interval) -> Exclusion:
    """Why a comparison of two cells does not count, apart from what others say."""
    assert ours.run and theirs.run
    if not (has_learned(ours) or has_learned(theirs)):
        return "not learned"
    if not (finished(ours) and finished(theirs)) or ours.run.step != theirs.run.step:
        return "below the planned steps"
    if identical(ours, theirs):
        return "equal in every bit"
    if at_ceiling(ours) and at_ceiling(theirs):
        return "at the ceiling"
    return "" if difference.known else "one seed"


def finished(item: CellResult) -> bool:
    """Whether a cell has its planned steps."""
    return item.run is not None and item.run.step >= planned_steps(item)


def at_ceiling(item: CellResult) -> bool:
    """Whether a cell wins nearly all of its battles."""
    return item.measure.is_rate and item.seeds.size > 0 and float(item.seeds.mean()) >= CEILING


def same_runs(group: Sequence[CellResult], other: Sequence[CellResult]) -> bool:
    """Whether cells of one sharing are those of another: two names of the same groups of agents."""
    return len(group) == len(other) and all(
        one.cell.task == two.cell.task and identical(one, two)
        for one, two in zip(group, other, strict=True)
    )


def identical(ours: CellResult, theirs: CellResult) -> bool:
    """Whether two cells are the same runs: equal evaluations of every seed, to the last bit."""
    if not (ours.run and theirs.run) or ours.by_seed != theirs.by_seed:
        return False
    name = f"eval_{ours.measure.name}"
    one, other = ours.run.series(name).value, theirs.run.series(name).value
    return bool(one.size) and np.array_equal(one, other, equal_nan=True)
