"""Every seed by itself on a hard map with partial sharing: how many get stuck?"""

from collections.abc import Iterator, Sequence

import numpy as np

from fp3o.experiments.framework.grid import Cell, CellResults, Experiment, Scale
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {"paper": "smac/6h_vs_8z", "gpu": "smac/6h_vs_8z", "laptop": "smac/3m"}

STUCK = 5.0
"""Percent of battles won, below which a seed counts as stuck."""


def grid(scale: Scale) -> Iterator[Cell]:
    """Three algorithms."""
    task = TASKS.get(scale, "mpe/simple_speaker_listener")
    names = ("fp3o", "mappo", "happo")[: 2 if scale == "smoke" else 3]
    return cells([task], ["partial"], rows(*names), scale)


def stuck(findings: CellResults) -> Sequence[str]:
    """How many seeds of each algorithm have learned nothing, where there are wins to count."""
    told = [
        f"{np.count_nonzero(item.seeds < STUCK)} of {item.seeds.size} seeds of {item.cell.variant}"
        for item in findings
        if item.measure.share
    ]
    return [f"Stuck below {STUCK:g} % of wins: {', '.join(told)}."] if told else []


EXPERIMENT = Experiment(
    "convergence", "Seed by seed",
    "Do all seeds learn, or do some get stuck?",
    grid, scores(Comparison("FP3O", "MAPPO"), said=stuck),
    "On 6h_vs_8z with partial sharing all of FP3O's seeds learn to win, while some of MAPPO's and "
    "HAPPO's stay at zero.",
)  # fmt: skip
