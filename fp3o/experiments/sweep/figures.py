"""Figures of a sweep: scores, importances, parallel coordinates, slices, evaluations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from fp3o.experiments.sweep.parallel import (
    BEST_COLOUR,
    MARK_COLOUR,
    MOST_TICKS,
    parallel_figure,
    shown_scores,
    trials_in,
)
from fp3o.experiments.sweep.result import SweepResult
from fp3o.experiments.sweep.space import ChoiceSet, Dimension
from fp3o.experiments.sweep.study import FAILED, FINISHED, PRUNED
from fp3o.reports.data.measures import Measure, find_measure
from fp3o.reports.experiment_report import CaptionedFigure
from fp3o.reports.figures.canvas import PANEL, apply_layout, figure_legend, figure_style
from fp3o.reports.figures.style import FAINT_COLOUR, INK_COLOUR
from fp3o.reports.phrasing import short

PANELS_PER_ROW = 3


def sweep_figures(result: SweepResult, importances: Mapping[str, float]) -> list[CaptionedFigure]:
    """All figures that the trials allow."""
    done = [row for row in result.trials if row.state == FINISHED]
    if not done:
        return []
    pruned = "; rings: pruned trials, with their last evaluation" * _has(result, PRUNED)
    found = [
        CaptionedFigure(
            "scores", trial_scores_figure(result),
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


def trial_scores_figure(result: SweepResult) -> Figure:
    """Scores over the number of the trial, with the best so far."""
    measure = find_measure(result.settings.options.measure)
    with figure_style():
        figure = Figure(figsize=(1.4 * PANEL[0], PANEL[1]), layout="constrained")
        axis = figure.subplots()
        done = trials_in(result, FINISHED)
        numbers = [row.number for row in done]
        values = shown_scores(done, measure)
        axis.scatter(numbers, values, s=22, color=MARK_COLOUR, label="finished", zorder=3)
        _pruned_rings(axis, [row.number for row in trials_in(result, PRUNED)], result, measure)
        best = (np.minimum if result.settings.options.minimise else np.maximum).accumulate(values)
        axis.step(numbers, best, where="post", color=BEST_COLOUR, lw=1.5, label="best so far")
        failed = [row.number for row in trials_in(result, FAILED)]
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
        axis.barh([short(name, 24) for name, _ in ordered], shares, color=MARK_COLOUR, height=0.62)
        for row, share in enumerate(shares):
            axis.text(share + 1.5, row, f"{share:.0f} %", va="center", fontsize=8)
        axis.set_xlim(0, max(shares) * 1.16 + 2)
        axis.grid(axis="y", visible=False)
        axis.set(title="Importance", xlabel="share, %")
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
                axis.plot(x, y, color=MARK_COLOUR, lw=1, alpha=0.55, label="finished")
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
    done, best = trials_in(result, FINISHED), result.best
    axis.set_title(short(name, 26))
    x = _positions(dimension, [row.params[name] for row in done])
    axis.scatter(
        x, shown_scores(done, measure), s=20, color=MARK_COLOUR, zorder=3, alpha=0.85, lw=0
    )
    cut = [row.params[name] for row in trials_in(result, PRUNED)]
    _pruned_rings(axis, _positions(dimension, cut), result, measure)
    if best:
        place = _positions(dimension, [best.params[name]])
        axis.scatter(
            place, shown_scores([best], measure), s=75, facecolors="none", zorder=4,
            edgecolors=BEST_COLOUR, lw=1.6,
        )  # fmt: skip
    if isinstance(dimension, ChoiceSet):
        axis.set_xticks(range(len(dimension.values)), [short(x, 12) for x in dimension.values])
        axis.set_xlim(-0.6, len(dimension.values) - 0.4)
    elif dimension.log:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(numticks=MOST_TICKS))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_xlim(dimension.low / 1.1, dimension.high * 1.1)
    else:
        axis.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, integer=dimension.whole))


def _pruned_rings(axis: Axes, x: Any, result: SweepResult, measure: Measure) -> None:
    rows = trials_in(result, PRUNED)
    if rows:
        axis.scatter(
            x, shown_scores(rows, measure), s=20, facecolors="none", zorder=2, label="pruned",
            edgecolors=FAINT_COLOUR, lw=0.9,
        )  # fmt: skip


def _positions(dimension: Dimension, values: Sequence[Any]) -> list[Any]:
    """Positions on the x axis of a slice: choices by their order."""
    if isinstance(dimension, ChoiceSet):
        return [dimension.points().index(x) for x in values]
    return [*values]


def _has(result: SweepResult, state: str) -> bool:
    return bool(trials_in(result, state))


def _axis_label(measure: Measure) -> str:
    return measure.axis + (f",{measure.unit}" if measure.unit else "")
