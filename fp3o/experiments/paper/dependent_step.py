"""The contribution of the dependent step (ablation of the paper)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import (
    ABLATIONS,
    PAPER_ABLATION_TASKS,
    cell_config,
    make_cells,
)
from fp3o.experiments.framework.summary import Comparison, score_summary

_BOTH, _ALONE = "both steps", "independent step alone"
_TWICE = "independent step, twice the epochs"

_TASKS = {
    **ABLATIONS,
    "gpu": (
        ("mamujoco/HalfCheetah-6x1", ("full", "none")),
        ("mpe/simple_reference", ("full", "none")),
        ("smac/5m_vs_6m", ("full", "none")),
        ("smac/3s5z", ("full", "none")),
    ),
}

_NOTE = (
    "FP3O without its dependent step is MAPPO, to the last bit (a test trains both): the ablation "
    "and the comparison at equal gradient steps are the same runs."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    for task, sharings in _TASKS[scale]:
        yield from make_cells([task], sharings, _variants(task, scale), scale)


def _variants(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """With and without the step; the third, with the epochs of both, is not in the paper."""
    epochs = cell_config(task, "full", scale, "mappo").learner.epochs
    return {
        _BOTH: {"algorithm": "fp3o"},
        _ALONE: {"algorithm": "mappo"},
        _TWICE: {"algorithm": "mappo", "epochs": 2 * epochs},
    }


EXPERIMENT = Experiment(
    name="dependent-step",
    title="Contribution of the dependent step",
    question="Does FP3O need its second step, or only the number of gradient steps it takes?",
    claim="Both steps together are better than the independent step alone, on all tasks.",
    cells=_cells,
    summarise=score_summary(
        Comparison(_BOTH, _ALONE, tasks=PAPER_ABLATION_TASKS),
        Comparison(_BOTH, _TWICE, ""),
        published="both steps higher on all tasks of the figure, no numbers",
        notes=[_NOTE],
    ),
    order=8,
)
