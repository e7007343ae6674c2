"""The paper's first table: Multi-Agent MuJoCo, three sharings, four algorithms."""

from collections.abc import Iterator

from fp3o.experiments.framework import paper_results as published
from fp3o.experiments.framework.grid import SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import Comparison, scores

BODIES = ("Reacher-2x1", "Ant-2x4", "Walker2d-2x3", "Hopper-3x1", "HalfCheetah-6x1",
          "ManyagentSwimmer-8x2")  # fmt: skip

SOME = {"laptop": BODIES[:1] + BODIES[3:4], "smoke": BODIES[:1]}


def grid(scale: Scale) -> Iterator[Cell]:
    """Bodies x sharings x algorithms."""
    tasks = [f"mamujoco/{name}" for name in SOME.get(scale, BODIES)]
    few = scale == "smoke"
    names = ("fp3o", "mappo") if few else ("fp3o", "happo", "mappo", "ippo")
    return cells(tasks, SHARINGS[:1] if few else SHARINGS, rows(*names), scale)


EXPERIMENT = Experiment(
    "mamujoco-table", "Multi-Agent MuJoCo",
    "Which algorithm earns most on robots whose joints are agents, under every sharing?",
    grid, scores(Comparison("FP3O", "MAPPO"), papers=published.MAMUJOCO),
    "FP3O has the highest mean in 15 of 18 cells, and is above MAPPO in 17 of them.",
)  # fmt: skip
