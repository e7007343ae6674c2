"""What an iteration costs: time of rollout and update, compiling, memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from fp3o.lab.draw import colour_of, in_words
from fp3o.lab.grid import SHARINGS, Cell, Experiment, Findings, Found, Scale, Shown, cells, rows
from fp3o.lab.published import MEBIBYTES, MINUTES
from fp3o.reports.canvas import PANEL, laid_out, styled
from fp3o.reports.exhibit import Grid, Picture
from fp3o.reports.words import number_text

TASKS = {
    "paper": ("smac/bane_vs_bane", "mamujoco/HalfCheetah-6x1"),
    "gpu": ("smac/bane_vs_bane", "smac/3s5z", "mpe/simple_reference"),
    "laptop": ("mamujoco/HalfCheetah-6x1", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}
LITTLE = 1.25
"""A factor below which something costs little more; the paper's largest is 1.17."""
ALGORITHMS = ("fp3o", "happo", "mappo", "ippo")


def grid(scale: Scale) -> Iterator[Cell]:
    """The paper's batches also on a laptop: a few iterations are enough."""
    small = scale == "smoke"
    names = rows(*(("fp3o", "mappo") if small else ALGORITHMS))
    sharings = SHARINGS[:1] if small else SHARINGS
    batches: Scale = "paper" if scale == "laptop" else scale
    for cell in cells(TASKS[scale], sharings, names, batches):
        yield replace(cell, work="clock")


def whole(item: Found) -> float:
    """Minutes of the paper's number of steps, if nothing but training took time."""
    return item.cell.plan.steps / item.facts["steps"] * seconds(item) / 60


def show(findings: Findings) -> Shown:
    """Bars, and numbers beside the paper's."""
    if not findings:
        return Shown(["Nothing is finished yet."])
    rows = []
    for item in findings:
        facts = item.facts
        memory = facts["device_mib"] or max(facts["rollout_mib"], facts["update_mib"])
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
        "Median of five iterations of one seed. Memory: what the accelerator held at most, or, "
        "where it does not say (a CPU), what the larger of the two programs needs. Minutes of a "
        "seed: the planned steps at this pace, without compiling and evaluations."
    )
    words = "Time of an iteration: rollout (pale) and update (full colour)."
    return Shown(
        said(findings), [Grid("Cost", head, rows, caption, 3)],
        [Picture("time", bars(findings), words)],
    )  # fmt: skip


def seconds(item: Found) -> float:
    """Of an iteration."""
    return item.facts["rollout"] + item.facts["update"]


def said(findings: Findings) -> list[str]:
    """Ratios to MAPPO, here and in the paper."""
    parts = []
    for name in ("FP3O", "HAPPO", "IPPO"):
        ours = ratios(findings, name, seconds)
        theirs = ratios(findings, name, lambda item: MINUTES.get(item.place, float("nan")))
        if ours:
            known = f" (the paper: {min(theirs):.2f} to {max(theirs):.2f})" if theirs else ""
            parts.append(f"{name} {min(ours):.2f} to {max(ours):.2f}{known}")
    if not parts:
        return ["The cells that would answer are not finished."]
    first = f"Time of an iteration as a multiple of MAPPO's, over all cells: {'; '.join(parts)}."
    return [first, *answer(ratios(findings, "FP3O", seconds), ratios(findings, "HAPPO", seconds))]


def answer(fp3o: Sequence[float], happo: Sequence[float]) -> list[str]:
    """The paper's order: MAPPO, a little more for FP3O, more for HAPPO."""
    if not fp3o or not happo:
        return []
    ours, theirs = float(np.median(fp3o)), float(np.median(happo))
    words = {2: "holds here", 1: "holds here in part", 0: "does not hold here"}
    return [
        f"FP3O costs {'little' if ours < LITTLE else 'clearly'} more than MAPPO (a median factor "
        f"of {ours:.2f}) and HAPPO {'more' if theirs > ours else 'less'} than FP3O ({theirs:.2f}): "
        f"what the paper says {words[(ours < LITTLE) + (theirs > ours)]}."
    ]


def ratios(findings: Findings, name: str, cost: Callable[[Found], float]) -> list[float]:
    """Costs of an algorithm as multiples of MAPPO's, where both are known."""
    found = []
    for item in findings:
        base = (item.cell.task, item.cell.sharing, "MAPPO")
        other = next((x for x in findings if x.place == base), None)
        if item.cell.variant == name and other:
            found.append(cost(item) / cost(other))
    return [x for x in found if np.isfinite(x)]


def bars(findings: Findings) -> Figure:
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
