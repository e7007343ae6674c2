"""What all figures share: style, colours of runs, axes, reference lines, saving."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.data.scores import Reference
from fp3o.reports.figures.style import FAINT, GRID, INK, LINES, PALETTE
from fp3o.reports.phrasing import count_text, number_text, short

POINTS = 150
"""A line has at most so many points; more cannot be seen and make the page heavy."""

PANEL = (5.2, 3.5)
"""Inches of a panel: text of 9 points is readable on a phone and not huge on a wide screen."""

DASHED = (0, (4, 3))
"""Reference lines."""

RULES: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GRID,
    "axes.labelcolor": INK, "axes.titlecolor": INK, "axes.axisbelow": True, "axes.grid": True,
    "grid.color": GRID, "grid.linewidth": 0.5, "xtick.color": GRID, "ytick.color": GRID,
    "xtick.labelcolor": FAINT, "ytick.labelcolor": FAINT, "text.color": INK,
    "legend.frameon": False, "lines.linewidth": 1.8, "lines.solid_capstyle": "round",
    "svg.fonttype": "none", "svg.hashsalt": "fp3o", "pdf.fonttype": 42, "text.parse_math": False,
}  # fmt: skip
"""Our style. Names of runs may hold any sign: a dollar must not begin a formula."""


@contextmanager
def styled() -> Iterator[None]:
    """Our style, while a figure is drawn or saved and not longer."""
    with matplotlib.rc_context(RULES), warnings.catch_warnings():
        # A name in a script that the font lacks shows boxes; that is no reason to fail.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def laid_out(figure: Figure) -> Figure:
    """The figure with its automatic layout done: once is enough for all files it is saved to."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def save(figure: Figure, stem: str | Path) -> list[Path]:
    """Write `stem.png` and `stem.pdf`; the same data give the same bytes."""
    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "pdf")]
    with styled():
        figure.savefig(paths[0], dpi=150, facecolor="white")
        figure.savefig(paths[1], metadata={"CreationDate": None})
    return paths


def colours(runs: Sequence[RunRecord]) -> list[tuple[str, Any]]:
    """Colour and dashes of each run: a colour an algorithm, dashes where one has several runs.

    Runs of a single algorithm have a colour each: there the algorithm tells nothing apart.
    """
    families = [run.family for run in runs]
    if len(set(families)) == 1 < len(runs):
        order = [PALETTE[families[0] if families[0] in PALETTE else ""][0]]
        order += [light for light, _ in PALETTE.values() if light not in order]
        size = len(order)
        return [(order[k % size], LINES[k // size % len(LINES)]) for k in range(len(runs))]
    return [
        (PALETTE.get(name, PALETTE[""])[0], LINES[families[:k].count(name) % len(LINES)])
        for k, name in enumerate(families)
    ]


def thinned(series: Series) -> Series:
    """At most `POINTS` points: the mean of neighbours, seed by seed."""
    size = series.step.size
    if size <= POINTS:
        return series
    edges = np.linspace(0, size, POINTS + 1).astype(int)[:-1]
    there = np.isfinite(series.value)
    total = np.add.reduceat(np.where(there, series.value, 0.0), edges, axis=1)
    count = np.add.reduceat(there, edges, axis=1, dtype=int)
    value = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    step = np.add.reduceat(series.step, edges) / np.diff([*edges, size])
    return Series(step, value)


def over_steps(axis: Axes) -> None:
    """Environment steps along the bottom: 0, 500k, 1M. To be called after drawing."""
    axis.xaxis.set_major_formatter(FuncFormatter(lambda step, _: count_text(step)))
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.margins(x=0.02)
    axis.set_xlim(left=0)


def in_percent(axis: Axis) -> None:
    """A share from 0 to 100 %, with room for lines at its ends."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
    axis.set_major_locator(MultipleLocator(20))


def shown(references: Sequence[Reference]) -> list[Reference]:
    """Those that are drawn: standing still stays in the table, it teaches little."""
    return [reference for reference in references if reference.name != "still"]


def reference_lines(
    axis: Axes, references: Sequence[Reference], labelled: bool, unit: str = ""
) -> None:
    """Dashed lines across, their labels at the right edge; an arrow where one is off the axis."""
    drawn = shown(references)
    bottom, top = axis.get_ylim()
    places = [min(max((item.value - bottom) / (top - bottom), 0.0), 1.0) for item in drawn]
    for item, height in zip(drawn, spread(places, 0.065), strict=True):
        arrow = "↓ " if item.value < bottom else "↑ " if item.value > top else ""
        if not arrow:
            axis.axhline(item.value, color=FAINT, lw=0.9, ls=DASHED, zorder=1.5)
        if labelled:
            words = f"{arrow}{short(item.name, 16)} {signed(item.value)}{unit}"
            axis.text(
                1.015, height, words, color=FAINT, fontsize=8, va="center", transform=axis.transAxes
            )


def reference_columns(axis: Axes, references: Sequence[Reference], unit: str = "") -> None:
    """Dashed lines upwards, their labels on top; an arrow where one is off the axis.

    Equal references share a label: pushed apart, theirs would stand beside the line.
    """
    drawn = {signed(item.value): item.value for item in shown(references)}
    left, right = axis.get_xlim()
    places = [min(max((value - left) / (right - left), 0.0), 1.0) for value in drawn.values()]
    for (text, value), place in zip(drawn.items(), spread(places, 0.14), strict=True):
        off = "← " if value < left else "→ " if value > right else ""
        if not off:
            axis.axvline(value, color=FAINT, lw=0.9, ls=DASHED, zorder=1)
        names = [short(x.name, 16) for x in shown(references) if signed(x.value) == text]
        words = f"{fill(', '.join(names), 16)}\n{off}{text}{unit}"
        axis.text(
            place, 1.01, words, color=FAINT, fontsize=8, ha="center", va="bottom",
            transform=axis.transAxes,
        )  # fmt: skip


def signed(value: float) -> str:
    """A number with a true minus sign, as on the axes."""
    return number_text(value).replace("-", "−")


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places pushed apart until neighbours are `gap` away: labels do not overlap."""
    moved = list(places)
    for _ in range(100):
        for k in range(1, len(moved)):
            if (lack := gap - (moved[k] - moved[k - 1])) > 1e-9:
                moved[k - 1] -= lack / 2
                moved[k] += lack / 2
    return moved
