"""All tasks together, with the statistics of the field: robust means, profiles, who beats whom."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from fp3o.lab.draw import colour_of
from fp3o.lab.grid import Findings, Found
from fp3o.reports.aggregates import improvement_over_tasks, performance_profile, summary
from fp3o.reports.canvas import PANEL, laid_out, styled
from fp3o.reports.exhibit import Grid, Picture
from fp3o.reports.style import LINES
from fp3o.reports.words import ends_text

CAPTION = (
    "Scores scaled so that 1 is winning every battle, or the planner, and 0 is losing all, or "
    "random actions; a task under one sharing counts as one. In brackets: stratified bootstrap "
    "intervals (95 %; with five seeds they hold the truth a little less often). Optimality gap: "
    "how much is missing to 1, less is better. Probability of improvement: that a seed beats one "
    "of {base}, mean over tasks."
)
PROFILE = (
    "Performance profiles: the share of seeds, over all tasks and sharings, with a score above "
    "each threshold; bands are bootstrap intervals. Higher is better."
)

Scores = Mapping[str, list[np.ndarray]]


def overall(findings: Findings, base: str) -> tuple[list[Grid], list[Picture]]:
    """A table and performance profiles, where scores of different tasks can be compared."""
    scores = common(findings)
    if len(scores) < 2 or len(next(iter(scores.values()))) < 2:
        return [], []
    rows = []
    for name, tasks in scores.items():
        found = summary(tasks)
        row = [name, *map(ends_text, (found.iqm, found.median, found.mean, found.optimality_gap))]
        if base in scores:
            better = "–" if name == base else ends_text(improvement_over_tasks(tasks, scores[base]))
            row.append(better)
        rows.append(row)
    head = ["variant", "IQM", "median", "mean", "optimality gap"]
    head += ["probability of improvement"] * (base in scores)
    grid = Grid("All tasks together", head, rows, CAPTION.format(base=base or "the base"))
    return [grid], [Picture("profiles", profiles(scores), PROFILE)]


def common(findings: Findings) -> Scores:
    """Variant -> scaled seeds of every place, of the variants and places that are complete."""
    places = [*dict.fromkeys((item.cell.task, item.cell.sharing) for item in findings)]
    table: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for item in findings:
        value = scaled(item)
        if value is None or item.cell.more:
            return {}
        table.setdefault(item.cell.variant, {})[item.cell.task, item.cell.sharing] = value
    return {
        name: [own[place] for place in places]
        for name, own in table.items()
        if all(place in own for place in places)
    }


def scaled(item: Found) -> np.ndarray | None:
    """A cell's seeds between 0 and 1; None where nobody knows what 1 is."""
    if item.measure.share:
        return item.seeds / item.measure.ends[1]
    known = item.run.results.get("references", {}) if item.run else {}
    if not {"random", "planner"} <= known.keys():
        return None
    low, high = (item.measure.of(known[name]) for name in ("random", "planner"))
    return (item.seeds - low) / (high - low)


def profiles(scores: Scores) -> Figure:
    """A line a variant."""
    low = min(float(np.min(task)) for tasks in scores.values() for task in tasks)
    thresholds = np.linspace(min(0.0, low), 1.05, 80)
    with styled():
        figure = Figure(figsize=PANEL, layout="constrained")
        axis = figure.subplots()
        for place, (name, tasks) in enumerate(scores.items()):
            band = performance_profile(tasks, thresholds)
            colour = colour_of(name, [*scores])
            dashes = LINES[_before(place, [*scores]) % len(LINES)]
            axis.plot(band.at, band.centre, color=colour, ls=dashes, label=name)
            axis.fill_between(band.at, band.low, band.high, color=colour, alpha=0.12, lw=0)
        axis.set_xlabel("score above")
        axis.set_ylabel("share of seeds")
        axis.set_ylim(-0.03, 1.03)
        figure.legend(loc="outside lower center", ncols=min(4, len(scores)), fontsize=8)
        return laid_out(figure)


def _before(place: int, names: Sequence[str]) -> int:
    """How many variants before this one have its colour."""
    colours = [colour_of(name, names) for name in names]
    return colours[:place].count(colours[place])
