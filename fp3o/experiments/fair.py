"""The same gradient steps, the same head, the same critics: controls that the paper lacks."""

from collections.abc import Iterator, Sequence

from fp3o.lab.grid import SHARINGS, Cell, Experiment, Findings, Scale, cells, plan
from fp3o.lab.show import Contrast, scores, tally

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
    usual = plan(task, "full", scale, "fp3o").config.epochs
    return {
        "FP3O": {"algorithm": "fp3o"},
        "MAPPO": {"algorithm": "mappo"},
        "MAPPO, twice the epochs": {"algorithm": "mappo", "epochs": 2 * usual},
        "FP3O, half the epochs": {"algorithm": "fp3o", "epochs": max(1, usual // 2)},
    }


def heads(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """The authors' release gives heads of their own the agents' number times the learning rate."""
    agents = plan(task, "partial", scale, "fp3o").description.spec().num_agents
    return {
        f"{name.upper()}, head rate {words}": {"algorithm": name, "head_rate": rate}
        for name in ("fp3o", "mappo")
        for words, rate in (("1", 1.0), ("N", float(agents)))
    }


CRITICS = {
    f"{name.upper()}, one critic for all": {"algorithm": name, "critic_sharing": "full"}
    for name in ("fp3o", "mappo")
}
"""Without sharing every agent has a critic of its own; what if only the policies are apart?"""


def equal_epochs(findings: Findings) -> Sequence[str]:
    """What is seen if only epochs are equal, as in the paper."""
    found = tally(findings, "FP3O", "MAPPO")
    return [
        f"At equal epochs, as in the paper, it is better than MAPPO in {found.better} of "
        f"{sum(found)}, worse in {found.worse}."
    ]


EXPERIMENT = Experiment(
    "fair", "Under equal conditions",
    "How much of FP3O's advantage is left if both take the same number of gradient steps?",
    grid,
    scores(
        Contrast("FP3O", "MAPPO, twice the epochs", ""), base="MAPPO", said=equal_epochs,
        notes=[
            "FP3O's two steps have as many epochs each as MAPPO's one: with equal epochs it "
            "takes twice the gradient steps."
        ],
    ),
)  # fmt: skip
