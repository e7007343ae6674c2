"""Figures of experiments: scores as dots, learning curves, lines over anything else."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fp3o.experiments.framework.grid import Cell, CellResults
from fp3o.experiments.framework.paper_results import Papers
from fp3o.reports.experiment_report import CaptionedFigure
from fp3o.reports.figures.canvas import PANEL, laid_out, styled
from fp3o.reports.figures.results import learning_curves, legend
from fp3o.reports.figures.style import FAINT, LINES, PALETTE
from fp3o.reports.stats.intervals import mean_band, mean_interval


def curves(findings: CellResults) -> Iterable[CaptionedFigure]:
    """Learning curves of every task, a panel a sharing."""
    for task in dict.fromkeys(item.cell.task for item in findings):
        own = [item for item in findings if item.cell.task == task]
        metric = f"eval_{own[0].measure.name}"
        groups = {
            in_words(sharing): [x.run for x in own if x.run and x.cell.sharing == sharing]
            for sharing in dict.fromkeys(item.cell.sharing for item in own)
        }
        words = ", ".join(groups)
        yield CaptionedFigure(
            f"curves_{task.split('/')[-1]}", learning_curves(groups, metric=metric),
            f"{task}: {own[0].measure.title.lower()} over environment steps ({words}); mean and "
            "95 % band over seeds",
        )  # fmt: skip


def dots(findings: CellResults, papers: Papers) -> CaptionedFigure:
    """Every cell's score with its interval, and the paper's as a hollow diamond."""
    tasks = [*dict.fromkeys(item.cell.task for item in findings)]
    columns = min(3, len(tasks))
    lines = max(len(_lines(findings, task)) for task in tasks)
    height = (0.8 + 0.22 * lines) * -(-len(tasks) // columns) + 0.3
    with styled():
        figure = Figure(figsize=(PANEL[0] * (0.35 + 0.65 * columns), height), layout="constrained")
        grid = figure.subplots(-(-len(tasks) // columns), columns, squeeze=False).ravel()
        for axis in grid[len(tasks) :]:
            axis.set_visible(False)
        for axis, task in zip(grid, tasks, strict=False):
            _dots(axis, task, [item for item in findings if item.cell.task == task], papers)
        words = "Scores of all cells: mean, 95 % interval, seeds as rings"
        caption = f"{words}; diamonds are the paper's" if papers else words
        return CaptionedFigure("scores", laid_out(figure), f"{caption}.")


def _lines(findings: CellResults, task: str) -> list[tuple[str, str, str]]:
    """The lines of a panel: a heading a sharing, then its variants."""
    own = [item.cell for item in findings if item.cell.task == task]
    lines = []
    for sharing in dict.fromkeys(cell.sharing for cell in own):
        lines.append((sharing, "", ""))
        lines += [_line_of(cell) for cell in own if cell.sharing == sharing]
    return lines


def _line_of(cell: Cell) -> tuple[str, str, str]:
    return cell.sharing, cell.variant, cell.more


def _dots(axis: Axes, task: str, own: CellResults, papers: Papers) -> None:
    lines = _lines(own, task)
    names = []
    for height, (sharing, variant, more) in enumerate(lines):
        names.append(f"{variant} {more}".strip() if variant else in_words(sharing))
        item = next(
            (
                x
                for x in own
                if (x.cell.sharing, x.cell.variant, x.cell.more) == (sharing, variant, more)
            ),
            None,
        )
        if item is None:
            continue
        colour = colour_of(variant, [x[1] for x in lines])
        interval = mean_interval(item.seeds)
        rings = np.full(item.seeds.size, height + 0.22)
        axis.scatter(item.seeds, rings, s=9, facecolors="none", edgecolors=colour, lw=0.7)
        if interval.known:
            ends = np.clip([interval.low, interval.high], *item.measure.ends)
            axis.plot(ends, [height - 0.1] * 2, color=colour, lw=2.2)
        axis.plot([interval.centre], [height - 0.1], "o", color=colour, ms=4)
        if known := papers.get(item.place):
            axis.plot([known.centre], [height - 0.1], "D", mfc="none", mec=FAINT, ms=6, mew=1.1)
    axis.set_yticks(range(len(lines)), names)
    for label, line in zip(axis.get_yticklabels(), lines, strict=True):
        label.set_fontweight("normal" if line[1] else "bold")
        label.set_fontsize(8)
    axis.set_ylim(len(lines) - 0.4, -0.8)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    axis.set_title(task)
    axis.set_xlabel(own[0].measure.axis + (" (%)" if own[0].measure.share else ""))


def in_words(sharing: str) -> str:
    """`full sharing`, `no sharing`; other kinds by their names."""
    kinds = {"full": "full sharing", "partial": "partial sharing", "none": "no sharing"}
    return kinds.get(sharing, sharing.replace("_", " "))


def colour_of(variant: str, among: Sequence[str]) -> str:
    """An algorithm's own colour; other variants take the next ones."""
    family = variant.lower().partition(",")[0]
    if family in PALETTE:
        return PALETTE[family][0]
    others = [x for x in dict.fromkeys(among) if x and x.lower().partition(",")[0] not in PALETTE]
    spare = [light for name, (light, _) in PALETTE.items() if name]
    return spare[(others.index(variant) + 1) % len(spare)]


def lines_of(
    panels: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]],
    across: str,
    up: str,
    log: tuple[bool, bool] = (False, False),
) -> Figure:
    """Panel -> name -> (x, values of every seed (s, x)): lines with 95 % intervals over seeds."""
    with styled():
        width = PANEL[0] if len(panels) == 1 else 0.72 * PANEL[0] * len(panels)
        figure = Figure(figsize=(width, PANEL[1]), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        names = [name for lines in panels.values() for name in lines]
        for axis, (title, lines) in zip(axes, panels.items(), strict=True):
            colours = [colour_of(name, names) for name in lines]
            for place, (name, (x, value)) in enumerate(lines.items()):
                dashes = LINES[colours[:place].count(colours[place]) % len(LINES)]
                _line(axis, x, np.atleast_2d(value), name, colours[place], dashes)
            axis.set_title(title)
            axis.set_xlabel(across)
            if log[0]:
                axis.set_xscale("log")
                at = sorted({float(x) for xs, _ in lines.values() for x in xs})
                axis.set_xticks(at, [f"{x:g}" for x in at])
                axis.minorticks_off()
            if log[1]:
                axis.set_yscale("log")
                axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes[0].set_ylabel(up)
        legend(figure, [*axes])
        return laid_out(figure)


def _line(
    axis: Axes, x: np.ndarray, value: np.ndarray, name: str, colour: str, dashes: Any
) -> None:
    mean, low, high = mean_band(value)
    axis.plot(x, mean, color=colour, ls=dashes, label=name, marker="o", ms=4)
    if len(value) > 2:
        axis.fill_between(x, low, high, color=colour, alpha=0.16, lw=0)
