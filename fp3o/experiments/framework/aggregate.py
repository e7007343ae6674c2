"""All tasks together, with the statistics of the field: robust means, profiles, who beats whom."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.plots import colour_of
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.figures.canvas import PANEL, laid_out, styled
from fp3o.reports.figures.results import legend
from fp3o.reports.figures.style import LINES
from fp3o.reports.phrasing import ends_text
from fp3o.reports.stats.aggregates import (
    Band,
    improvement_over_tasks,
    performance_profile,
    sample_efficiency,
    summary,
)

CAPTION = (
    "Scores scaled so that 1 is winning every battle, or the planner, and 0 is losing all, or "
    "random actions; a task under one sharing counts as one. In brackets: stratified bootstrap "
    "intervals (95 %; with five seeds they hold the truth a little less often). Optimality gap: "
    "how much is missing to 1, less is better. Probability of improvement: that a seed beats one "
    "of {base}, mean over tasks."
)

PROFILE = (
    "Performance profiles: the share of seeds, over all tasks and sharings, with a score above "
    "each threshold; bands are bootstrap intervals. Higher is better."
)

EFFICIENCY = (
    "Sample efficiency: interquartile mean of the scaled evaluations over all tasks and seeds, at "
    "equal shares of every task's training; bands are bootstrap intervals."
)

SHARES = np.linspace(0.0, 1.0, 41)
"""Of the training, where curves of different tasks are compared."""

Scores = Mapping[str, list[np.ndarray]]


def overall(findings: CellResults, base: str) -> tuple[list[ResultTable], list[CaptionedFigure]]:
    """A table and performance profiles, where scores of different tasks can be compared."""
    scores = common(findings)
    if len(scores) < 2 or len(next(iter(scores.values()))) < 2:
        return [], []
    rows = []
    for name, tasks in scores.items():
        found = summary(tasks)
        row = [name, *map(ends_text, (found.iqm, found.median, found.mean, found.optimality_gap))]
        if base in scores:
            better = "–" if name == base else ends_text(improvement_over_tasks(tasks, scores[base]))
            row.append(better)
        rows.append(row)
    head = ["variant", "IQM", "median", "mean", "optimality gap"]
    head += ["probability of improvement"] * (base in scores)
    grid = ResultTable("All tasks together", head, rows, CAPTION.format(base=base or "the base"))
    pictures = [CaptionedFigure("profiles", profiles(scores), PROFILE)]
    curves = common(findings, learning)
    if curves:
        pictures.append(CaptionedFigure("sample_efficiency", efficiency(curves), EFFICIENCY))
    return [grid], pictures


def common(
    findings: CellResults, of: Callable[[CellResult], np.ndarray | None] | None = None
) -> Scores:
    """Variant -> numbers of every place (scores if not told), of variants that have all places."""
    places = [*dict.fromkeys((item.cell.task, item.cell.sharing) for item in findings)]
    table: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for item in findings:
        value = (of or scaled)(item)
        if value is None or item.cell.more:
            return {}
        table.setdefault(item.cell.variant, {})[item.cell.task, item.cell.sharing] = value
    return {
        name: [own[place] for place in places]
        for name, own in table.items()
        if all(place in own for place in places)
    }


def ends(item: CellResult) -> tuple[float, float] | None:
    """What counts as 0 and as 1 in a cell; None where nobody knows."""
    if item.measure.share:
        return item.measure.ends
    known = item.run.results.get("references", {}) if item.run else {}
    if not {"random", "planner"} <= known.keys():
        return None
    low, high = (item.measure.of(known[name]) for name in ("random", "planner"))
    return low, high


def scaled(item: CellResult) -> np.ndarray | None:
    """A cell's seeds between 0 and 1."""
    found = ends(item)
    return None if found is None else (item.seeds - found[0]) / (found[1] - found[0])


def learning(item: CellResult) -> np.ndarray | None:
    """A cell's evaluations between 0 and 1 at equal shares of its training, (seeds, shares)."""
    found = ends(item)
    if found is None or item.run is None:
        return None
    step, value = item.run.series(f"eval_{item.measure.name}")
    if step.size < 2 or not np.isfinite(value).all():
        return None
    at = SHARES * step.max()
    own = np.stack([np.interp(at, step, item.measure.scale * seed) for seed in value])
    return (own - found[0]) / (found[1] - found[0])


def efficiency(curves: Scores) -> Figure:
    """Interquartile mean over training, a line a variant."""
    with styled():
        figure = Figure(figsize=PANEL, layout="constrained")
        axis = figure.subplots()
        for place, tasks in enumerate(curves.values()):
            _band(axis, sample_efficiency(100 * SHARES, tasks), place, [*curves])
        axis.set_xlabel("percent of the training")
        axis.set_ylabel("interquartile mean of the scores")
        axis.set_ylim(max(-0.5, axis.get_ylim()[0]), 1.05)
        legend(figure, [axis])
        return laid_out(figure)


def profiles(scores: Scores) -> Figure:
    """A line a variant."""
    low = min(float(np.min(task)) for tasks in scores.values() for task in tasks)
    thresholds = np.linspace(min(0.0, low), 1.05, 80)
    with styled():
        figure = Figure(figsize=PANEL, layout="constrained")
        axis = figure.subplots()
        for place, tasks in enumerate(scores.values()):
            _band(axis, performance_profile(tasks, thresholds), place, [*scores])
        axis.set_xlabel("score above")
        axis.set_ylabel("share of seeds")
        axis.set_ylim(-0.03, 1.03)
        legend(figure, [axis])
        return laid_out(figure)


def _band(axis: Axes, band: Band, place: int, names: Sequence[str]) -> None:
    """A line with its interval; dashes tell apart variants of one colour."""
    colours = [colour_of(name, names) for name in names]
    dashes = LINES[colours[:place].count(colours[place]) % len(LINES)]
    axis.plot(band.at, band.centre, color=colours[place], ls=dashes, label=names[place])
    axis.fill_between(band.at, band.low, band.high, color=colours[place], alpha=0.12, lw=0)
