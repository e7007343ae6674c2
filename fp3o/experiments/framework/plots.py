"""Figures of experiments: scores as dots, learning curves, lines over any quantity."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fp3o.algorithms.table import ALGORITHMS
from fp3o.experiments.framework.cell_differences import CellDifference
from fp3o.experiments.framework.grid import Cell, CellResult, CellResults, Lines
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.reports.experiment_report import CaptionedFigure
from fp3o.reports.figures.canvas import (
    PANEL,
    LineStyle,
    apply_layout,
    figure_legend,
    figure_style,
)
from fp3o.reports.figures.results import curves_figure
from fp3o.reports.figures.style import FAINT_COLOUR, LINES, PALETTE
from fp3o.reports.phrasing import sharing_title
from fp3o.reports.stats.intervals import mean_band, mean_interval


def curve_figures(results: CellResults) -> Iterable[CaptionedFigure]:
    """Learning curves per task and measure, with one panel per sharing."""
    for task, name in dict.fromkeys((item.cell.task, item.measure.name) for item in results):
        group = [x for x in results if (x.cell.task, x.measure.name) == (task, name)]
        measure = group[0].measure
        panels = {
            sharing_title(sharing): [x.run for x in group if x.run and x.cell.sharing == sharing]
            for sharing in dict.fromkeys(item.cell.sharing for item in group)
        }
        yield CaptionedFigure(
            f"{'kills' if group[0].judged_by else 'curves'}_{task.split('/')[-1]}",
            curves_figure(panels, metric=f"eval_{measure.name}"),
            f"{task}: {measure.title.lower()} over environment steps ({', '.join(panels)}); mean "
            "and 95 % band over seeds.",
        )


def score_dots(results: CellResults, paper: PaperScores) -> CaptionedFigure:
    """Score of every cell with its interval, and the paper's as a hollow diamond."""
    tasks = [*dict.fromkeys(item.cell.task for item in results)]
    columns = min(3, len(tasks))
    lines = max(len(_rows([x for x in results if x.cell.task == task])) for task in tasks)
    height = (0.8 + 0.22 * lines) * -(-len(tasks) // columns) + 0.3
    with figure_style():
        figure = Figure(figsize=(PANEL[0] * (0.35 + 0.65 * columns), height), layout="constrained")
        axes = figure.subplots(-(-len(tasks) // columns), columns, squeeze=False).ravel()
        for axis in axes[len(tasks) :]:
            axis.set_visible(False)
        for axis, task in zip(axes, tasks, strict=False):
            _draw_dots(axis, [item for item in results if item.cell.task == task], paper)
            axis.set_title(task)
        text = "Scores of all cells: mean, 95 % interval, seeds as circles"
        caption = f"{text}; diamonds are the paper's" if paper else text
        return CaptionedFigure("scores", apply_layout(figure), f"{caption}.")


def difference_dots(groups: Sequence[Sequence[CellDifference]]) -> list[CaptionedFigure]:
    """Difference of every cell and comparison with its interval, and the paper's as a diamond."""
    items = [item for group in groups for item in group if item.difference.known]
    if not items:
        return []
    tasks = [*dict.fromkeys(item.ours.cell.task for item in items)]
    titles = [*dict.fromkeys(map(_difference_title, items))]
    columns = min(3, len(tasks))
    lines = max(len({_place(x) for x in items if x.ours.cell.task == task}) for task in tasks)
    height = (1.0 + 0.2 * lines * (1 + len(titles))) * -(-len(tasks) // columns) + 0.5
    with figure_style():
        figure = Figure(figsize=(PANEL[0] * (0.3 + 0.6 * columns), height), layout="constrained")
        axes = figure.subplots(-(-len(tasks) // columns), columns, squeeze=False).ravel()
        for axis in axes[len(tasks) :]:
            axis.set_visible(False)
        for axis, task in zip(axes, tasks, strict=False):
            _draw_differences(axis, [x for x in items if x.ours.cell.task == task], titles)
            axis.set_title(task)
        figure_legend(figure, [*axes[: len(tasks)]])
        published = any(item.published is not None for item in items)
        diamonds = " Hollow diamonds: the paper's differences." if published else ""
        caption = (
            "Differences of the scores, paired by seed, with 95 % intervals; pale where the cell "
            f"does not count.{diamonds}"
        )
        return [CaptionedFigure("differences", apply_layout(figure), caption)]


def _draw_differences(axis: Axes, items: Sequence[CellDifference], titles: Sequence[str]) -> None:
    """One line per sharing, with the comparisons below each other."""
    places = [*dict.fromkeys(map(_place, items))]
    for item in items:
        row = titles.index(_difference_title(item))
        height = places.index(_place(item)) * (1 + len(titles)) + row
        colour, alpha = [*PALETTE][row % len(PALETTE)], 1.0 if item.counts else 0.3
        interval = item.difference
        axis.plot([interval.low, interval.high], [height] * 2, color=colour, lw=2.2, alpha=alpha)
        axis.plot([interval.centre], [height], "o", color=colour, ms=4, alpha=alpha)
        if item.published is not None:
            axis.plot([item.published], [height], "D", mfc="none", mec=FAINT_COLOUR, ms=6)
    for row, title in enumerate(titles):  # the legend has full colours
        axis.plot([], [], "o-", color=[*PALETTE][row % len(PALETTE)], ms=4, lw=2.2, label=title)
    axis.axvline(0, color=FAINT_COLOUR, lw=0.8)
    middles = [k * (1 + len(titles)) + (len(titles) - 1) / 2 for k in range(len(places))]
    axis.set_yticks(middles, places, fontsize=8)
    axis.set_ylim(len(places) * (1 + len(titles)) - 1.3, -0.7)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    measure = items[0].ours.measure
    axis.set_xlabel(f"difference of {measure.axis}" + (" (%)" if measure.is_rate else ""))


def _place(item: CellDifference) -> str:
    """Sharing and detail of a cell."""
    return f"{sharing_title(item.ours.cell.sharing)} {item.ours.cell.detail}".strip()


def _difference_title(item: CellDifference) -> str:
    return f"{item.ours.cell.variant} - {item.theirs.cell.variant}"


def _rows(results: CellResults) -> list[Cell | str]:
    """Rows of a panel: a heading per sharing, then its cells."""
    rows: list[Cell | str] = []
    for sharing in dict.fromkeys(item.cell.sharing for item in results):
        rows.append(sharing)
        rows += [item.cell for item in results if item.cell.sharing == sharing]
    return rows


def _draw_dots(axis: Axes, results: CellResults, paper: PaperScores) -> None:
    rows, by_cell = _rows(results), {item.cell.label: item for item in results}
    variants = [item.cell.variant for item in results]
    names = []
    for height, row in enumerate(rows):
        if isinstance(row, str):
            names.append(sharing_title(row))
            continue
        names.append(f"{row.variant} {row.detail}".strip())
        item = by_cell[row.label]
        _draw_dot(axis, height, item, variant_colour(row.variant, variants))
        if known := paper.get(item.key):
            axis.plot(
                [known.centre], [height - 0.1], "D", mfc="none", mec=FAINT_COLOUR, ms=6, mew=1.1
            )
    axis.set_yticks(range(len(rows)), names)
    for label, row in zip(axis.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if isinstance(row, str) else "normal")
        label.set_fontsize(8)
    axis.set_ylim(len(rows) - 0.4, -0.8)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    measure = results[0].measure
    axis.set_xlabel(measure.axis + (" (%)" if measure.is_rate else ""))
    if measure.is_rate:  # the same scale on all tasks: where all win, differences look small
        axis.set_xlim(-4, 104)


def _draw_dot(axis: Axes, height: int, item: CellResult, colour: str) -> None:
    """Mean, interval and seeds of a cell."""
    interval = mean_interval(item.seeds)
    circles = np.full(item.seeds.size, height + 0.22)
    axis.scatter(item.seeds, circles, s=9, facecolors="none", edgecolors=colour, lw=0.7)
    if interval.known:
        ends = np.clip([interval.low, interval.high], *item.measure.bounds)
        axis.plot(ends, [height - 0.1] * 2, color=colour, lw=2.2)
    axis.plot([interval.centre], [height - 0.1], "o", color=colour, ms=4)


def variant_colour(variant: str, variants: Sequence[str] = ()) -> str:
    """Colour of the algorithm a variant is titled by; other variants take the next colours."""
    titles = {row.title: row.colour for row in ALGORITHMS.values() if row.colour}
    if colour := titles.get(variant.partition(",")[0]):
        return colour[0]
    others = [x for x in dict.fromkeys(variants) if x and x.partition(",")[0] not in titles]
    palette = [*PALETTE]
    return palette[(others.index(variant) + 1 if variant in others else 0) % len(palette)]


def variant_styles(names: Sequence[str], among: Sequence[str]) -> list[LineStyle]:
    """Line styles of variants; dashes distinguish variants of one colour."""
    colours = [variant_colour(name, among) for name in names]
    return [
        LineStyle(colour, LINES[colours[:k].count(colour) % len(LINES)])
        for k, colour in enumerate(colours)
    ]


def lines_figure(
    panels: Mapping[str, Lines], x_label: str, y_label: str, log: tuple[bool, bool] = (False, False)
) -> Figure:
    """Lines with 95 % intervals over seeds in one panel per key; `log`: logarithmic x and y."""
    with figure_style():
        width = PANEL[0] if len(panels) == 1 else 0.72 * PANEL[0] * len(panels)
        figure = Figure(figsize=(width, PANEL[1]), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        names = [name for lines in panels.values() for name in lines]
        for axis, (title, lines) in zip(axes, panels.items(), strict=True):
            _draw_lines(axis, lines, names)
            axis.set_title(title)
            axis.set_xlabel(x_label)
            _log_axes(axis, lines, log)
        axes[0].set_ylabel(y_label)
        figure_legend(figure, [*axes])
        return apply_layout(figure)


def _draw_lines(axis: Axes, lines: Lines, names: Sequence[str]) -> None:
    styles = variant_styles([*lines], names)
    for (name, (x, values)), style in zip(lines.items(), styles, strict=True):
        values = np.atleast_2d(values)
        mean, low, high = mean_band(values)
        axis.plot(x, mean, color=style.colour, ls=style.dashes, label=name, marker="o", ms=4)
        if len(values) > 2:
            axis.fill_between(x, low, high, color=style.colour, alpha=0.16, lw=0)


def _log_axes(axis: Axes, lines: Lines, log: tuple[bool, bool]) -> None:
    if log[0]:
        axis.set_xscale("log")
        at = sorted({float(x) for xs, _ in lines.values() for x in xs})
        axis.set_xticks(at, [f"{x:g}" for x in at])
        axis.minorticks_off()
    if log[1]:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
