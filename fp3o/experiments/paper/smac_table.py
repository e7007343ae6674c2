"""The paper's second table: battles, three sharings, four algorithms."""

from collections.abc import Iterator

from fp3o.experiments.framework import paper_results as published
from fp3o.experiments.framework.grid import SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import Comparison, scores

MAPS = ("bane_vs_bane", "2c_vs_64zg", "3s5z", "5m_vs_6m", "corridor", "6h_vs_8z")

SOME = {"gpu": ("3s5z", "5m_vs_6m", "6h_vs_8z"), "laptop": ("3s5z",), "smoke": ("3s5z",)}

NOTE = (
    "These battles are SMAC-style and not StarCraft II: compare the order of algorithms with the "
    "paper's, not the win rates."
)


def grid(scale: Scale) -> Iterator[Cell]:
    """Maps x sharings x algorithms."""
    tasks = [f"smac/{name}" for name in SOME.get(scale, MAPS)]
    few = scale == "smoke"
    names = ("fp3o", "mappo") if few else ("fp3o", "happo", "mappo", "ippo")
    return cells(tasks, SHARINGS[:1] if few else SHARINGS, rows(*names), scale)


EXPERIMENT = Experiment(
    "smac-table", "SMAC-style battles",
    "Which algorithm wins most battles, under every sharing?",
    grid, scores(Comparison("FP3O", "MAPPO"), papers=published.SMAC, notes=[NOTE]),
    "FP3O has the highest median win rate, alone or with others, in 17 of 18 cells, and is above "
    "MAPPO in 10 of them.",
)  # fmt: skip
