"""FP3O against A2PO with full sharing (the paper's appendix, 3s5z)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {
    "paper": ("smac/3s5z",), "gpu": ("smac/3s5z",),
    "laptop": ("mpe/simple_speaker_listener", "smac/3m"),
    "smoke": ("mpe/simple_speaker_listener",),
}  # fmt: skip

BLOCKS = "A2PO, three blocks"


def grid(scale: Scale) -> Iterator[Cell]:
    """Both algorithms on every task."""
    return cells(TASKS[scale], ["full"], variants(scale), scale)


def variants(scale: Scale) -> dict[str, dict[str, str]]:
    """A2PO also in three blocks of agents, as the paper has it, where there are as many agents."""
    blocks = {} if scale in ("laptop", "smoke") else {BLOCKS: {"algorithm": "a2po:blocks=3"}}
    return {**rows("fp3o", "a2po"), **blocks}


EXPERIMENT = Experiment(
    "a2po", "FP3O and A2PO",
    "Is FP3O better than agents that take turns with corrected advantages?",
    grid, scores(Comparison("FP3O", "A2PO")),
    "With full sharing on 3s5z FP3O's median win rate is above A2PO's.",
)  # fmt: skip
