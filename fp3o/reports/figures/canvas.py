"""Common parts of figures: style, line styles of runs, axes, baselines, legends, saving."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.data.scores import BaselineScore
from fp3o.reports.figures.style import (
    FAINT_COLOUR,
    GRID_COLOUR,
    INK_COLOUR,
    LINES,
    NEUTRAL,
    PALETTE,
)
from fp3o.reports.phrasing import count_text, number_text, short

MAX_POINTS = 150
"""Largest number of points per line; more would be invisible and enlarge the page."""

PANEL = (5.2, 3.5)
"""Size of a panel in inches: 9-point text is readable on a phone and on a wide screen."""

DASHED = (0, (4, 3))
"""Dashes of baselines."""

RC_PARAMS: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GRID_COLOUR,
    "axes.labelcolor": INK_COLOUR, "axes.titlecolor": INK_COLOUR, "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID_COLOUR, "grid.linewidth": 0.5, "xtick.color": GRID_COLOUR,
    "ytick.color": GRID_COLOUR, "xtick.labelcolor": FAINT_COLOUR,
    "ytick.labelcolor": FAINT_COLOUR, "text.color": INK_COLOUR,
    "legend.frameon": False, "lines.linewidth": 1.8, "lines.solid_capstyle": "round",
    "svg.fonttype": "none", "svg.hashsalt": "fp3o", "pdf.fonttype": 42, "text.parse_math": False,
}  # fmt: skip
"""Style of all figures. Labels may contain any character: `$` must not start a formula."""


@contextmanager
def figure_style() -> Iterator[None]:
    """Context with the style of all figures."""
    with matplotlib.rc_context(RC_PARAMS), warnings.catch_warnings():
        # Characters that the font lacks are drawn as boxes; this is not an error.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def apply_layout(figure: Figure) -> Figure:
    """Run the automatic layout once, instead of once per file the figure is saved to."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def save_figure(figure: Figure, stem: str | Path) -> list[Path]:
    """Write `stem.png` and `stem.pdf`; equal data give equal bytes."""
    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "pdf")]
    with figure_style():
        figure.savefig(paths[0], dpi=150, facecolor="white")
        figure.savefig(paths[1], metadata={"CreationDate": None})
    return paths


class LineStyle(NamedTuple):
    """How a run is drawn."""

    colour: str
    """Colour of figures and light pages."""
    dashes: Any = "-"
    dark: str = ""
    """Colour on dark pages."""


def line_styles(runs: Sequence[RunRecord]) -> list[LineStyle]:
    """A colour per algorithm, and dashes where one algorithm has several runs.

    Runs of a single algorithm get a colour each: there the algorithm would not distinguish them.
    """
    titles = [run.algorithm_title for run in runs]
    if len(set(titles)) == 1 < len(runs):
        order = [*(dict([runs[0].colour or NEUTRAL]) | PALETTE).items()]
        dashes = [LINES[k // len(order) % len(LINES)] for k in range(len(runs))]
        pairs = [order[k % len(order)] for k in range(len(runs))]
    else:
        dashes = [LINES[titles[:k].count(x) % len(LINES)] for k, x in enumerate(titles)]
        pairs = [run.colour or NEUTRAL for run in runs]
    return [LineStyle(light, x, dark) for (light, dark), x in zip(pairs, dashes, strict=True)]


def run_colour(run: RunRecord) -> str:
    """Colour of a run's algorithm in figures."""
    return (run.colour or NEUTRAL)[0]


def thin_series(series: Series) -> Series:
    """At most `MAX_POINTS` points: means of neighbours, per seed."""
    size = series.step.size
    if size <= MAX_POINTS:
        return series
    edges = np.linspace(0, size, MAX_POINTS + 1).astype(int)[:-1]
    known = np.isfinite(series.value)
    total = np.add.reduceat(np.where(known, series.value, 0.0), edges, axis=1)
    count = np.add.reduceat(known, edges, axis=1, dtype=int)
    value = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    step = np.add.reduceat(series.step, edges) / np.diff([*edges, size])
    return Series(step, value)


def format_steps(axis: Axes) -> None:
    """Format the x axis as environment steps (0, 500k, 1M); call it after drawing."""
    axis.xaxis.set_major_formatter(FuncFormatter(lambda step, _: count_text(step)))
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.margins(x=0.02)
    axis.set_xlim(left=0)


def format_percent(axis: Axis) -> None:
    """Format an axis as percent, with ticks every 20 %."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
    axis.set_major_locator(MultipleLocator(20))


def baseline_lines(
    axis: Axes, baselines: Sequence[BaselineScore], labelled: bool, unit: str = ""
) -> None:
    """Horizontal dashed lines, labelled at the right edge; an arrow for those off the axis."""
    bottom, top = axis.get_ylim()
    heights = [min(max((item.value - bottom) / (top - bottom), 0.0), 1.0) for item in baselines]
    for item, height in zip(baselines, spread_labels(heights, 0.065), strict=True):
        arrow = "↓ " if item.value < bottom else "↑ " if item.value > top else ""
        if not arrow:
            axis.axhline(item.value, color=FAINT_COLOUR, lw=0.9, ls=DASHED, zorder=1.5)
        if labelled:
            text = f"{arrow}{short(item.name, 16)} {signed(item.value)}{unit}"
            axis.text(
                1.015,
                height,
                text,
                color=FAINT_COLOUR,
                fontsize=8,
                va="center",
                transform=axis.transAxes,
            )


def baseline_columns(axis: Axes, baselines: Sequence[BaselineScore], unit: str = "") -> None:
    """Vertical dashed lines, labelled on top; an arrow for those off the axis.

    Baselines with equal values share a label: spread apart, labels would miss the line.
    """
    values = {signed(item.value): item.value for item in baselines}
    left, right = axis.get_xlim()
    places = [min(max((value - left) / (right - left), 0.0), 1.0) for value in values.values()]
    for (number, value), place in zip(values.items(), spread_labels(places, 0.14), strict=True):
        arrow = "← " if value < left else "→ " if value > right else ""
        if not arrow:
            axis.axvline(value, color=FAINT_COLOUR, lw=0.9, ls=DASHED, zorder=1)
        names = [short(item.name, 16) for item in baselines if signed(item.value) == number]
        text = f"{fill(', '.join(names), 16)}\n{arrow}{number}{unit}"
        axis.text(
            place, 1.01, text, color=FAINT_COLOUR, fontsize=8, ha="center", va="bottom",
            transform=axis.transAxes,
        )  # fmt: skip


def figure_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below all panels, in as many columns as fit."""
    handles = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    if handles:
        columns = figure.get_figwidth() / (0.45 + 0.075 * max(map(len, handles)))
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", fontsize=8,
            ncols=max(1, min(int(columns), len(handles))), handlelength=1.6, columnspacing=1.4,
        )  # fmt: skip


def signed(value: float) -> str:
    """A number with a typographic minus sign, as on the axes."""
    return number_text(value).replace("-", "−")


def spread_labels(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending positions apart until neighbours are `gap` away: labels must not overlap."""
    moved = list(places)
    for _ in range(100):
        for k in range(1, len(moved)):
            if (lack := gap - (moved[k] - moved[k - 1])) > 1e-9:
                moved[k - 1] -= lack / 2
                moved[k] += lack / 2
    return moved
