"""Table 1 of the paper: Multi-Agent MuJoCo, three sharings, four algorithms."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.paper_results import PAPER_MAMUJOCO
from fp3o.experiments.framework.ranks import count_highest
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import FP3O_AGAINST_MAPPO, score_summary

_ROBOTS = (
    "Reacher-2x1", "Ant-2x4", "Walker2d-2x3", "Hopper-3x1", "HalfCheetah-6x1",
    "ManyagentSwimmer-8x2",
)  # fmt: skip

_FEWER = {"laptop": ("Reacher-2x1", "Hopper-3x1"), "smoke": ("Reacher-2x1",)}


def _cells(scale: Scale) -> Iterator[Cell]:
    tasks = [f"mamujoco/{name}" for name in _FEWER.get(scale, _ROBOTS)]
    if scale == "smoke":
        return make_cells(tasks, ["full"], algorithm_variants("fp3o", "mappo"), scale)
    variants = algorithm_variants("fp3o", "happo", "mappo", "ippo")
    return with_controls(tasks, PAPER_SHARINGS, variants, scale)


EXPERIMENT = Experiment(
    name="mamujoco-table",
    title="Multi-Agent MuJoCo",
    question="Which algorithm has the highest return on robots whose joints are agents, under "
    "every sharing?",
    claim="FP3O has the highest mean in 15 of 18 cells, and is above MAPPO in 17 of them.",
    cells=_cells,
    summarise=score_summary(
        *FP3O_AGAINST_MAPPO, paper=PAPER_MAMUJOCO, verdict=count_highest(PAPER_MAMUJOCO)
    ),
    order=1,
)
