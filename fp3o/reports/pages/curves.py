"""Learning curves as part of a page: data for its script, and figures for where none runs."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import Section
from fp3o.reports.figures import results as draw
from fp3o.reports.figures.canvas import colours, shown, thinned
from fp3o.reports.figures.style import SWAPS
from fp3o.reports.pages.markup import Html, embedded, join, svg, tag
from fp3o.reports.stats.intervals import mean_band

Keep = Callable[[Figure, str], object]
"""Called with every figure that is worth a file, and a name for it; None: no files are wanted."""

SPARSE = 8
"""With fewer evaluations than this, what was seen in training is shown as well."""

FILES = {
    "eval_won": "win_rate_curves", "episode_won": "training_win_rate_curves",
    "eval_return": "learning_curves", "episode_return": "training_curves",
}  # fmt: skip

CAPTION = (
    "Lines: mean over seeds. Bands: 95 % Student-t interval, from three seeds on. Thin lines: "
    "single seeds. Dashed across: reference policies. Training curves: what was seen while "
    "exploring. The beginnings of some curves may lie below the axis."
)

HELP = (
    "Point at a chart, tap it, or use the arrow keys on it to read its values. A run's name below "
    "a chart hides or shows the run."
)


class Panel(NamedTuple):
    """One chart: a metric of some runs on one task."""

    section: Section
    metric: str
    title: str
    """What its runs have in common; empty: nothing to tell."""
    runs: Sequence[RunRecord]
    early: bool
    """Whether it is shown from the beginning."""


def panels_of(part: Section) -> list[Panel]:
    """The charts of a task: wins before returns, evaluations before training."""
    sparse = any(run.series("eval_return").step.size < SPARSE for run in part.runs)
    found = []
    for section, kind in itertools.product(part.headed, ("eval", "episode")):
        metric = f"{kind}_{section.measure.name}"
        if any(run.series(metric).step.size for run in section.runs):
            early = sparse or kind == "eval"
            groups = draw.panels(section.runs).items()
            found += [Panel(section, metric, title, runs, early) for title, runs in groups]
    return found


def learning_curves(parts: Sequence[tuple[str, Section]], keep: Keep | None) -> list[Html]:
    """The charts of all tasks with their data; names of files begin with the text of the pair."""
    panels = [(name, own) for name, part in parts if (own := panels_of(part))]
    if not panels:
        return [tag("p", "Nothing was logged during training.", class_="small")]
    every, numbers = [panel for _, own in panels for panel in own], itertools.count()
    return [
        tag("p", HELP, class_="small scripted", hidden="1"),
        tag("div", id="filters", hidden="1"),
        *(_section(own, _task(own, name, numbers, keep), len(parts) > 1) for name, own in panels),
        tag("p", CAPTION, class_="small"),
        embedded("curves", chart_data(every)),
    ]


def script() -> str:
    """The program that draws the charts."""
    return files("fp3o.reports.pages").joinpath("chart.js").read_text(encoding="utf-8")


def _task(panels: Sequence[Panel], name: str, numbers: Iterator[int], keep: Keep | None) -> Html:
    """The charts of one task: a row a metric, or all beside each other where each has one."""
    rows = [list(same) for _, same in itertools.groupby(panels, key=lambda panel: panel.metric)]
    charts = [[_place(next(numbers), still) for still in _stills(row, name, keep)] for row in rows]
    if len(panels) == len(rows):
        charts = [[chart for row in charts for chart in row]]
    return join(*(tag("div", *row, class_="charts") for row in charts))


def _section(panels: Sequence[Panel], charts: Html, titled: bool) -> Html:
    heading = [tag("h3", panels[0].section.task)] if titled else []
    return tag("section", *heading, charts, class_="curves")


def _place(number: int, still: str) -> Html:
    """Where the script draws a chart."""
    return tag("div", still, class_="chart", data_chart=str(number), hidden="" if still else "1")


def _stills(panels: Sequence[Panel], name: str, keep: Keep | None) -> list[str]:
    """Figures of the panels of one metric, on one scale; empty for those not shown at first."""
    section, metric, *_, early = panels[0]
    if not early:
        return [""] * len(panels)
    limits = draw.curve_limits(section.runs, section.references, metric)
    figure = partial(
        draw.learning_curves, references=section.references, metric=metric, limits=limits
    )
    groups = {panel.title: panel.runs for panel in panels}
    singles = {title: figure({title: runs}) for title, runs in groups.items()}
    if keep:
        together = figure(groups) if len(groups) > 1 else next(iter(singles.values()))
        keep(together, name + FILES[metric])
    words = f"{draw.METRICS[metric]} over steps"
    return [svg(single, f"{words} {title}") for title, single in singles.items()]


def chart_data(panels: Sequence[Panel]) -> dict[str, Any]:
    """What the script draws: runs, metrics, and the charts in their order on the page."""
    runs = {run.path: run for panel in panels for run in panel.runs}
    places = {path: place for place, path in enumerate(runs)}
    early = {panel.metric for panel in panels if panel.early}
    metrics = {panel.metric: panel.section.measure for panel in panels}
    return {
        "runs": [
            {"task": run.task, "sharing": run.sharing, "algorithm": run.algorithm}
            for run in runs.values()
        ],
        "metrics": {
            name: {
                "title": draw.METRICS[name], "axis": what.axis, "unit": what.unit,
                "ends": list(what.ends) if what.share else None, "early": name in early,
            }
            for name in draw.METRICS
            if (what := metrics.get(name))
        },
        "charts": [_chart(panel, places) for panel in panels],
    }  # fmt: skip


def _chart(panel: Panel, places: Mapping[Any, int]) -> dict[str, Any]:
    begin = draw.beginning(panel.section.runs)
    looks = zip(panel.runs, colours(panel.runs), strict=True)
    return {
        "task": panel.section.task,
        "metric": panel.metric,
        "title": panel.title,
        "references": [[item.name, item.value] for item in shown(panel.section.references)],
        "curves": [
            {
                "run": places[run.path], "name": draw.name_in(run, panel.title),
                "colour": SWAPS[colour], "dashes": [] if dashes == "-" else list(dashes[1]),
                **_numbers(panel, run, begin),
            }
            for run, (colour, dashes) in looks
        ],
    }  # fmt: skip


def _numbers(panel: Panel, run: RunRecord, begin: float) -> dict[str, Any]:
    """A curve: steps, mean, interval, seeds; and what its axis must hold, late and in all."""
    step, value = thinned(draw.curve(run, panel.metric))
    mean, low, high = mean_band(value)
    low, high = np.clip([low, high], *panel.section.measure.ends)
    late = value[:, step >= begin * step.max(initial=0.0)]
    return {
        "step": [int(x) for x in step],
        "mean": _rounded(mean), "low": _rounded(low), "high": _rounded(high),
        "seeds": [_rounded(seed) for seed in value] if len(value) > 1 else [],
        "late": _ends(late), "whole": _ends(value),
    }  # fmt: skip


def _rounded(values: np.ndarray) -> list[float | None]:
    """Five digits: more cannot be seen."""
    return [float(f"{x:.5g}") if np.isfinite(x) else None for x in values.tolist()]


def _ends(values: np.ndarray) -> list[float] | None:
    """The least and the greatest number; None where there is none."""
    there = values[np.isfinite(values)]
    return [float(there.min()), float(there.max())] if there.size else None
