"""FP3O against A2PO with full sharing (appendix of the paper, 3s5z)."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, Experiment, Scale
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import Comparison, score_summary

_TASKS = {
    "paper": ("smac/3s5z",),
    "gpu": ("smac/3s5z",),
    "laptop": ("mpe/simple_speaker_listener", "smac/3m"),
    "smoke": ("mpe/simple_speaker_listener",),
}

_IN_BLOCKS = "A2PO, three blocks"

_BLOCKS = {_IN_BLOCKS: {"algorithm": "a2po:blocks=3"}}
"""A2PO with three blocks of agents, as in the paper; needs at least three agents."""


def _cells(scale: Scale) -> Iterator[Cell]:
    variants = algorithm_variants("fp3o", "a2po")
    variants |= _BLOCKS if scale in ("paper", "gpu") else {}
    make = make_cells if scale == "smoke" else with_controls
    return make(_TASKS[scale], ["full"], variants, scale)


EXPERIMENT = Experiment(
    name="a2po",
    title="FP3O and A2PO",
    question="Is FP3O better than sequential updates with corrected advantages?",
    claim="With full sharing on 3s5z, the median win rate of FP3O is above that of A2PO.",
    cells=_cells,
    summarise=score_summary(
        Comparison("FP3O", "A2PO", tasks=_TASKS["paper"]),
        Comparison("FP3O", _IN_BLOCKS, ""),
        published="median win rate of FP3O above A2PO's in the figure, no numbers",
    ),
    order=5,
)
