"""The same gradient steps, the same head, the same critics: controls that the paper lacks."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import cells, plan
from fp3o.experiments.framework.summary import Comparison, scores

TASKS = {
    "paper": ("mamujoco/HalfCheetah-6x1", "smac/5m_vs_6m"), "gpu": ("smac/3s5z", "smac/5m_vs_6m"),
    "laptop": ("mpe/simple_speaker_listener", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}  # fmt: skip


def grid(scale: Scale) -> Iterator[Cell]:
    """Epochs under every sharing; heads and critics where they differ."""
    for task in TASKS[scale]:
        for sharing in SHARINGS[1:2] if scale == "smoke" else SHARINGS:
            yield from cells([task], [sharing], epochs(task, scale), scale)
            if sharing == "partial":
                yield from cells([task], [sharing], heads(task, scale), scale)
            if sharing == "none":
                yield from cells([task], [sharing], CRITICS, scale)


def epochs(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """FP3O takes twice MAPPO's gradient steps if both have the same epochs."""
    usual = plan(task, "full", scale, "fp3o").learner.epochs
    return {
        "FP3O": {"algorithm": "fp3o"},
        "MAPPO": {"algorithm": "mappo"},
        "MAPPO, twice the epochs": {"algorithm": "mappo", "epochs": 2 * usual},
        "FP3O, half the epochs": {"algorithm": "fp3o", "epochs": max(1, usual // 2)},
    }


def heads(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """The authors' release gives heads of their own the agents' number times the learning rate."""
    agents = plan(task, "partial", scale, "fp3o").task_info.spec().num_agents
    return {
        f"{name.upper()}, head rate {words}": {"algorithm": name, "head_lr_factor": rate}
        for name in ("fp3o", "mappo")
        for words, rate in (("1", 1.0), ("N", float(agents)))
    }


CRITICS = {
    f"{name.upper()}, one critic for all": {"algorithm": name, "critic_sharing": "full"}
    for name in ("fp3o", "mappo")
}
"""Without sharing every agent has a critic of its own; what if only the policies are apart?"""

CONTRASTS = tuple(
    Comparison(ours, theirs, "")
    for ours, theirs in (
        ("FP3O", "MAPPO"),
        ("FP3O", "MAPPO, twice the epochs"),
        ("FP3O, half the epochs", "MAPPO"),
        ("FP3O, head rate 1", "MAPPO, head rate 1"),
        ("FP3O, head rate N", "MAPPO, head rate N"),
        ("FP3O, one critic for all", "MAPPO, one critic for all"),
    )
)

EXPERIMENT = Experiment(
    "fair", "Under equal conditions",
    "How do FP3O and MAPPO compare at the same number of gradient steps, with heads that learn at "
    "the same rate, with one critic?",
    grid,
    scores(
        *CONTRASTS, base="MAPPO",
        notes=[
            "FP3O's two steps have as many epochs each as MAPPO's one: with equal epochs it "
            "takes twice the gradient steps."
        ],
    ),
)  # fmt: skip
