"""Figures of results. Each function takes data and gives back a `Figure`; no global state."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fp3o.reports.data.measures import Measure, measure
from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.data.scores import Reference, Score, Section
from fp3o.reports.figures.canvas import (
    PANEL,
    colours,
    in_percent,
    laid_out,
    over_steps,
    reference_columns,
    reference_lines,
    save,
    shown,
    styled,
    thinned,
)
from fp3o.reports.figures.diagnostics import diagnostics
from fp3o.reports.figures.style import INK
from fp3o.reports.phrasing import sharing_text, short
from fp3o.reports.stats.intervals import mean_band

__all__ = [
    "METRICS", "beginning", "comparison", "curve", "curve_limits", "diagnostics", "learning_curves",
    "name_in", "panels", "save",
]  # fmt: skip

METRICS = {
    "eval_won": "Win rate", "episode_won": "Training win rate",
    "eval_return": "Evaluation return", "episode_return": "Training return",
}  # fmt: skip
"""What a learning curve can show."""

ROOM = 3.0
"""Percent points beyond the ends of a share's axis: lines at 0 and 100 % are whole."""


def panels(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Title -> runs of a panel: by sharing where both sharing and algorithm differ."""
    kinds = dict.fromkeys(map(sharing_text, runs))
    if len(kinds) == 1 or len({run.algorithm for run in runs}) == 1:
        return {"": list(runs)}
    return {kind: [run for run in runs if sharing_text(run) == kind] for kind in kinds}


def curve(run: RunRecord, metric: str) -> Series:
    """A metric over training in the numbers that are shown."""
    step, value = run.series(metric)
    return Series(step, _measure(metric).scale * value)


def _measure(metric: str) -> Measure:
    """What `eval_won` and `episode_won` measure: `won`."""
    return measure(metric.partition("_")[2])


def learning_curves(
    groups: Mapping[str, Sequence[RunRecord]],
    references: Sequence[Reference] = (),
    metric: str = "eval_return",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """A metric over environment steps: a panel a group, mean and 95 % band over seeds a run."""
    what = _measure(metric)
    everyone = [run for runs in groups.values() for run in runs]
    width = PANEL[0] if len(groups) == 1 else 0.75 * PANEL[0] * len(groups)
    with styled():
        figure = Figure(figsize=(width, PANEL[1]), layout="constrained")
        axes = list(figure.subplots(1, len(groups), sharey=True, squeeze=False)[0])
        axes[0].set_ylim(limits or curve_limits(everyone, references, metric))
        axes[0].set_ylabel(what.axis)
        for axis, (title, runs) in zip(axes, groups.items(), strict=True):
            axis.set_title(METRICS[metric] + (f", {short(title, 24)}" if title else ""))
            axis.set_xlabel("environment steps")
            for run, look in zip(runs, colours(runs), strict=True):
                _curve(axis, curve(run, metric), what, name_in(run, title), *look, len(runs) > 3)
            over_steps(axis)
            if what.share:
                in_percent(axis.yaxis)
            reference_lines(axis, references, axis is axes[-1], what.unit)
        legend(figure, axes)
        return laid_out(figure)


def curve_limits(
    runs: Sequence[RunRecord], references: Sequence[Reference], metric: str = "eval_return"
) -> tuple[float, float]:
    """Ends of the return axis: what the seeds did after the beginning, and references near it.

    A share has all of its axis, from 0 to 100 %.

    Untrained policies can be far worse than random ones: their first tenth (fifth, where many runs
    are compared) may fall below the axis, so that what counts, the upper part, is not squeezed.
    """
    if (what := _measure(metric)).share:
        return what.ends[0] - ROOM, what.ends[1] + ROOM
    begin, late = beginning(runs), []
    for run in runs:
        step, value = run.series(metric)
        late.append(value[:, step >= begin * step.max(initial=0.0)].ravel())
    there = np.concatenate(late)
    return _ends(there[np.isfinite(there)], references, 0.5, 0.05)


def beginning(runs: Sequence[RunRecord]) -> float:
    """The share of training whose returns may lie below the axis."""
    return 0.1 if len(runs) <= 3 else 0.2


def comparison(section: Section) -> Figure:
    """Scores of the last policies: a row a run, seeds as rings, mean and 95 % interval."""
    what = section.measure
    groups = panels(section.runs)
    scores = dict(zip([run.path for run in section.runs], section.last, strict=True))
    names: list[str] = []
    with styled():
        rows = len(section.runs) + sum(map(bool, groups))
        figure = Figure(figsize=(PANEL[0], 1.2 + 0.27 * rows), layout="constrained")
        axis = figure.subplots()
        for title, runs in groups.items():
            names += [short(title, 24)] if title else []
            for run, (colour, _) in zip(runs, colours(runs), strict=True):
                _row(axis, len(names), scores[run.path], what, colour)
                so_far = "" if scores[run.path].final else " (so far)"
                names.append(name_in(run, title) + so_far)
        axis.set_yticks(range(len(names)), names)
        for label in axis.get_yticklabels():
            heading = label.get_text() in {short(title, 24) for title in groups}
            label.set(color=INK, fontweight="bold" if heading else "normal")
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlim(_wide(section))
        axis.tick_params(axis="y", length=0)
        axis.grid(visible=False, axis="y")
        axis.set_xlabel(what.axis)
        if what.share:
            in_percent(axis.xaxis)
        reference_columns(axis, section.references, what.unit)
        title = f"{what.title} of the last policy: mean, 95 % interval, seeds"
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        return laid_out(figure)


def _wide(section: Section) -> tuple[float, float]:
    """Ends of the comparison's axis: seeds, intervals as far as sensible, references."""
    if (what := section.measure).share:
        return what.ends[0] - ROOM, what.ends[1] + ROOM
    seeds = np.concatenate([score.values for score in section.last])
    # Two seeds can have an interval a hundred times as wide as their distance.
    most = max(float(np.ptp(seeds)), 1e-9)
    bars = [end for score in section.last if score.interval.known for end in score.interval[1:3]]
    ends = np.clip(bars, seeds.min() - most, seeds.max() + most)
    return _ends(np.concatenate([seeds, ends]), section.references, 1.0, 0.07)


def _ends(
    values: np.ndarray, references: Sequence[Reference], near: float, pad: float
) -> tuple[float, float]:
    """Ends that hold all values and references; random only if it is `near` (in spans) or alone."""
    marks = {reference.name: reference.value for reference in shown(references)}
    chance = marks.pop("random", None)
    kept = [*values.tolist(), *marks.values()] or [0.0]
    low, high = min(kept), max(kept)
    if chance is not None and (not marks or chance > low - near * (high - low)):
        low, high = min(low, chance), max(high, chance)
    more = pad * (high - low) or 1.0
    return low - more, high + more


def _curve(
    axis: Axes, series: Series, what: Measure, label: str, colour: str, dashes: Any, crowded: bool
) -> None:
    step, value = thinned(series)
    if not step.size:
        return
    mean, low, high = mean_band(value)
    marker = "o" if step.size < 12 else None
    axis.plot(step, mean, color=colour, ls=dashes, label=label, marker=marker, ms=3, zorder=3)
    if len(value) > 2:  # the interval of two seeds is 13 times their distance: all of the panel
        band = np.clip([low, high], *what.ends)
        axis.fill_between(step, *band, color=colour, alpha=0.16, lw=0, zorder=1)
    if len(value) > 1:
        alpha, width = (0.2, 0.5) if crowded else (0.4, 0.7)
        axis.plot(step, value.T, color=colour, alpha=alpha, lw=width, zorder=2)


def _row(axis: Axes, height: int, score: Score, what: Measure, colour: str) -> None:
    mean = score.interval
    seeds = np.full(score.values.size, height + 0.2)
    axis.scatter(score.values, seeds, s=13, facecolors="none", edgecolors=colour, lw=0.8, zorder=2)
    if mean.known:
        bar = np.clip([mean.low, mean.high], *what.ends)
        axis.plot(bar, [height - 0.12] * 2, color=colour, lw=2.4, zorder=3)
    axis.plot([mean.centre], [height - 0.12], "o", color=colour, ms=5, zorder=4)


def name_in(run: RunRecord, title: str) -> str:
    """The run's label without the sharing if the panel's title says it."""
    label = run.label.replace(f" · {run.sharing}", "", 1) if title else run.label
    return short(label.lstrip("_"), 40) or "?"  # a leading underscore would hide it from the legend


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below all panels, in as many columns as its words allow."""
    handles = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    if handles:
        room = figure.get_figwidth() / (0.45 + 0.075 * max(map(len, handles)))
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", fontsize=8,
            ncols=max(1, min(int(room), len(handles))), handlelength=1.6, columnspacing=1.4,
        )  # fmt: skip
