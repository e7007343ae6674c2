"""Table 2 of the paper: SMAC, three sharings, four algorithms."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.paper_results import PAPER_SMAC
from fp3o.experiments.framework.scales import algorithm_variants, make_cells
from fp3o.experiments.framework.summary import Comparison, score_summary

_MAPS = ("bane_vs_bane", "2c_vs_64zg", "3s5z", "5m_vs_6m", "corridor", "6h_vs_8z")

_FEWER = {"gpu": ("3s5z", "5m_vs_6m", "6h_vs_8z"), "laptop": ("3s5z",), "smoke": ("3s5z",)}

_NOTE = (
    "These battles are SMAC-style and not StarCraft II: compare the order of algorithms with the "
    "paper's, not the win rates."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    tasks = [f"smac/{name}" for name in _FEWER.get(scale, _MAPS)]
    if scale == "smoke":
        return make_cells(tasks, ["full"], algorithm_variants("fp3o", "mappo"), scale)
    variants = algorithm_variants("fp3o", "happo", "mappo", "ippo")
    return make_cells(tasks, PAPER_SHARINGS, variants, scale)


EXPERIMENT = Experiment(
    name="smac-table",
    title="SMAC-style battles",
    question="Which algorithm wins most battles, under every sharing?",
    claim="FP3O has the highest median win rate, alone or tied, in 17 of 18 cells, and is above "
    "MAPPO in 10 of them.",
    cells=_cells,
    summarise=score_summary(Comparison("FP3O", "MAPPO"), paper=PAPER_SMAC, notes=[_NOTE]),
    order=2,
)
