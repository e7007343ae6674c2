"""What an iteration costs: time of rollout and update, compiling, memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from fp3o.experiments.framework.grid import (
    SHARINGS,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
)
from fp3o.experiments.framework.paper_results import MEBIBYTES, MINUTES
from fp3o.experiments.framework.plots import colour_of, in_words
from fp3o.experiments.framework.scales import cells, rows
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.figures.canvas import PANEL, laid_out, styled
from fp3o.reports.phrasing import number_text

TASKS = {
    "paper": ("smac/bane_vs_bane", "mamujoco/HalfCheetah-6x1"),
    "gpu": ("smac/bane_vs_bane", "smac/3s5z", "mpe/simple_reference"),
    "laptop": ("mamujoco/HalfCheetah-6x1", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}

MOST = 1.17
"""The paper's largest ratio of FP3O's time to MAPPO's."""

ALGORITHMS = ("fp3o", "happo", "mappo", "ippo")


def grid(scale: Scale) -> Iterator[Cell]:
    """The paper's batches also on a laptop: a few iterations are enough."""
    small = scale == "smoke"
    names = rows(*(("fp3o", "mappo") if small else ALGORITHMS))
    sharings = SHARINGS[:1] if small else SHARINGS
    batches: Scale = "paper" if scale == "laptop" else scale
    for cell in cells(TASKS[scale], sharings, names, batches):
        yield replace(cell, work="clock")


def whole(item: CellResult) -> float:
    """Minutes of the paper's number of steps, if nothing but training took time."""
    return item.cell.config.steps / item.facts["steps"] * seconds(item) / 60


def show(findings: CellResults) -> Summary:
    """Bars, and numbers beside the paper's."""
    if not findings:
        return Summary(["Nothing is finished yet."])
    rows = []
    for item in findings:
        facts = item.facts
        memory = max(facts["rollout_mib"], facts["update_mib"])
        minutes, mib = MINUTES.get(item.place), MEBIBYTES.get(item.place)
        rows.append([
            *item.place, number_text(1000 * facts["rollout"]), number_text(1000 * facts["update"]),
            f"{100 * facts['rollout'] / seconds(item):.0f} %", f"{facts['compile']:.1f}",
            f"{memory:.0f}", "–" if mib is None else f"{mib:g}",
            number_text(whole(item)), "–" if minutes is None else f"{minutes:g}",
        ])  # fmt: skip
    head = ["task", "sharing", "algorithm", "rollout (ms)", "update (ms)", "rollout's share",
            "compile (s)", "memory (MiB)", "the paper's MiB", "minutes of a seed",
            "the paper's minutes"]  # fmt: skip
    caption = (
        "Median of five iterations of one seed. Memory: what the larger of the two programs, "
        "rollout and update, needs; the paper's is that of the whole process on a GPU. Minutes of "
        "a seed: the planned steps at this pace, without compiling and evaluations."
    )
    words = "Time of an iteration: rollout (pale) and update (full colour)."
    return Summary(
        said(findings), [ResultTable("Cost", head, rows, caption, 3)],
        [CaptionedFigure("time", bars(findings), words)],
    )  # fmt: skip


def seconds(item: CellResult) -> float:
    """Of an iteration."""
    return item.facts["rollout"] + item.facts["update"]


def said(findings: CellResults) -> list[str]:
    """Ratios to MAPPO task by task; the claim is judged where the paper has numbers."""
    told = []
    for task in dict.fromkeys(item.cell.task for item in findings):
        own = [item for item in findings if item.cell.task == task]
        parts = []
        for name in ("FP3O", "HAPPO"):
            ours = ratios(own, name, seconds)
            theirs = ratios(own, name, lambda item: MINUTES.get(item.place, float("nan")))
            if ours:
                known = f" (the paper: {min(theirs):.2f} to {max(theirs):.2f})" if theirs else ""
                parts.append(f"{name} {min(ours):.2f} to {max(ours):.2f}{known}")
        if parts:
            told.append(f"{task}: an iteration takes, in multiples of MAPPO's, {', '.join(parts)}.")
    return [*told, answer(findings)]


def answer(findings: CellResults) -> str:
    """The paper's order, on its tasks: a little more for FP3O; under sharing, more for HAPPO."""
    own = [item for item in findings if item.place in MINUTES]
    shared = [item for item in own if item.cell.sharing != "none"]
    fp3o = ratios(own, "FP3O", seconds)
    pairs = [*zip(*(ratios(shared, name, seconds) for name in ("FP3O", "HAPPO")), strict=False)]
    if not fp3o or not pairs:
        return "The paper's own tasks were not timed: its claim is not judged."
    where = "above" if max(fp3o) > MOST else "within"
    slower = sum(ours < theirs for ours, theirs in pairs)
    return (
        f"On the paper's tasks FP3O takes up to {max(fp3o):.2f} times as long as MAPPO, {where} "
        f"the paper's {MOST}; under sharing HAPPO takes longer than FP3O in {slower} of "
        f"{len(pairs)} cells, in the paper in all."
    )


def ratios(findings: CellResults, name: str, cost: Callable[[CellResult], float]) -> list[float]:
    """Costs of an algorithm as multiples of MAPPO's, where both are known."""
    found = []
    for item in findings:
        base = (item.cell.task, item.cell.sharing, "MAPPO")
        other = next((x for x in findings if x.place == base), None)
        if item.cell.variant == name and other:
            found.append(cost(item) / cost(other))
    return [x for x in found if np.isfinite(x)]


def bars(findings: CellResults) -> Figure:
    """A panel a task."""
    tasks = [*dict.fromkeys(item.cell.task for item in findings)]
    most = max(sum(item.cell.task == task for item in findings) for task in tasks)
    with styled():
        size = (PANEL[0] * (0.4 + 0.7 * len(tasks)), 1.0 + 0.22 * most)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(tasks), squeeze=False)[0]
        for axis, task in zip(axes, tasks, strict=True):
            own = [item for item in findings if item.cell.task == task]
            for height, item in enumerate(own):
                colour = colour_of(item.cell.variant, [])
                parts = [1000 * item.facts[x] for x in ("rollout", "update")]
                axis.barh(height, parts[0], color=colour, alpha=0.35)
                axis.barh(height, parts[1], left=parts[0], color=colour)
            names = [f"{item.cell.variant}, {in_words(item.cell.sharing)}" for item in own]
            axis.set_yticks(range(len(own)), names, fontsize=8)
            axis.invert_yaxis()
            axis.set_xlabel("milliseconds of an iteration")
            axis.set_title(task)
            axis.grid(visible=False, axis="y")
        return laid_out(figure)


EXPERIMENT = Experiment(
    "compute", "What an iteration costs",
    "How much more time and memory does FP3O take than MAPPO, and HAPPO than FP3O?",
    grid, show,
    "FP3O takes a little more time than MAPPO and as much memory; HAPPO takes more time than FP3O "
    "where parameters are shared, and less memory.",
)  # fmt: skip
