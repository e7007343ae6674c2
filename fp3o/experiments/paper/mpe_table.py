"""Table of the paper's appendix: particle tasks, three sharings, six algorithms."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.paper_results import PAPER_MPE
from fp3o.experiments.framework.ranks import count_highest
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import FP3O_AGAINST_MAPPO, score_summary

_TASKS = ("mpe/simple_reference", "mpe/simple_speaker_listener")

_NOTE = (
    "The paper's deviations are as large as those of single episodes, and it does not state over "
    "how many episodes its means are taken: its numbers cannot rank these algorithms."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    if scale == "smoke":
        return make_cells(_TASKS[1:], ["full"], algorithm_variants("fp3o", "mappo"), scale)
    variants = algorithm_variants("fp3o", "happo", "mappo", "ippo", "a2po", "coppo")
    return with_controls(_TASKS, PAPER_SHARINGS, variants, scale)


EXPERIMENT = Experiment(
    name="mpe-table",
    title="Particle tasks",
    question="Which algorithm has the highest return where agents must communicate, under every "
    "sharing?",
    claim="FP3O has the highest mean in all four cells.",
    cells=_cells,
    summarise=score_summary(
        *FP3O_AGAINST_MAPPO, paper=PAPER_MPE, verdict=count_highest(PAPER_MPE), notes=[_NOTE]
    ),
    order=3,
)
