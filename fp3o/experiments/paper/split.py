"""How FP3O splits the advantage over the agents (ablation of the paper)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import ABLATIONS, PAPER_ABLATION_TASKS, make_cells
from fp3o.experiments.framework.summary import Comparison, score_summary

_VARIANTS = {
    "random split": {"algorithm": "fp3o:split=random"},
    "average split": {"algorithm": "fp3o"},
}


def _cells(scale: Scale) -> Iterator[Cell]:
    for task, sharings in ABLATIONS[scale]:
        yield from make_cells([task], sharings, _VARIANTS, scale)


EXPERIMENT = Experiment(
    name="split",
    title="Split of the advantage",
    question="Is FP3O as good with random shares of the advantage as with equal ones?",
    claim="There is no notable difference between the two.",
    cells=_cells,
    summarise=score_summary(
        Comparison("random split", "average split", "equal", PAPER_ABLATION_TASKS),
        published="no notable difference in the figure, no numbers",
    ),
    order=7,
)
