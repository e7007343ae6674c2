"""Parallel coordinates of a sweep: a line per trial through its settings to its score."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fp3o.experiments.sweep.result import SweepResult
from fp3o.experiments.sweep.space import ChoiceSet, Dimension
from fp3o.experiments.sweep.study import FAILED, FINISHED, TrialRecord
from fp3o.reports.data.measures import Measure, find_measure
from fp3o.reports.figures.canvas import PANEL, apply_layout, figure_style
from fp3o.reports.figures.style import GRID_COLOUR, INK_COLOUR
from fp3o.reports.phrasing import short

MARK_COLOUR, BEST_COLOUR = "#0072b2", "#d55e00"
"""Finished trials; the best."""

SCORE_COLOURS = LinearSegmentedColormap.from_list("score", [MARK_COLOUR, "#8f8f8f", BEST_COLOUR])
"""Colours of low to high scores, which are visible on light and on dark pages."""

MOST_TICKS = 5
"""Labelled values on an axis."""


def parallel_figure(result: SweepResult) -> Figure:
    """Parallel coordinates: an axis per setting and one for the score."""
    measure, space = find_measure(result.settings.options.measure), result.settings.space
    done = trials_in(result, FINISHED)
    scores = shown_scores(done, measure)
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


def _draw_axis(axis: Axes, place: int, dimension: Dimension) -> None:
    """A vertical axis with a few labelled values."""
    axis.axvline(place, color=GRID_COLOUR, lw=1.2, zorder=1)
    if isinstance(dimension, ChoiceSet):
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
    ticks = MaxNLocator(MOST_TICKS).tick_values(low, high)
    return [float(x) for x in ticks if low - 1e-12 <= x <= high + 1e-12]


def _label_axis(axis: Axes, place: int, heights: np.ndarray, texts: Sequence[str]) -> None:
    for height, text in zip(heights, texts, strict=True):
        axis.text(
            place + 0.03, height, text, fontsize=8, color=INK_COLOUR, va="center", zorder=5,
        )  # fmt: skip


def _places(dimension: Dimension, values: Sequence[Any]) -> np.ndarray:
    """Heights between 0 and 1 of values on their axis."""
    if isinstance(dimension, ChoiceSet):
        return np.array([dimension.points().index(x) for x in values]) / (len(dimension.values) - 1)
    scale = np.log if dimension.log else np.asarray
    low, high = scale(dimension.low), scale(dimension.high)
    return (scale(np.asarray(values, float)) - low) / (high - low)


def trials_in(result: SweepResult, state: str) -> list[TrialRecord]:
    """The trials that have ended in this way, with a score unless they failed."""
    return [
        row
        for row in result.trials
        if row.state == state and (row.score is not None or state == FAILED)
    ]


def shown_scores(rows: Sequence[TrialRecord], measure: Measure) -> np.ndarray:
    """Scores as they are displayed."""
    return measure.scale * np.array([row.score for row in rows], float)
