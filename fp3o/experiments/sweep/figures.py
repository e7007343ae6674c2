"""Figures of a sweep: scores, importances, parallel coordinates, slices, evaluations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from fp3o.experiments.sweep.result import SweepResult
from fp3o.experiments.sweep.space import Choices, Dimension
from fp3o.experiments.sweep.study import FAILED, FINISHED, PRUNED, TrialRecord
from fp3o.reports.data.measures import Measure, find_measure
from fp3o.reports.experiment_report import CaptionedFigure
from fp3o.reports.figures.canvas import PANEL, apply_layout, figure_legend, figure_style
from fp3o.reports.figures.style import FAINT_COLOUR, GRID_COLOUR, INK_COLOUR
from fp3o.reports.phrasing import short

MARK = "#0072b2"
"""Colour of finished trials."""
BEST_COLOUR = "#d55e00"
SCORE_COLOURS = LinearSegmentedColormap.from_list("score", [MARK, "#8f8f8f", BEST_COLOUR])
"""Colours of low to high scores, which are visible on light and on dark pages."""
PANELS_PER_ROW = 3
TICKS = 5
"""Labelled values on an axis of parallel coordinates."""


def sweep_figures(result: SweepResult, importances: Mapping[str, float]) -> list[CaptionedFigure]:
    """All figures that the trials allow."""
    done = [row for row in result.trials if row.state == FINISHED]
    if not done:
        return []
    pruned = "; rings: pruned trials, with their last evaluation" * _has(result, PRUNED)
    found = [
        CaptionedFigure(
            "scores", scores_figure(result),
            f"Score of every trial in the order of proposal, and the best so far{pruned}.",
        )
    ]  # fmt: skip
    if importances:
        text = (
            "Importance of the searched settings (PED-ANOVA): how much the best tenth of the "
            "trials is concentrated along each setting, as shares of the sum; pruned trials count "
            "with their last evaluation."
        )
        found.append(CaptionedFigure("importance", importance_figure(importances), text))
    if len(done) > 1:
        text = "Every line is a finished trial, from its settings to its score; orange: the best."
        found.append(CaptionedFigure("parallel", parallel_figure(result), text))
    text = f"Score against each searched setting; ringed in orange: the best trial{pruned}."
    found.append(CaptionedFigure("slices", slices_figure(result), text))
    if any(len(row.evaluations) > 1 for row in result.trials):
        text = "Evaluations during training, mean over the seeds; dashed: pruned trials."
        found.append(CaptionedFigure("evaluations", evaluations_figure(result), text))
    return found


def scores_figure(result: SweepResult) -> Figure:
    """Scores over the number of the trial, with the best so far."""
    measure = find_measure(result.settings.options.measure)
    with figure_style():
        figure = Figure(figsize=(1.4 * PANEL[0], PANEL[1]), layout="constrained")
        axis = figure.subplots()
        done = _states(result, FINISHED)
        numbers = [row.number for row in done]
        values = _shown(done, measure)
        axis.scatter(numbers, values, s=22, color=MARK, label="finished", zorder=3)
        _pruned_rings(axis, [row.number for row in _states(result, PRUNED)], result, measure)
        best = (np.minimum if result.settings.options.minimise else np.maximum).accumulate(values)
        axis.step(numbers, best, where="post", color=BEST_COLOUR, lw=1.5, label="best so far")
        failed = [row.number for row in _states(result, FAILED)]
        if failed:
            bottom = axis.get_ylim()[0]
            axis.scatter(
                failed, [bottom] * len(failed), marker="x", s=26, color=INK_COLOUR, label="failed",
                clip_on=False, zorder=4,
            )  # fmt: skip
        axis.set(xlabel="trial", ylabel=_axis_label(measure), title="Score over trials")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure_legend(figure, [axis])
        return apply_layout(figure)


def importance_figure(importances: Mapping[str, float]) -> Figure:
    """A bar per setting, the most important on top."""
    ordered = sorted(importances.items(), key=lambda item: item[1])
    with figure_style():
        height = 0.9 + 0.34 * len(ordered)
        figure = Figure(figsize=(PANEL[0], height), layout="constrained")
        axis = figure.subplots()
        shares = [100 * value for _, value in ordered]
        axis.barh([short(name, 24) for name, _ in ordered], shares, color=MARK, height=0.62)
        for row, share in enumerate(shares):
            axis.text(share + 1.5, row, f"{share:.0f} %", va="center", fontsize=8)
        axis.set_xlim(0, max(shares) * 1.16 + 2)
        axis.grid(axis="y", visible=False)
        axis.set(title="Importance", xlabel="share, %")
        return apply_layout(figure)


def parallel_figure(result: SweepResult) -> Figure:
    """Parallel coordinates: an axis per setting and one for the score."""
    measure, space = find_measure(result.settings.options.measure), result.settings.space
    done = _states(result, FINISHED)
    scores = _shown(done, measure)
    order = np.argsort(-scores if result.settings.options.minimise else scores)
    columns = [_places(space[name], [row.params[name] for row in done]) for name in space]
    norm = Normalize(scores.min(), scores.max() if np.ptp(scores) else scores.min() + 1)
    columns.append(heights := np.asarray(norm(scores)))
    shades = 1 - heights if result.settings.options.minimise else heights
    with figure_style():
        width = max(1.2 * PANEL[0], 1.5 * len(columns))
        figure = Figure(figsize=(width, 1.1 * PANEL[1]), layout="constrained")
        axis = figure.subplots()
        lines = np.stack(columns, axis=1)
        for index in order:  # the best on top
            axis.plot(lines[index], color=SCORE_COLOURS(shades[index]), lw=1.3, alpha=0.8)
        for place, name in enumerate(space):
            _draw_axis(axis, place, space[name])
        _draw_score_axis(axis, len(space), norm)
        names = [short(name, 18) for name in space]
        axis.set_xticks(range(len(columns)), [*names, short(measure.title.lower(), 18)])
        axis.tick_params(axis="x", length=0, labelcolor=INK_COLOUR, pad=8)
        axis.set(yticks=[], ylim=(-0.04, 1.04), xlim=(-0.25, len(columns) - 0.55))
        axis.grid(visible=False)
        for side in ("left", "bottom"):
            axis.spines[side].set_visible(False)
        axis.set_title("Settings and score")
        return apply_layout(figure)


def slices_figure(result: SweepResult) -> Figure:
    """Score against each setting."""
    space, measure = result.settings.space, find_measure(result.settings.options.measure)
    columns = min(PANELS_PER_ROW, len(space))
    rows = -(-len(space) // columns)
    with figure_style():
        size = 0.72 * PANEL[0] * columns, 0.82 * PANEL[1] * rows
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axis, name in zip(axes, space, strict=False):
            _draw_slice(axis, name, result)
        for axis in axes[len(space) :]:
            axis.set_visible(False)
        for axis in axes[: len(space) : columns]:
            axis.set_ylabel(_axis_label(measure))
        return apply_layout(figure)


def evaluations_figure(result: SweepResult) -> Figure:
    """Evaluations of all trials during training."""
    measure, best = find_measure(result.settings.options.measure), result.best
    with figure_style():
        figure = Figure(figsize=(1.4 * PANEL[0], PANEL[1]), layout="constrained")
        axis = figure.subplots()
        for row in result.trials:
            x, y = [*row.evaluations], [measure.scale * v for v in row.evaluations.values()]
            if row.state == PRUNED:
                axis.plot(
                    x, y, color=FAINT_COLOUR, lw=0.9, ls=(0, (3, 2)), alpha=0.8, label="pruned"
                )
            elif row.state == FINISHED and row is not best:
                axis.plot(x, y, color=MARK, lw=1, alpha=0.55, label="finished")
        if best and best.evaluations:
            y = [measure.scale * value for value in best.evaluations.values()]
            label = f"best (trial {best.number})"
            axis.plot([*best.evaluations], y, color=BEST_COLOUR, lw=2, label=label)
        axis.set(xlabel="evaluation", ylabel=_axis_label(measure), title="Evaluations")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure_legend(figure, [axis])
        return apply_layout(figure)


def _draw_slice(axis: Axes, name: str, result: SweepResult) -> None:
    dimension, measure = result.settings.space[name], find_measure(result.settings.options.measure)
    done, best = _states(result, FINISHED), result.best
    axis.set_title(short(name, 26))
    x = _positions(dimension, [row.params[name] for row in done])
    axis.scatter(x, _shown(done, measure), s=20, color=MARK, zorder=3, alpha=0.85, lw=0)
    cut = [row.params[name] for row in _states(result, PRUNED)]
    _pruned_rings(axis, _positions(dimension, cut), result, measure)
    if best:
        place = _positions(dimension, [best.params[name]])
        axis.scatter(
            place, _shown([best], measure), s=75, facecolors="none", edgecolors=BEST_COLOUR, lw=1.6,
            zorder=4,
        )  # fmt: skip
    if isinstance(dimension, Choices):
        axis.set_xticks(range(len(dimension.values)), [short(x, 12) for x in dimension.values])
        axis.set_xlim(-0.6, len(dimension.values) - 0.4)
    elif dimension.log:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(numticks=TICKS))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_xlim(dimension.low / 1.1, dimension.high * 1.1)
    else:
        axis.xaxis.set_major_locator(MaxNLocator(TICKS, integer=dimension.whole))


def _pruned_rings(axis: Axes, x: Any, result: SweepResult, measure: Measure) -> None:
    rows = _states(result, PRUNED)
    if rows:
        axis.scatter(
            x, _shown(rows, measure), s=20, facecolors="none", edgecolors=FAINT_COLOUR, lw=0.9,
            label="pruned", zorder=2,
        )  # fmt: skip


def _draw_axis(axis: Axes, place: int, dimension: Dimension) -> None:
    """A vertical axis with a few labelled values."""
    axis.axvline(place, color=GRID_COLOUR, lw=1.2, zorder=1)
    if isinstance(dimension, Choices):
        values, texts = dimension.points(), [short(x, 12) for x in dimension.values]
    elif dimension.log:
        values = np.geomspace(dimension.low, dimension.high, 3).tolist()
        texts = [f"{x:.3g}" for x in values]
    else:
        values = _round_values(dimension.low, dimension.high)
        texts = [f"{x:.3g}" for x in values]
    _label_axis(axis, place, _places(dimension, values), texts)


def _draw_score_axis(axis: Axes, place: int, norm: Normalize) -> None:
    axis.axvline(place, color=GRID_COLOUR, lw=1.2, zorder=1)
    values = _round_values(norm.vmin or 0.0, norm.vmax or 0.0)
    texts = [f"{x:.4g}".replace("-", "−") for x in values]
    _label_axis(axis, place, np.asarray(norm(values)), texts)


def _round_values(low: float | int, high: float | int) -> list[float]:
    """A few round numbers between two."""
    ticks = MaxNLocator(TICKS).tick_values(low, high)
    return [float(x) for x in ticks if low - 1e-12 <= x <= high + 1e-12]


def _label_axis(axis: Axes, place: int, heights: np.ndarray, texts: Sequence[str]) -> None:
    for height, text in zip(heights, texts, strict=True):
        axis.text(
            place + 0.03, height, text, fontsize=8, color=INK_COLOUR, va="center", zorder=5,
        )  # fmt: skip


def _places(dimension: Dimension, values: Sequence[Any]) -> np.ndarray:
    """Heights between 0 and 1 of values on their axis."""
    if isinstance(dimension, Choices):
        return np.array([dimension.points().index(x) for x in values]) / (len(dimension.values) - 1)
    scale = np.log if dimension.log else np.asarray
    low, high = scale(dimension.low), scale(dimension.high)
    return (scale(np.asarray(values, float)) - low) / (high - low)


def _positions(dimension: Dimension, values: Sequence[Any]) -> list[Any]:
    """Positions on the x axis of a slice: choices by their order."""
    if isinstance(dimension, Choices):
        return [dimension.points().index(x) for x in values]
    return [*values]


def _states(result: SweepResult, state: str) -> list[TrialRecord]:
    return [row for row in result.trials if row.state == state and _scored(row)]


def _scored(row: TrialRecord) -> bool:
    return row.score is not None or row.state == FAILED


def _has(result: SweepResult, state: str) -> bool:
    return bool(_states(result, state))


def _shown(rows: Sequence[TrialRecord], measure: Measure) -> np.ndarray:
    return measure.scale * np.array([row.score for row in rows], float)


def _axis_label(measure: Measure) -> str:
    return measure.axis + (f",{measure.unit}" if measure.unit else "")
