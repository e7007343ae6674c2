"""Aggregates over all tasks of an experiment: robust means, profiles, sample efficiency."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fp3o.experiments.framework.exclusions import aggregate_exclusions
from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.plots import variant_styles
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.figures.canvas import PANEL, apply_layout, figure_legend, figure_style
from fp3o.reports.phrasing import DASH, interval_text
from fp3o.reports.stats.aggregates import (
    Band,
    aggregate_scores,
    improvement_over_tasks,
    performance_profile,
    sample_efficiency,
)

AGGREGATES_CAPTION = (
    "Tasks that were learned, not all at the ceiling, and trained for the planned steps. Scores "
    "normalised so that 1 is a win rate of 100 % or the planner's return, and 0 a win rate "
    "of 0 % or random actions; a task under one sharing counts as one task. In brackets: "
    "stratified bootstrap intervals (95 %; with five seeds their coverage is a little lower). "
    "Optimality gap: mean shortfall from 1, lower is better. Probability of improvement: that a "
    "seed is better than one of {base}, mean over tasks."
)

PROFILES_CAPTION = (
    "Performance profiles: share of seeds, over all tasks and sharings, with a score above each "
    "threshold; bands are bootstrap intervals. Higher is better."
)

EFFICIENCY_CAPTION = (
    "Sample efficiency: interquartile mean of the normalised evaluations over all tasks and seeds, "
    "at equal shares of the training of each task; bands are bootstrap intervals."
)

SHARES = np.linspace(0.0, 1.0, 41)
"""Shares of training at which curves of different tasks are compared."""

VariantScores = Mapping[str, list[np.ndarray]]
"""Variant -> one array per task and sharing."""


def aggregate_results(
    results: CellResults, base: str
) -> tuple[list[ResultTable], list[CaptionedFigure]]:
    """A table, performance profiles and curves, if scores of different tasks are comparable."""
    excluded = aggregate_exclusions(results)
    results = [x for x in results if (x.cell.task, x.cell.sharing) not in excluded]
    scores = complete_variants(results, normalised_scores)
    if len(scores) < 2 or len(next(iter(scores.values()))) < 2:
        return [], []
    rows = []
    for name, tasks in scores.items():
        aggregates = aggregate_scores(tasks)
        numbers = aggregates.iqm, aggregates.median, aggregates.mean, aggregates.optimality_gap
        row = [name, *map(interval_text, numbers)]
        if base in scores:
            better = improvement_over_tasks(tasks, scores[base])
            row.append(DASH if name == base else interval_text(better))
        rows.append(row)
    head = ["variant", "IQM", "median", "mean", "optimality gap"]
    head += ["probability of improvement"] * (base in scores)
    caption = AGGREGATES_CAPTION.format(base=base or "the base")
    table = ResultTable("All tasks together", head, rows, caption)
    figures = [CaptionedFigure("profiles", profiles_figure(scores), PROFILES_CAPTION)]
    if curves := complete_variants(results, normalised_curves):
        efficiency = efficiency_figure(curves)
        figures.append(CaptionedFigure("sample_efficiency", efficiency, EFFICIENCY_CAPTION))
    return [table], figures


def complete_variants(
    results: CellResults, values: Callable[[CellResult], np.ndarray | None]
) -> VariantScores:
    """Arrays of the variants that have all tasks and sharings; empty if some cell has none."""
    keys = [*dict.fromkeys((item.cell.task, item.cell.sharing) for item in results)]
    table: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for item in results:
        array = values(item)
        if array is None or not array.size or item.cell.detail:
            return {}
        table.setdefault(item.cell.variant, {})[item.cell.task, item.cell.sharing] = array
    return {
        name: [arrays[key] for key in keys]
        for name, arrays in table.items()
        if all(key in arrays for key in keys)
    }


def score_bounds(item: CellResult) -> tuple[float, float] | None:
    """The scores that count as 0 and as 1 in a cell; None if unknown."""
    if item.measure.is_rate:
        return item.measure.bounds
    low, high = item.baseline("random"), item.baseline("oracle")
    return (item.measure.value(low), item.measure.value(high)) if low and high else None


def normalised_scores(item: CellResult) -> np.ndarray | None:
    """Scores of a cell's seeds between 0 and 1."""
    bounds = score_bounds(item)
    return None if bounds is None else (item.seeds - bounds[0]) / (bounds[1] - bounds[0])


def normalised_curves(item: CellResult) -> np.ndarray | None:
    """Evaluations of a cell between 0 and 1 at equal shares of its training, (seeds, shares)."""
    bounds = score_bounds(item)
    if bounds is None or item.run is None:
        return None
    step, value = item.run.series(f"eval_{item.measure.name}")
    if step.size < 2 or not np.isfinite(value).all():
        return None
    at = SHARES * step.max()
    curves = np.stack([np.interp(at, step, item.measure.scale * seed) for seed in value])
    return (curves - bounds[0]) / (bounds[1] - bounds[0])


def efficiency_figure(curves: VariantScores) -> Figure:
    """Interquartile mean over training, one line per variant."""
    bands = {name: sample_efficiency(100 * SHARES, tasks) for name, tasks in curves.items()}
    with figure_style():
        figure = Figure(figsize=PANEL, layout="constrained")
        axis = figure.subplots()
        _draw_bands(axis, bands)
        axis.set_xlabel("percent of training")
        axis.set_ylabel("interquartile mean of the scores")
        axis.set_ylim(max(-0.5, axis.get_ylim()[0]), 1.05)
        figure_legend(figure, [axis])
        return apply_layout(figure)


def profiles_figure(scores: VariantScores) -> Figure:
    """Performance profiles, one line per variant."""
    low = min(float(np.min(task)) for tasks in scores.values() for task in tasks)
    thresholds = np.linspace(min(0.0, low), 1.05, 80)
    bands = {name: performance_profile(tasks, thresholds) for name, tasks in scores.items()}
    with figure_style():
        figure = Figure(figsize=PANEL, layout="constrained")
        axis = figure.subplots()
        _draw_bands(axis, bands)
        axis.set_xlabel("score above")
        axis.set_ylabel("share of seeds")
        axis.set_ylim(-0.03, 1.03)
        figure_legend(figure, [axis])
        return apply_layout(figure)


def _draw_bands(axis: Axes, bands: Mapping[str, Band]) -> None:
    """Lines with their intervals."""
    names: Sequence[str] = [*bands]
    for (name, band), style in zip(bands.items(), variant_styles(names, names), strict=True):
        axis.plot(band.at, band.centre, color=style.colour, ls=style.dashes, label=name)
        axis.fill_between(band.at, band.low, band.high, color=style.colour, alpha=0.12, lw=0)
