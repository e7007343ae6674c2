"""The paper's appendix on particle tasks: three sharings, six algorithms."""

from collections.abc import Iterator

from fp3o.experiments.framework import paper_results as published
from fp3o.experiments.framework.grid import SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = ("mpe/simple_reference", "mpe/simple_speaker_listener")

NOTE = (
    "The paper's deviations are as large as those of single episodes, and it does not say over "
    "how many of them its means are taken: its numbers cannot tell these algorithms apart."
)


def grid(scale: Scale) -> Iterator[Cell]:
    """Tasks x sharings x algorithms."""
    few = scale == "smoke"
    names = ("fp3o", "mappo") if few else ("fp3o", "happo", "mappo", "ippo", "a2po", "coppo")
    sharings = SHARINGS[:1] if few else SHARINGS
    return cells(TASKS[1:] if few else TASKS, sharings, rows(*names), scale)


EXPERIMENT = Experiment(
    "mpe-table", "Particle tasks",
    "Which algorithm earns most where agents have to talk, under every sharing?",
    grid, scores(Comparison("FP3O", "MAPPO"), papers=published.MPE, notes=[NOTE]),
    "FP3O has the highest mean in all four cells.",
)  # fmt: skip
