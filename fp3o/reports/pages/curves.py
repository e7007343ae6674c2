"""Learning curves on a page: data for its script, and static figures without scripts."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import TaskScores
from fp3o.reports.figures.canvas import LineStyle, line_styles, thin_series
from fp3o.reports.figures.results import (
    CURVE_TITLES,
    curve_limits,
    curve_series,
    curves_figure,
    group_by_sharing,
    label_in_panel,
    start_share,
)
from fp3o.reports.figures.style import css_colour
from fp3o.reports.pages.markup import Html, inline_svg, join_html, json_script, tag
from fp3o.reports.stats.intervals import mean_band

SaveFigure = Callable[[Figure, str], object]
"""Called with every figure that is saved to a file, and its name."""

SPARSE = 8
"""With fewer evaluations than this, returns during training are shown from the start as well."""

CURVE_FILES = {
    "eval_won": "win_rate_curves", "episode_won": "training_win_rate_curves",
    "eval_return": "learning_curves", "episode_return": "training_curves",
}  # fmt: skip

CURVES_CAPTION = (
    "Lines: mean over seeds. Bands: 95 % Student-t interval, if there are at least three seeds. "
    "Thin lines: single seeds. Dashed lines: baselines. Training curves: episodes "
    "collected with exploration. The start of some curves may lie below the axis."
)

CURVES_HELP = (
    "Hover over a chart, tap it, or use the arrow keys to read its values. Click a run's name "
    "below a chart to hide or show the run."
)


class CurvePanel(NamedTuple):
    """One chart: a metric of some runs on one task."""

    scores: TaskScores
    metric: str
    title: str
    """What its runs have in common; empty if nothing."""
    runs: Sequence[RunRecord]
    shown_first: bool
    """Whether it is visible when the page opens."""


def curve_panels(task: TaskScores) -> list[CurvePanel]:
    """The charts of a task: wins before returns, evaluations before training."""
    sparse = any(run.series("eval_return").step.size < SPARSE for run in task.runs)
    panels = []
    for scores, prefix in itertools.product(task.main_measures, ("eval", "episode")):
        metric = f"{prefix}_{scores.measure.name}"
        if any(run.series(metric).step.size for run in scores.runs):
            shown = sparse or prefix == "eval"
            groups = group_by_sharing(scores.runs).items()
            panels += [CurvePanel(scores, metric, title, runs, shown) for title, runs in groups]
    return panels


def curves_section(tasks: Sequence[tuple[str, TaskScores]], save: SaveFigure | None) -> list[Html]:
    """The charts of all tasks and their data; `tasks` come with a prefix for names of files."""
    panels = [(prefix, group) for prefix, task in tasks if (group := curve_panels(task))]
    if not panels:
        return [tag("p", "Nothing was logged during training.", class_="small")]
    every, numbers = [panel for _, group in panels for panel in group], itertools.count()
    charts = [
        _task_section(group, _task_charts(group, prefix, numbers, save), len(tasks) > 1)
        for prefix, group in panels
    ]
    return [
        tag("p", CURVES_HELP, class_="small scripted", hidden="1"),
        tag("div", id="filters", hidden="1"),
        *charts,
        tag("p", CURVES_CAPTION, class_="small"),
        json_script("curves", chart_data(every)),
    ]


def chart_script() -> str:
    """The script that draws the charts."""
    return files("fp3o.reports.pages").joinpath("chart.js").read_text(encoding="utf-8")


def _task_charts(
    panels: Sequence[CurvePanel], prefix: str, numbers: Iterator[int], save: SaveFigure | None
) -> Html:
    """The charts of one task: one row per metric, or one row if each metric has one chart."""
    rows = [list(same) for _, same in itertools.groupby(panels, key=lambda panel: panel.metric)]
    charts = [
        [_placeholder(next(numbers), figure) for figure in _static_figures(row, prefix, save)]
        for row in rows
    ]
    if len(panels) == len(rows):
        charts = [[chart for row in charts for chart in row]]
    return join_html(*(tag("div", *row, class_="charts") for row in charts))


def _task_section(panels: Sequence[CurvePanel], charts: Html, titled: bool) -> Html:
    heading = [tag("h3", panels[0].scores.task)] if titled else []
    return tag("section", *heading, charts, class_="curves")


def _placeholder(number: int, figure: str) -> Html:
    """Element in which the script draws a chart."""
    return tag("div", figure, class_="chart", data_chart=str(number), hidden="" if figure else "1")


def _static_figures(
    panels: Sequence[CurvePanel], prefix: str, save: SaveFigure | None
) -> list[str]:
    """Figures of the panels of one metric on one scale; empty for panels not shown at first."""
    scores, metric, *_, shown = panels[0]
    if not shown:
        return [""] * len(panels)
    limits = curve_limits(scores.runs, scores.baselines, metric)
    draw = partial(curves_figure, baselines=scores.baselines, metric=metric, limits=limits)
    groups = {panel.title: panel.runs for panel in panels}
    singles = {title: draw({title: runs}) for title, runs in groups.items()}
    if save:
        together = draw(groups) if len(groups) > 1 else next(iter(singles.values()))
        save(together, prefix + CURVE_FILES[metric])
    text = f"{CURVE_TITLES[metric]} over steps"
    return [inline_svg(single, f"{text} {title}") for title, single in singles.items()]


def chart_data(panels: Sequence[CurvePanel]) -> dict[str, Any]:
    """Data of the script: runs, metrics, and the charts in page order."""
    runs = {run.path: run for panel in panels for run in panel.runs}
    indices = {path: index for index, path in enumerate(runs)}
    shown = {panel.metric for panel in panels if panel.shown_first}
    measures = {panel.metric: panel.scores.measure for panel in panels}
    return {
        "runs": [
            {"task": run.task, "sharing": run.sharing, "algorithm": run.algorithm}
            for run in runs.values()
        ],
        "metrics": {
            name: {
                "title": CURVE_TITLES[name], "axis": measure.axis, "unit": measure.unit,
                "ends": list(measure.bounds) if measure.is_rate else None, "early": name in shown,
            }
            for name in CURVE_TITLES
            if (measure := measures.get(name))
        },
        "charts": [_chart(panel, indices) for panel in panels],
    }  # fmt: skip


def _chart(panel: CurvePanel, indices: Mapping[Any, int]) -> dict[str, Any]:
    styles = zip(panel.runs, line_styles(panel.runs), strict=True)
    return {
        "task": panel.scores.task,
        "metric": panel.metric,
        "title": panel.title,
        "baselines": [[item.name, item.value] for item in panel.scores.baselines],
        "curves": [_curve(panel, run, style) | {"run": indices[run.path]} for run, style in styles],
    }


def _curve(panel: CurvePanel, run: RunRecord, style: LineStyle) -> dict[str, Any]:
    """A curve: steps, mean, interval, seeds; and the range of its values, late and in total."""
    step, value = thin_series(curve_series(run, panel.metric))
    mean, low, high = mean_band(value)
    low, high = np.clip([low, high], *panel.scores.measure.bounds)
    start = start_share(panel.scores.runs)
    late = value[:, step >= start * step.max(initial=0.0)]
    return {
        "name": label_in_panel(run, panel.title), "colour": css_colour(style.colour, style.dark),
        "dashes": [] if style.dashes == "-" else list(style.dashes[1]),
        "step": [int(x) for x in step],
        "mean": _rounded(mean), "low": _rounded(low), "high": _rounded(high),
        "seeds": [_rounded(seed) for seed in value] if len(value) > 1 else [],
        "late": _range(late), "whole": _range(value),
    }  # fmt: skip


def _rounded(values: np.ndarray) -> list[float | None]:
    """Five digits: more are not visible."""
    return [float(f"{x:.5g}") if np.isfinite(x) else None for x in values.tolist()]


def _range(values: np.ndarray) -> list[float] | None:
    """Smallest and largest number; None if there is none."""
    known = values[np.isfinite(values)]
    return [float(known.min()), float(known.max())] if known.size else None
