"""Ablation: intermediate policies instead of those of the current minibatch."""

from collections.abc import Iterator, Sequence

from fp3o.experiments.framework.grid import Cell, CellResult, CellResults, Experiment, Scale
from fp3o.experiments.framework.paper_results import APPROXIMATE, EXACT, PAPER_APPROXIMATION
from fp3o.experiments.framework.scales import make_cells
from fp3o.experiments.framework.score_table import same_cell, training_minutes
from fp3o.experiments.framework.summary import Comparison, score_summary

_CELLS = {
    "paper": (
        ("mamujoco/Reacher-2x1", "none"),
        ("mamujoco/Hopper-3x1", "none"),
        ("smac/3s5z", "full"),
        ("smac/5m_vs_6m", "full"),
    ),
    "gpu": (
        ("mpe/simple_reference", "full"),
        ("mpe/simple_reference", "none"),
        ("smac/3s5z", "full"),
    ),
    "laptop": (
        ("mpe/simple_speaker_listener", "none"),
        ("mpe/simple_speaker_listener", "full"),
        ("mpe/simple_reference", "none"),
        ("mpe/simple_reference", "full"),
    ),
    "smoke": (("mpe/simple_speaker_listener", "none"),),
}

_NOTE = (
    "The paper labels its last row 6h_vs_8z, but FP3O's number there is that of 5m_vs_6m in its "
    "main table: we take it for 5m_vs_6m. Training times are those of short runs."
)

_VARIANTS = {EXACT: {"algorithm": "fp3o:refresh_ratios=true"}, APPROXIMATE: {"algorithm": "fp3o"}}
"""Exact: the others' policies and the constraint are evaluated at every minibatch."""


def _cells(scale: Scale) -> Iterator[Cell]:
    for task, sharing in _CELLS[scale]:
        yield from make_cells([task], [sharing], _VARIANTS, scale)


def time_ratios(results: CellResults) -> Sequence[str]:
    """Ratio of training times of both variants, where both have equally many seeds and steps."""
    ratios = []
    for item in results:
        other = same_cell(item, results, EXACT)
        if item.cell.variant == APPROXIMATE and other and _comparable(item, other):
            ratios.append(training_minutes(item) / training_minutes(other))
    if not ratios:
        return []
    ends = dict.fromkeys(f"{end(ratios):.2f}" for end in (min, max))
    return [
        f"Its training takes {' to '.join(ends)} times as long as clipping alone here, on machines "
        "that were shared with other runs; the paper states about 0.8 times."
    ]


def _comparable(item: CellResult, other: CellResult) -> bool:
    """Whether the training times of two cells are those of as much work."""
    extents = [(x.seeds.size, x.run.step if x.run else 0) for x in (item, other)]
    return extents[0] == extents[1] and training_minutes(other) > 0


EXPERIMENT = Experiment(
    name="approximation",
    title="Intermediate policies",
    question="Does FP3O lose anything by using the others' policies as they were after its first "
    "step?",
    claim="The approximation is as good, and takes about 20 % less time.",
    cells=_cells,
    summarise=score_summary(
        Comparison(APPROXIMATE, EXACT, "equal", tuple(task for task, _ in _CELLS["paper"])),
        paper=PAPER_APPROXIMATION,
        verdict=time_ratios,
        notes=[_NOTE],
    ),
    order=9,
)
