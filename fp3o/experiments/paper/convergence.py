"""Convergence of single seeds on a hard map with partial sharing."""

from collections.abc import Iterator, Sequence

from fp3o.experiments.framework.grid import Cell, CellResults, Experiment, Scale
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import FP3O_AGAINST_MAPPO, score_summary

_TASKS = {"paper": "smac/6h_vs_8z", "gpu": "smac/6h_vs_8z", "laptop": "smac/3m"}

_STUCK = 5.0
"""Win rate in percent below which a seed has not learned."""


def _cells(scale: Scale) -> Iterator[Cell]:
    task = _TASKS.get(scale, "mpe/simple_speaker_listener")
    if scale == "smoke":
        return make_cells([task], ["partial"], algorithm_variants("fp3o", "mappo"), scale)
    return with_controls([task], ["partial"], algorithm_variants("fp3o", "mappo", "happo"), scale)


def _count_stuck(results: CellResults) -> Sequence[str]:
    """Number of seeds per algorithm that have not learned, for tasks with wins; the verdict."""
    battles = [item for item in results if item.measure.is_rate and item.seeds.size]
    if not battles:
        return []
    stuck = {item.cell.variant: int((item.seeds < _STUCK).sum()) for item in battles}
    counts = [
        f"{stuck[x.cell.variant]} of {x.seeds.size} seeds of {x.cell.variant}" for x in battles
    ]
    lowest = min(battles, key=lambda item: item.seeds.min())
    lines = [
        f"Below a win rate of {_STUCK:g} %: {', '.join(counts)}. The lowest seed is one of "
        f"{lowest.cell.variant}, at {lowest.seeds.min():.1f} %."
    ]
    if {"FP3O", "MAPPO", "HAPPO"} <= {*stuck}:
        lines.append(_claim_verdict(stuck["FP3O"], stuck["MAPPO"], stuck["HAPPO"]))
    return lines


def _claim_verdict(ours: int, *others: int) -> str:
    """What the numbers of seeds that have not learned say of the paper's claim."""
    if ours:
        return "The paper's claim is refuted here: seeds of FP3O get stuck."
    if not any(others):
        return (
            "All seeds of FP3O learn, as the paper claims, and so do those of MAPPO and HAPPO: "
            "their failures are not reproduced."
        )
    return f"The paper's claim holds {'' if all(others) else 'in part '}here."


EXPERIMENT = Experiment(
    name="convergence",
    title="Convergence of single seeds",
    question="Do all seeds learn, or do some get stuck?",
    claim="On 6h_vs_8z with partial sharing, all seeds of FP3O learn to win, while some of MAPPO's "
    "and HAPPO's stay at zero.",
    cells=_cells,
    summarise=score_summary(
        FP3O_AGAINST_MAPPO[0]._replace(expected=""),
        *FP3O_AGAINST_MAPPO[1:],
        published="all seeds of FP3O learn, some of MAPPO and HAPPO do not (figure, no numbers)",
        verdict=_count_stuck,
    ),
    order=6,
)
