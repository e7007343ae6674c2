"""Table 2 of the paper: SMAC, three sharings, four algorithms.

At the scale `gpu` without IPPO, and with more maps under full sharing: the two others of the paper,
three that are known to be hard, and teams drawn at random.
"""

import itertools
from collections.abc import Iterator

from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Experiment, Scale
from fp3o.experiments.framework.paper_results import PAPER_SMAC
from fp3o.experiments.framework.ranks import MEDIAN_OF_32, count_highest
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import FP3O_AGAINST_MAPPO, score_summary

_MAPS = ("bane_vs_bane", "2c_vs_64zg", "3s5z", "5m_vs_6m", "corridor", "6h_vs_8z")

_FULL_SHARING = (
    "smac/10m_vs_11m", "smac/3s5z_vs_3s6z", "smac/3s_vs_5z", "smac/8m_vs_9m",
    "smacv2/protoss_5_vs_5",
)  # fmt: skip
"""Tasks with one sharing, at the scale `gpu`."""

_LARGE, _LARGE_STEPS = "smac/27m_vs_30m", 5_000_000
"""A task with many agents that is not the paper's: half of the usual steps, which are costly."""

_NOTE = (
    "These battles are SMAC-style and not StarCraft II: compare the order of algorithms with the "
    "paper's, not the win rates."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    if scale == "smoke":
        variants = algorithm_variants("fp3o", "mappo")
        return make_cells(["smac/3s5z"], ["full"], variants, scale)
    tasks = ["smac/3s5z"] if scale == "laptop" else [f"smac/{name}" for name in _MAPS]
    if scale != "gpu":
        variants = algorithm_variants("fp3o", "happo", "mappo", "ippo")
        return with_controls(tasks, PAPER_SHARINGS, variants, scale)
    variants = algorithm_variants("fp3o", "happo", "mappo")
    return itertools.chain(
        with_controls(tasks, PAPER_SHARINGS, variants, scale),
        with_controls(_FULL_SHARING, ["full"], variants, scale),
        with_controls([_LARGE], ["full"], variants, scale, steps=_LARGE_STEPS),
    )


EXPERIMENT = Experiment(
    name="smac-table",
    title="SMAC-style battles",
    question="Which algorithm wins most battles, under every sharing?",
    claim="FP3O has the highest median win rate, alone or tied, in 17 of 18 cells, and is above "
    "MAPPO in 10 of them.",
    cells=_cells,
    summarise=score_summary(
        *FP3O_AGAINST_MAPPO,
        paper=PAPER_SMAC,
        verdict=count_highest(PAPER_SMAC, MEDIAN_OF_32),
        notes=[_NOTE],
    ),
    order=2,
)
