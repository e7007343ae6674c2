"""Controls that are not in the paper: equal gradient steps, equal head rates, one critic."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import (
    FP3O_HALF,
    MAPPO_TWICE,
    algorithm_title,
    algorithm_variants,
    cell_config,
    controls,
    make_cells,
)
from fp3o.experiments.framework.summary import Comparison, score_summary

_TASKS = {
    "paper": ("mamujoco/HalfCheetah-6x1", "smac/5m_vs_6m"),
    "gpu": ("mamujoco/HalfCheetah-6x1", "mpe/simple_reference", "smac/3s5z"),
    "laptop": ("mpe/simple_speaker_listener", "mpe/simple_reference"),
    "smoke": ("mpe/simple_speaker_listener",),
}

_CRITICS = {
    f"{algorithm_title(name)}, one critic for all": {"algorithm": name, "critic_sharing": "full"}
    for name in ("fp3o", "mappo")
}
"""Without sharing, every agent has its own critic; here only the policies are separate."""

_COMPARISONS = tuple(
    Comparison(ours, theirs, "")
    for ours, theirs in (
        ("FP3O", "MAPPO"),
        ("FP3O", MAPPO_TWICE),
        (FP3O_HALF, "MAPPO"),
        ("FP3O, heads at rate 1", "MAPPO, heads at rate 1"),
        ("FP3O, heads at rate N", "MAPPO, heads at rate N"),
        ("FP3O, one critic for all", "MAPPO, one critic for all"),
    )
)

_NOTE = (
    "Each of FP3O's two steps has as many epochs as MAPPO's one: with equal epochs it takes twice "
    "the gradient steps."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    """Epochs under every sharing; heads and critics where they differ."""
    for task in _TASKS[scale]:
        for sharing in ("partial",) if scale == "smoke" else PAPER_SHARINGS:
            variants = algorithm_variants("fp3o", "mappo") | controls(task, scale)
            variants |= _heads(task, scale) if sharing == "partial" else {}
            variants |= _CRITICS if sharing == "none" else {}
            yield from make_cells([task], [sharing], variants, scale)


def _heads(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """The authors' code multiplies the learning rate of separate heads by the number of agents.

    The rate that is not the task's: with its own it is FP3O or MAPPO.
    """
    config = cell_config(task, "partial", scale, "fp3o")
    rates = {"1": 1.0, "N": float(config.task_info.spec(config.variant).num_agents)}
    return {
        f"{algorithm_title(name)}, heads at rate {label}": {
            "algorithm": name,
            "head_lr_factor": rate,
        }
        for name in ("fp3o", "mappo")
        for label, rate in rates.items()
        if rate != config.learner.head_lr_factor
    }


EXPERIMENT = Experiment(
    name="fair",
    title="Equal conditions",
    question="How do FP3O and MAPPO compare with the same number of gradient steps, with equal "
    "learning rates of the heads, with one critic?",
    cells=_cells,
    summarise=score_summary(*_COMPARISONS, base="MAPPO", notes=[_NOTE]),
    order=1,
)
