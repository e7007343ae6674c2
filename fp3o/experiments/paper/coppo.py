"""FP3O against CoPPO with full sharing (appendix of the paper)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import (
    FP3O_HALF,
    algorithm_variants,
    make_cells,
    with_controls,
)
from fp3o.experiments.framework.summary import Comparison, score_summary

_TASKS = {
    "paper": ("smac/bane_vs_bane", "smac/2c_vs_64zg", "smac/10m_vs_11m", "smac/3s5z_vs_3s6z"),
    "gpu": ("smac/3s5z", "smac/10m_vs_11m"),
    "laptop": ("mpe/simple_speaker_listener", "smac/3m"),
    "smoke": ("mpe/simple_speaker_listener",),
}


def _cells(scale: Scale) -> Iterator[Cell]:
    make = make_cells if scale == "smoke" else with_controls
    return make(_TASKS[scale], ["full"], algorithm_variants("fp3o", "coppo"), scale)


EXPERIMENT = Experiment(
    name="coppo",
    title="FP3O and CoPPO",
    question="Is FP3O better and more stable than updating the joint policy directly?",
    claim="CoPPO trains less stably than FP3O, even on easy tasks, and wins less.",
    cells=_cells,
    summarise=score_summary(
        Comparison("FP3O", "CoPPO", tasks=_TASKS["paper"]),
        Comparison(FP3O_HALF, "CoPPO", ""),
        published="win rates of FP3O above CoPPO's in the figure, no numbers",
    ),
    order=4,
)
