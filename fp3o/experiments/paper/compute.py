"""Cost of an iteration: time of rollout and update, compilation, memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fp3o.experiments.framework.grid import (
    NOTHING_FINISHED,
    PAPER_SHARINGS,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
)
from fp3o.experiments.framework.paper_results import PAPER_MEBIBYTES, PAPER_MINUTES
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import DASH, number_text, sharing_title

_TASKS = {
    "paper": ("smac/bane_vs_bane", "mamujoco/HalfCheetah-6x1"),
    "gpu": ("smac/bane_vs_bane", "smac/3s5z", "mpe/simple_reference"),
    "laptop": ("mamujoco/HalfCheetah-6x1", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}

_PAPER_RATIO = 1.17
"""The paper's largest ratio of FP3O's time to MAPPO's."""

_HEAD = (
    "task", "sharing", "algorithm", "rollout (ms)", "update (ms)", "rollout's share", "compile (s)",
    "memory (MiB)", "paper (MiB)", "minutes per seed", "paper (minutes)",
)  # fmt: skip

_CAPTION = (
    "Median of five iterations of one seed. Memory: the larger of the two programs, rollout and "
    "update; the paper's is that of the whole process on a GPU. Minutes per seed: the planned "
    "steps at this speed, without compilation and evaluations."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    """Paper-sized batches also on a laptop: a few iterations are enough."""
    batches: Scale = "paper" if scale == "laptop" else scale
    if scale == "smoke":
        cells = make_cells(_TASKS[scale], ["full"], algorithm_variants("fp3o", "mappo"), scale)
    else:
        variants = algorithm_variants("fp3o", "happo", "mappo", "ippo")
        cells = with_controls(_TASKS[scale], PAPER_SHARINGS, variants, batches)
    for cell in cells:
        yield replace(cell, job="time")


def _seconds(item: CellResult) -> float:
    """Seconds per iteration."""
    return item.timing["rollout"] + item.timing["update"]


def _minutes(item: CellResult) -> float:
    """Minutes of the planned number of steps, without compilation and evaluations."""
    return item.cell.config.steps / item.timing["steps"] * _seconds(item) / 60


def _summarise(results: CellResults) -> Summary:
    """Bars, and numbers beside the paper's."""
    if not results:
        return NOTHING_FINISHED
    table = ResultTable("Cost", _HEAD, [_row(item) for item in results], _CAPTION, 3)
    caption = "Time per iteration: rollout (pale) and update (full colour)."
    return Summary(_verdict(results), [table], [CaptionedFigure("time", _bars(results), caption)])


def _row(item: CellResult) -> list[str]:
    timing = item.timing
    memory = max(timing["rollout_mib"], timing["update_mib"])
    minutes, mebibytes = PAPER_MINUTES.get(item.key), PAPER_MEBIBYTES.get(item.key)
    return [
        *item.key, number_text(1000 * timing["rollout"]), number_text(1000 * timing["update"]),
        f"{100 * timing['rollout'] / _seconds(item):.0f} %", f"{timing['compile']:.1f}",
        f"{memory:.0f}", DASH if mebibytes is None else f"{mebibytes:g}",
        number_text(_minutes(item)), DASH if minutes is None else f"{minutes:g}",
    ]  # fmt: skip


def _verdict(results: CellResults) -> list[str]:
    """Ratios to MAPPO per task; the claim is evaluated where the paper has numbers."""
    lines = []
    for task in dict.fromkeys(item.cell.task for item in results):
        group = [item for item in results if item.cell.task == task]
        parts = []
        for name in ("FP3O", "HAPPO"):
            ours = _ratios(group, name, _seconds)
            theirs = _ratios(group, name, lambda item: PAPER_MINUTES.get(item.key, float("nan")))
            if ours:
                paper = f" (paper: {min(theirs):.2f} to {max(theirs):.2f})" if theirs else ""
                parts.append(f"{name} {min(ours):.2f} to {max(ours):.2f}{paper}")
        if parts:
            lines.append(f"{task}: time per iteration relative to MAPPO: {', '.join(parts)}.")
    return [*lines, _claim_verdict(results)]


def _claim_verdict(results: CellResults) -> str:
    """The paper's order, on its tasks: FP3O a little slower; under sharing, HAPPO slower still."""
    group = [item for item in results if item.key in PAPER_MINUTES]
    shared = [item for item in group if item.cell.sharing != "none"]
    fp3o = _ratios(group, "FP3O", _seconds)
    pairs = [*zip(*(_ratios(shared, name, _seconds) for name in ("FP3O", "HAPPO")), strict=False)]
    if not fp3o or not pairs:
        return "The paper's own tasks were not timed: its claim is not evaluated."
    where = "above" if max(fp3o) > _PAPER_RATIO else "within"
    slower = sum(ours < theirs for ours, theirs in pairs)
    return (
        f"On the paper's tasks FP3O takes up to {max(fp3o):.2f} times as long as MAPPO, {where} "
        f"the paper's {_PAPER_RATIO}; under sharing HAPPO takes longer than FP3O in {slower} of "
        f"{len(pairs)} cells, in the paper in all."
    )


def _ratios(results: CellResults, name: str, cost: Callable[[CellResult], float]) -> list[float]:
    """Costs of an algorithm relative to MAPPO's, where both are known."""
    ratios = []
    for item in results:
        base = (item.cell.task, item.cell.sharing, "MAPPO")
        other = next((x for x in results if x.key == base), None)
        if item.cell.variant == name and other:
            ratios.append(cost(item) / cost(other))
    return [x for x in ratios if np.isfinite(x)]


def _bars(results: CellResults) -> Any:
    """Figure with one panel per task."""
    from matplotlib.figure import Figure

    from fp3o.reports.figures.canvas import PANEL, apply_layout, figure_style

    tasks = [*dict.fromkeys(item.cell.task for item in results)]
    most = max(sum(item.cell.task == task for item in results) for task in tasks)
    with figure_style():
        size = (PANEL[0] * (0.4 + 0.7 * len(tasks)), 1.0 + 0.22 * most)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(tasks), squeeze=False)[0]
        for axis, task in zip(axes, tasks, strict=True):
            _draw_bars(axis, [item for item in results if item.cell.task == task])
            axis.set_title(task)
        return apply_layout(figure)


def _draw_bars(axis: Any, results: CellResults) -> None:
    from fp3o.experiments.framework.plots import variant_colour

    for height, item in enumerate(results):
        colour = variant_colour(item.cell.variant)
        rollout, update = (1000 * item.timing[name] for name in ("rollout", "update"))
        axis.barh(height, rollout, color=colour, alpha=0.35)
        axis.barh(height, update, left=rollout, color=colour)
    names = [f"{item.cell.variant}, {sharing_title(item.cell.sharing)}" for item in results]
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("milliseconds per iteration")
    axis.grid(visible=False, axis="y")


EXPERIMENT = Experiment(
    name="compute",
    title="Cost of an iteration",
    question="How much more time and memory does FP3O take than MAPPO, and HAPPO than FP3O?",
    claim="FP3O takes a little more time than MAPPO and as much memory; HAPPO takes more time than "
    "FP3O where parameters are shared, and less memory.",
    cells=_cells,
    summarise=_summarise,
    order=13,
)
