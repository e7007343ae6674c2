"""What the dependent step adds to the independent one (the paper's ablation)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {
    "paper": ("mamujoco/Hopper-3x1", "smac/5m_vs_6m"), "gpu": ("smac/3s5z", "smac/5m_vs_6m"),
    "laptop": ("mpe/simple_speaker_listener", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}  # fmt: skip

BOTH, ALONE, TWICE = "both steps", "independent step alone", "independent step, twice the epochs"


def grid(scale: Scale) -> Iterator[Cell]:
    """With and without it; and without it but with as many epochs as both steps have."""
    for task in TASKS[scale]:
        for sharing in SHARINGS[:1] if scale == "smoke" else SHARINGS:
            yield from cells([task], [sharing], variants(task, scale), scale)


def variants(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """The third one is a control that the paper lacks."""
    alone = "fp3o:steps=independent"
    (once,) = cells([task], ["full"], {ALONE: {"algorithm": alone}}, scale)
    epochs = once.config.learner.epochs
    return {
        BOTH: {"algorithm": "fp3o"},
        ALONE: {"algorithm": alone},
        TWICE: {"algorithm": alone, "epochs": 2 * epochs},
    }


EXPERIMENT = Experiment(
    "dependent-step", "What the dependent step adds",
    "Does FP3O need its second step, or only the gradient steps that it takes?",
    grid, scores(Comparison(BOTH, ALONE), Comparison(BOTH, TWICE, "")),
    "Both steps together do better than the independent step alone, on all tasks.",
)  # fmt: skip
