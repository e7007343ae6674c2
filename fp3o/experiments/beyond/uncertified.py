"""When FP3O's condition fails: keep the intermediate policies, or go back?"""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {
    "paper": ("mamujoco/Hopper-3x1", "smac/5m_vs_6m"), "gpu": ("smac/3s5z", "smac/5m_vs_6m"),
    "laptop": ("mpe/simple_speaker_listener", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}  # fmt: skip

VARIANTS = {
    "keep": {"algorithm": "fp3o"},
    "revert": {"algorithm": "fp3o:on_failed_condition=revert"},
}


def grid(scale: Scale) -> Iterator[Cell]:
    """Both ways, under every sharing."""
    return cells(TASKS[scale], SHARINGS[:1] if scale == "smoke" else SHARINGS, VARIANTS, scale)


EXPERIMENT = Experiment(
    "on_failed_condition", "Policies without a certificate",
    "The condition certifies the intermediate policies; where it fails, is it better to keep them, "
    "as the paper does, or to go back to the policies before?",
    grid, scores(Comparison("keep", "revert", "")),
)  # fmt: skip
