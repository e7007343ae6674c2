"""The contribution of the dependent step (ablation of the paper)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import ABLATION_TASKS, cell_config, make_cells
from fp3o.experiments.framework.summary import Comparison, score_summary

_BOTH, _ALONE = "both steps", "independent step alone"
_TWICE = "independent step, twice the epochs"


def _cells(scale: Scale) -> Iterator[Cell]:
    for task in ABLATION_TASKS[scale]:
        for sharing in PAPER_SHARINGS[:1] if scale == "smoke" else PAPER_SHARINGS:
            yield from make_cells([task], [sharing], _variants(task, scale), scale)


def _variants(task: str, scale: Scale) -> dict[str, dict[str, object]]:
    """With and without the step; the third, with the epochs of both, is not in the paper."""
    alone = "fp3o:steps=independent"
    epochs = cell_config(task, "full", scale, alone).learner.epochs
    return {
        _BOTH: {"algorithm": "fp3o"},
        _ALONE: {"algorithm": alone},
        _TWICE: {"algorithm": alone, "epochs": 2 * epochs},
    }


EXPERIMENT = Experiment(
    name="dependent-step",
    title="Contribution of the dependent step",
    question="Does FP3O need its second step, or only the number of gradient steps it takes?",
    claim="Both steps together are better than the independent step alone, on all tasks.",
    cells=_cells,
    summarise=score_summary(Comparison(_BOTH, _ALONE), Comparison(_BOTH, _TWICE, "")),
    order=8,
)
