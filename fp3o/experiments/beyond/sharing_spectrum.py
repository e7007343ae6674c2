"""From full sharing to none, layer by layer; by type; and as found by `auto`."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import plan
from fp3o.experiments.framework.summary import scores

TASKS = {
    "paper": ("smac/3s5z", "mamujoco/HalfCheetah-6x1"), "gpu": ("smac/3s5z",),
    "laptop": ("mpe/simple_speaker_listener", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}  # fmt: skip


def grid(scale: Scale) -> Iterator[Cell]:
    """FP3O and MAPPO; the sharing is the variant here."""
    for task in TASKS[scale]:
        for algorithm in ("fp3o",) if scale == "smoke" else ("fp3o", "mappo"):
            usual = plan(task, "full", scale, algorithm)
            layers = len(usual.learner.hidden) + bool(usual.learner.gru_size) + 1
            for name, sharing in spectrum(task, layers).items():
                if scale == "smoke" and name not in ("full", "none", "auto"):
                    continue
                yield Cell(
                    task, name, algorithm.upper(), usual.with_settings({"sharing": sharing})
                )


def spectrum(task: str, layers: int) -> dict[str, object]:
    """Kinds of sharing: with k layers of one's own, counted from the end."""
    agents = plan(task, "full", "paper", "fp3o").task_info.spec().num_agents
    one, each = (0,) * agents, tuple(range(agents))
    steps: dict[str, object] = {"full": "full", "partial": "partial"}
    for own in range(2, layers):
        steps[f"{own} own layers"] = (one,) * (layers - own) + (each,) * own
    return steps | {"none": "none", "by_type": "by_type", "auto": "auto"}


EXPERIMENT = Experiment(
    "sharing-spectrum", "From full sharing to none",
    "Between one network for all and one for each: where do teams learn best?",
    grid, scores(),
)  # fmt: skip
