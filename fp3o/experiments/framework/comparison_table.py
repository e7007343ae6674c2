"""Table of differences: each with its interval, its power, the published one, and speed."""

from collections.abc import Sequence

import numpy as np

from fp3o.experiments.framework.cell_differences import CellDifference, area_differences
from fp3o.experiments.framework.grid import CellResult
from fp3o.experiments.framework.score_table import gradient_steps
from fp3o.experiments.framework.unlearned import surely_learned
from fp3o.reports.experiment_report import ResultTable
from fp3o.reports.phrasing import (
    DASH,
    count_text,
    interval_text,
    number_text,
    score_text,
    with_sign,
)
from fp3o.reports.stats.comparisons import paired_improvement, steps_to
from fp3o.reports.stats.intervals import mean_interval

HEAD = (
    "task", "sharing", "difference", "", "of the scores", "p (Holm)", "detectable", "published",
    "probability of improvement", "of the areas under the curve", "of the steps to 90 %",
    "gradient steps", "judgement",
)  # fmt: skip

DIFFERENCES_CAPTION = (
    "Differences are paired by seed: mean ± half of the 95 % interval (Student's t). p: corrected "
    "by Holm's method for the cells of the comparison that count. Detectable: the smallest "
    "difference that so many seeds find with a probability of 80 %. Probability of improvement: "
    "that a seed of the first beats a seed of the second, with a bootstrap interval that draws "
    "both scores of a seed. Steps to 90 %: to 90 % of the way from the untrained policies to the "
    "lower of the two means of the last evaluation, interpolated between evaluations; negative "
    "where the first is faster, and not known where a variant is not shown to exceed the "
    "uninformed baseline. Gradient steps: of the first / of the second, per seed."
)

SHARE = 0.9
"""The part of the way to the lower final score at which the speed of learning is compared."""


def comparison_table(groups: Sequence[Sequence[CellDifference]]) -> list[ResultTable]:
    """One row per comparison and cell; no table without a cell."""
    rows = [_row(item) for group in groups for item in group]
    if not rows:
        return []
    detail = any(row[3] for row in rows)
    head, lines = [*HEAD], rows
    if not detail:
        head, lines = head[:3] + head[4:], [row[:3] + row[4:] for row in rows]
    if not any(item.published is not None for group in groups for item in group):
        place = head.index("published")
        head = head[:place] + head[place + 1 :]
        lines = [row[:place] + row[place + 1 :] for row in lines]
    return [ResultTable("Differences", head, lines, DIFFERENCES_CAPTION, text_columns=3 + detail)]


def _row(item: CellDifference) -> list[str]:
    cell, unit = item.ours.cell, item.ours.measure.unit
    same = item.excluded == "equal in every bit"
    values = [DASH] * 6
    if not same:
        values = [
            with_sign(score_text(item.difference, unit)),
            _p_text(item.corrected),
            number_text(item.detectable),
            DASH if item.published is None else with_sign(number_text(item.published)),
            _improvement_text(item),
            with_sign(_areas_text(item)),
        ]
    steps = f"{gradient_steps(item.ours):,} / {gradient_steps(item.theirs):,}"
    return [
        cell.task, cell.sharing, f"{cell.variant} - {item.theirs.cell.variant}", cell.detail,
        *values, DASH if same else with_sign(_steps_text(item)), steps, item.text,
    ]  # fmt: skip


def _p_text(value: float) -> str:
    if not np.isfinite(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _improvement_text(item: CellDifference) -> str:
    one, other = item.ours.by_seed, item.theirs.by_seed
    common = [seed for seed in one if seed in other]
    if len(common) < 2:
        return DASH
    ours, theirs = (np.array([scores[seed] for seed in common]) for scores in (one, other))
    return interval_text(paired_improvement(ours, theirs))


def _areas_text(item: CellDifference) -> str:
    values = area_differences(item.ours, item.theirs)
    return score_text(mean_interval(values), item.ours.measure.unit) if values else DASH


def _steps_text(item: CellDifference) -> str:
    """Difference of the steps to the threshold; with the number of seeds if some never reach it.

    A threshold close to what the untrained policies have would say nothing.
    """
    if not (surely_learned(item.ours) and surely_learned(item.theirs)):
        return DASH
    differences = steps_to_threshold_differences(item.ours, item.theirs)
    if differences is None:
        return DASH
    reached = differences[np.isfinite(differences)]
    if reached.size < 2:
        return DASH
    interval = mean_interval(reached)
    text = f"{count_text(interval.centre)} ± {count_text(interval.half)}"
    missing = differences.size - reached.size
    return text if not missing else f"{text} ({reached.size} of {differences.size} seeds)"


def steps_to_threshold_differences(ours: CellResult, theirs: CellResult) -> np.ndarray | None:
    """Differences of the steps to the common threshold, seed by seed; None without evaluations."""
    assert ours.run and theirs.run
    name = f"eval_{ours.measure.name}"
    curves = [run.series(name) for run in (ours.run, theirs.run)]
    if any(step.size < 2 or not np.isfinite(value[:, [0, -1]]).all() for step, value in curves):
        return None
    start = float(np.mean([value[:, 0].mean() for _, value in curves]))
    end = min(float(value[:, -1].mean()) for _, value in curves)
    threshold = start + SHARE * (end - start)
    if end <= start:
        return None
    seeds = [sorted(run.metrics) for run in (ours.run, theirs.run)]
    one, other = (
        dict(zip(names, steps_to(threshold, *curve), strict=True))
        for names, curve in zip(seeds, curves, strict=True)
    )
    common = [seed for seed in one if seed in other]
    ends = np.array([[one[seed], other[seed]] for seed in common]).reshape(-1, 2)
    ends = np.where(np.isfinite(ends), ends, np.nan)
    return ends[:, 0] - ends[:, 1]
