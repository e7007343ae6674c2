"""Convergence of single seeds on a hard map with partial sharing."""

from collections.abc import Iterator, Sequence

import numpy as np

from fp3o.experiments.framework.grid import Cell, CellResults, Experiment, Scale
from fp3o.experiments.framework.paper_results import PAPER_SMAC
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import FP3O_AGAINST_MAPPO, score_summary

_TASKS = {"paper": "smac/6h_vs_8z", "gpu": "smac/6h_vs_8z", "laptop": "smac/3m"}

_STUCK = 5.0
"""Win rate in percent below which a seed has not learned."""


def _cells(scale: Scale) -> Iterator[Cell]:
    task = _TASKS.get(scale, "mpe/simple_speaker_listener")
    if scale == "smoke":
        return make_cells([task], ["partial"], algorithm_variants("fp3o", "mappo"), scale)
    return with_controls([task], ["partial"], algorithm_variants("fp3o", "mappo", "happo"), scale)


def _count_stuck(results: CellResults) -> Sequence[str]:
    """Number of seeds per algorithm that have not learned, for tasks with wins."""
    counts = [
        f"{np.count_nonzero(item.seeds < _STUCK)} of {item.seeds.size} seeds of {item.cell.variant}"
        for item in results
        if item.measure.is_rate
    ]
    return [f"Below a win rate of {_STUCK:g} %: {', '.join(counts)}."] if counts else []


EXPERIMENT = Experiment(
    name="convergence",
    title="Convergence of single seeds",
    question="Do all seeds learn, or do some get stuck?",
    claim="On 6h_vs_8z with partial sharing, all seeds of FP3O learn to win, while some of MAPPO's "
    "and HAPPO's stay at zero.",
    cells=_cells,
    summarise=score_summary(
        *FP3O_AGAINST_MAPPO,
        paper={key: score for key, score in PAPER_SMAC.items() if key[0] == "smac/6h_vs_8z"},
        verdict=_count_stuck,
    ),
    order=6,
)
