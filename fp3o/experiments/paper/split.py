"""Does it matter how FP3O splits the advantage over the agents?"""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {
    "paper": ("mamujoco/Hopper-3x1", "smac/5m_vs_6m"), "gpu": ("smac/3s5z", "smac/5m_vs_6m"),
    "laptop": ("mpe/simple_speaker_listener", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}  # fmt: skip

VARIANTS = {
    "random split": {"algorithm": "fp3o:split=random"},
    "average split": {"algorithm": "fp3o"},
}


def grid(scale: Scale) -> Iterator[Cell]:
    """Both ways to split, with full sharing."""
    return cells(TASKS[scale], ["full"], VARIANTS, scale)


EXPERIMENT = Experiment(
    "split", "How the advantage is split",
    "Does FP3O do as well with random shares of the advantage as with equal ones?",
    grid, scores(Comparison("random split", "average split", "equal")),
    "There is no notable difference between the two.",
)  # fmt: skip
