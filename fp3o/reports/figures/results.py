"""Figures of results: learning curves and final scores, as functions that return a `Figure`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fp3o.reports.data.measures import Measure, find_measure
from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.data.scores import BaselineScore, Score, TaskScores, scalar_series
from fp3o.reports.figures.canvas import (
    PANEL,
    LineStyle,
    apply_layout,
    baseline_columns,
    baseline_lines,
    figure_legend,
    figure_style,
    format_percent,
    format_steps,
    line_styles,
    thin_series,
)
from fp3o.reports.figures.style import INK_COLOUR
from fp3o.reports.phrasing import sharing_text, short
from fp3o.reports.stats.intervals import mean_band

CURVE_TITLES = {
    "eval_won": "Win rate", "episode_won": "Training win rate",
    "eval_return": "Evaluation return", "episode_return": "Training return",
    "eval_dead_enemies": "Kills",
}  # fmt: skip
"""Metrics of learning curves and their titles."""

RATE_MARGIN = 3.0
"""Percentage points beyond 0 and 100 % on the axis of a rate, so that lines there are visible."""


def group_by_sharing(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Panel title -> runs: by sharing if both sharing and algorithm differ, else one panel."""
    titles = dict.fromkeys(map(sharing_text, runs))
    if len(titles) == 1 or len({run.algorithm for run in runs}) == 1:
        return {"": list(runs)}
    return {title: [run for run in runs if sharing_text(run) == title] for title in titles}


def curve_series(run: RunRecord, metric: str) -> Series:
    """A metric over training, scaled for display."""
    step, value = scalar_series(run, metric)
    return Series(step, _measure_of(metric).scale * value)


def _measure_of(metric: str) -> Measure:
    """The measure of `eval_won` and `episode_won` is `won`."""
    return find_measure(metric.removeprefix("eval_").removeprefix("episode_"))


def curves_figure(
    groups: Mapping[str, Sequence[RunRecord]],
    baselines: Sequence[BaselineScore] = (),
    metric: str = "eval_return",
    limits: tuple[float, float] | None = None,
    measure: Measure | None = None,
) -> Figure:
    """A metric over environment steps: one panel per group, mean and 95 % band per run."""
    measure = measure or _measure_of(metric)
    runs = [run for group in groups.values() for run in group]
    width = PANEL[0] if len(groups) == 1 else 0.75 * PANEL[0] * len(groups)
    with figure_style():
        figure = Figure(figsize=(width, PANEL[1]), layout="constrained")
        axes = list(figure.subplots(1, len(groups), sharey=True, squeeze=False)[0])
        axes[0].set_ylim(limits or curve_limits(runs, baselines, metric))
        axes[0].set_ylabel(measure.axis)
        for axis, (title, members) in zip(axes, groups.items(), strict=True):
            name = CURVE_TITLES.get(metric, measure.title)
            axis.set_title(name + (f", {short(title, 24)}" if title else ""))
            axis.set_xlabel("environment steps")
            for run, style in zip(members, line_styles(members), strict=True):
                series, label = curve_series(run, metric), label_in_panel(run, title)
                _draw_curve(axis, series, measure, label, style, crowded=len(members) > 3)
            format_steps(axis)
            if measure.is_rate:
                format_percent(axis.yaxis)
            baseline_lines(axis, baselines, axis is axes[-1], measure.unit)
        figure_legend(figure, axes)
        return apply_layout(figure)


def curve_limits(
    runs: Sequence[RunRecord], baselines: Sequence[BaselineScore], metric: str = "eval_return"
) -> tuple[float, float]:
    """Limits of the y axis: all seeds after the start of training, and baselines nearby.

    A rate always spans 0 to 100 %. Untrained policies can be far worse than random ones: the start
    of training may lie below the axis, so that the upper part is not compressed.
    """
    if (measure := _measure_of(metric)).is_rate:
        return measure.bounds[0] - RATE_MARGIN, measure.bounds[1] + RATE_MARGIN
    start, late = start_share(runs), []
    for run in runs:
        step, value = scalar_series(run, metric)
        late.append(value[:, step >= start * step.max(initial=0.0)].ravel())
    values = np.concatenate(late)
    return _limits(values[np.isfinite(values)], baselines, 0.5, 0.05)


def start_share(runs: Sequence[RunRecord]) -> float:
    """Share of training whose returns may lie below the axis."""
    return 0.1 if len(runs) <= 3 else 0.2


def scores_figure(scores: TaskScores) -> Figure:
    """Final scores: one row per run with its seeds, mean and 95 % interval."""
    measure, groups = scores.measure, group_by_sharing(scores.runs)
    by_path = dict(zip([run.path for run in scores.runs], scores.last, strict=True))
    names: list[str] = []
    with figure_style():
        rows = len(scores.runs) + sum(map(bool, groups))
        figure = Figure(figsize=(PANEL[0], 1.2 + 0.27 * rows), layout="constrained")
        axis = figure.subplots()
        for title, runs in groups.items():
            names += [short(title, 24)] if title else []
            for run, style in zip(runs, line_styles(runs), strict=True):
                _draw_row(axis, len(names), by_path[run.path], measure, style.colour)
                suffix = "" if by_path[run.path].final else " (so far)"
                names.append(label_in_panel(run, title) + suffix)
        _label_rows(axis, names, {short(title, 24) for title in groups})
        axis.set_xlim(_score_limits(scores))
        axis.set_xlabel(measure.axis)
        if measure.is_rate:
            format_percent(axis.xaxis)
        baseline_columns(axis, scores.baselines, measure.unit)
        title = f"{measure.title} of the last policy: mean, 95 % interval, seeds"
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        return apply_layout(figure)


def _label_rows(axis: Axes, names: Sequence[str], headings: set[str]) -> None:
    axis.set_yticks(range(len(names)), names)
    for label in axis.get_yticklabels():
        heading = label.get_text() in headings
        label.set(color=INK_COLOUR, fontweight="bold" if heading else "normal")
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")


def _score_limits(scores: TaskScores) -> tuple[float, float]:
    """Limits of the score axis: seeds, intervals as far as sensible, baselines."""
    if (measure := scores.measure).is_rate:
        return measure.bounds[0] - RATE_MARGIN, measure.bounds[1] + RATE_MARGIN
    seeds = np.concatenate([score.values for score in scores.last])
    # The interval of two seeds can be a hundred times as wide as their distance.
    widest = max(float(np.ptp(seeds)), 1e-9)
    bars = [end for score in scores.last if score.interval.known for end in score.interval[1:3]]
    ends = np.clip(bars, seeds.min() - widest, seeds.max() + widest)
    return _limits(np.concatenate([seeds, ends]), scores.baselines, 1.0, 0.07)


def _limits(
    values: np.ndarray, baselines: Sequence[BaselineScore], near: float, pad: float
) -> tuple[float, float]:
    """Limits that contain all values and the baselines above them and just below them.

    Further down, a baseline is left outside if it is more than `near` times the span below the
    axis, with all lower ones: a random policy far below would compress everything else.
    """
    marks = [item.value for item in baselines]
    floor = min(values.tolist(), default=math.inf)
    kept = [*values.tolist(), *(mark for mark in marks if mark >= floor)] or marks[-1:] or [0.0]
    low, high = min(kept), max(kept)
    below = [mark for mark in reversed(marks) if mark < low]
    far = low - near * (high - low)
    for k, mark in enumerate(below):
        next_below = k == 0 and (len(below) > 1 or len(marks) == 1)
        if not next_below and mark < far:
            break
        low = mark
    margin = pad * (high - low) or 1.0
    return low - margin, high + margin


def _draw_curve(
    axis: Axes, series: Series, measure: Measure, label: str, style: LineStyle, crowded: bool
) -> None:
    step, value = thin_series(series)
    if not step.size:
        return
    mean, low, high = mean_band(value)
    marks: dict[str, Any] = {"marker": "o" if step.size < 12 else None, "ms": 3}
    axis.plot(step, mean, color=style.colour, ls=style.dashes, label=label, zorder=3, **marks)
    if len(value) > 2:  # with two seeds the interval is 13 times their distance
        band = np.clip([low, high], *measure.bounds)
        axis.fill_between(step, *band, color=style.colour, alpha=0.16, lw=0, zorder=1)
    if len(value) > 1:
        alpha, width = (0.2, 0.5) if crowded else (0.4, 0.7)
        axis.plot(step, value.T, color=style.colour, alpha=alpha, lw=width, zorder=2)


def _draw_row(axis: Axes, height: int, score: Score, measure: Measure, colour: str) -> None:
    mean = score.interval
    seeds = np.full(score.values.size, height + 0.2)
    axis.scatter(score.values, seeds, s=13, facecolors="none", edgecolors=colour, lw=0.8, zorder=2)
    if mean.known:
        bar = np.clip([mean.low, mean.high], *measure.bounds)
        axis.plot(bar, [height - 0.12] * 2, color=colour, lw=2.4, zorder=3)
    axis.plot([mean.centre], [height - 0.12], "o", color=colour, ms=5, zorder=4)


def label_in_panel(run: RunRecord, title: str) -> str:
    """The run's label, without the sharing if the panel's title states it."""
    label = run.label.replace(f" · {run.sharing}", "", 1) if title else run.label
    return short(label.lstrip("_"), 40) or "?"  # matplotlib hides labels with a leading underscore
