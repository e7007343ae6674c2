"""When FP3O's condition fails: keep the intermediate policies, or revert?"""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.scales import ABLATION_TASKS, make_cells
from fp3o.experiments.framework.summary import Comparison, score_summary

_VARIANTS = {
    "keep": {"algorithm": "fp3o"},
    "revert": {"algorithm": "fp3o:on_failed_condition=revert"},
}


def _cells(scale: Scale) -> Iterator[Cell]:
    sharings = PAPER_SHARINGS[:1] if scale == "smoke" else PAPER_SHARINGS
    return make_cells(ABLATION_TASKS[scale], sharings, _VARIANTS, scale)


EXPERIMENT = Experiment(
    name="failed-condition",
    title="Policies whose condition fails",
    question="Where the condition fails, is it better to keep the intermediate policies, as the "
    "paper does, or to revert to the policies before them?",
    cells=_cells,
    summarise=score_summary(Comparison("keep", "revert", "")),
    order=2,
)
