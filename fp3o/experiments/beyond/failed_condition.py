"""When FP3O's condition fails: keep the intermediate policies, or revert?"""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import (
    PAPER_SHARINGS,
    Cell,
    CellResults,
    Experiment,
    Scale,
)
from fp3o.experiments.framework.scales import make_cells
from fp3o.experiments.framework.score_table import failed_condition
from fp3o.experiments.framework.summary import Comparison, score_summary
from fp3o.reports.phrasing import sharing_title

_VARIANTS = {
    "keep": {"algorithm": "fp3o"},
    "revert": {"algorithm": "fp3o:on_failed_condition=revert"},
}


_STEPS = {"paper": 1_000_000, "gpu": 500_000, "laptop": 100_000}

_TASK = "mamujoco/Reacher-2x1"

_FEW_SAMPLES = {"num_envs": 2, "rollout": 50, "minibatches": 1}
"""With a hundred samples per iteration the condition fails in some of them; with the usual
batches of the other experiments it hardly ever does."""


def _cells(scale: Scale) -> Iterator[Cell]:
    if scale == "smoke":
        return make_cells([_TASK], ["full"], _VARIANTS, scale)
    settings = {**_FEW_SAMPLES, "steps": _STEPS[scale], "eval_every": 100, "eval_episodes": 8}
    variants = {title: {**variant, **settings} for title, variant in _VARIANTS.items()}
    return make_cells([_TASK], PAPER_SHARINGS, variants, scale)


def _how_often(results: CellResults) -> list[str]:
    """In how many iterations the condition failed, all seeds together."""
    counts = []
    for item in results:
        failed, total = failed_condition(item)
        sharing = sharing_title(item.cell.sharing)
        counts.append(f"{failed:,} of {total:,} ({item.cell.variant}, {sharing})")
    return [f"Iterations in which the condition failed: {'; '.join(counts)}."]


EXPERIMENT = Experiment(
    name="failed-condition",
    title="Policies whose condition fails",
    question="Where the condition fails, is it better to keep the intermediate policies, as the "
    "paper does, or to revert to the policies before them?",
    cells=_cells,
    summarise=score_summary(Comparison("keep", "revert", ""), verdict=_how_often),
    order=2,
)
