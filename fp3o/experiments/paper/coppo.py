"""FP3O against CoPPO with full sharing (the paper's appendix)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {
    "paper": ("smac/bane_vs_bane", "smac/2c_vs_64zg", "smac/10m_vs_11m", "smac/3s5z_vs_3s6z"),
    "gpu": ("smac/3s5z", "smac/5m_vs_6m"),
    "laptop": ("mpe/simple_speaker_listener", "smac/3m"),
    "smoke": ("mpe/simple_speaker_listener",),
}


def grid(scale: Scale) -> Iterator[Cell]:
    """Both algorithms on every task."""
    return cells(TASKS[scale], ["full"], rows("fp3o", "coppo"), scale)


EXPERIMENT = Experiment(
    "coppo", "FP3O and CoPPO",
    "Is FP3O better, and steadier, than updating the joint policy directly?",
    grid, scores(Comparison("FP3O", "CoPPO")),
    "CoPPO trains less steadily than FP3O, even where tasks are easy, and wins less.",
)  # fmt: skip
