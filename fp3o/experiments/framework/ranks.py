"""Claims of the highest score among several algorithms, as opposed to a comparison of two."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fp3o.experiments.framework.exclusions import finished, has_learned
from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.power import cells_text

OURS, MOST_RELATED = "FP3O", {"FP3O", "MAPPO", "HAPPO"}
"""The algorithm of the claims, and those that every cell of a rank must have."""


class Rank(NamedTuple):
    """How the highest score is claimed."""

    name: str = "mean"
    statistic: Callable[[np.ndarray], np.floating] = np.mean
    resolution: float = 1e-9
    """Scores are rounded to multiples of it: equal ones are tied."""
    condition: str = ","
    """What the resolution is, in words; the sentence goes on behind it."""


MEAN = Rank()

MEDIAN_OF_32 = Rank("median", np.median, 100 / 32, ", rounded to the paper's 32 battles,")
"""Battles: the paper's win rates are of 32 battles each."""


def count_highest(paper: PaperScores, rank: Rank = MEAN) -> Callable[[CellResults], Sequence[str]]:
    """Makes the sentence: in how many of the paper's cells is FP3O's score the highest?

    It is by scores alone, as in the paper, without regard to intervals.
    """

    def sentence(results: CellResults) -> Sequence[str]:
        groups = [_algorithms(results, *key, paper) for key in _cells(paper)]
        ranked = [group for group in groups if {x.cell.variant for x in group} >= MOST_RELATED]
        if not ranked:
            names = ", ".join(sorted(MOST_RELATED))
            return [f"The highest {rank.name} is not tested: no cell has all of {names}, finished."]
        highest = sum(_is_highest(group, rank) for group in ranked)
        others = ", ".join(sorted({x.cell.variant for group in ranked for x in group} - {OURS}))
        return [
            f"{OURS} has the highest {rank.name}{rank.condition} alone or tied, in {highest} of "
            f"{cells_text(len(ranked))} with {others} (published: {_published(paper)})."
        ]

    return sentence


def _cells(paper: PaperScores) -> list[tuple[str, str]]:
    return [*dict.fromkeys((task, sharing) for task, sharing, _ in paper)]


def _algorithms(
    results: CellResults, task: str, sharing: str, paper: PaperScores
) -> list[CellResult]:
    """The algorithms of a cell that are in the paper, too, and finished."""
    group = [x for x in results if (x.cell.task, x.cell.sharing) == (task, sharing)]
    group = [x for x in group if x.key in paper and x.seeds.size and finished(x)]
    return group if any(map(has_learned, group)) else []


def _is_highest(group: Sequence[CellResult], rank: Rank) -> bool:
    scores = {
        x.cell.variant: round(float(rank.statistic(x.seeds)) / rank.resolution) for x in group
    }
    return scores[OURS] == max(scores.values())


def _published(paper: PaperScores) -> str:
    """The same count of the paper's scores."""
    count = 0
    for task, sharing in _cells(paper):
        scores = {x: paper[t, s, x].centre for t, s, x in paper if (t, s) == (task, sharing)}
        count += scores[OURS] >= max(scores.values())
    return f"{count} of {len(_cells(paper))}"
