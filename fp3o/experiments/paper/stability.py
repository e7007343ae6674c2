"""How much repetitions of the same training differ from one another."""

from collections.abc import Iterator, Sequence

import numpy as np

from fp3o.experiments.framework.grid import (
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
)
from fp3o.experiments.framework.plots import curves, lines_of
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.score_table import score_table
from fp3o.experiments.framework.summary import caveats
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import ends_text, number_text
from fp3o.reports.stats.intervals import Interval, bootstrap

TASKS = {"paper": "smac/3s5z", "gpu": "smac/3s5z", "laptop": "mpe/simple_reference"}

DOUBLE = {"FP3O, double clip": {"algorithm": "fp3o:inner_clip=0.5"}}


def grid(scale: Scale) -> Iterator[Cell]:
    """Full sharing."""
    task = TASKS.get(scale, "mpe/simple_speaker_listener")
    names = ("fp3o",) if scale == "smoke" else ("happo", "a2po", "mappo", "fp3o")
    return cells([task], ["full"], {**rows(*names), **DOUBLE}, scale)


def spread(item: CellResult) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the standard deviation over seeds at each evaluation."""
    assert item.run is not None
    step, value = item.run.series(f"eval_{item.measure.name}")
    return step, item.measure.scale * value.std(0, ddof=1)


def show(findings: CellResults) -> Summary:
    """Deviation over training, and its mean."""
    if not findings:
        return Summary(["Nothing is finished yet."])
    lines = {item.cell.variant: spread(item) for item in findings}
    means = {name: float(np.mean(value)) for name, (_, value) in lines.items()}
    order = sorted(means, key=means.__getitem__)
    unit = findings[0].measure.unit
    told = ", ".join(f"{name} {number_text(means[name])}{unit}" for name in order)
    verdict = [f"Mean standard deviation over seeds along training, steadiest first: {told}."]
    verdict += answer(findings)
    rows = [
        [name, number_text(means[name]), number_text(float(lines[name][1][-1]))] for name in order
    ]
    head = ["variant", "mean deviation in training", "deviation at the end"]
    caption = f"Standard deviation over {findings[0].seeds.size} seeds of what an evaluation shows."
    task = findings[0].cell.task
    figure = lines_of({task: lines}, "environment steps", "deviation over seeds")
    picture = CaptionedFigure("deviation", figure, "Standard deviation over seeds along training.")
    tables = [ResultTable("Stability", head, rows, caption), score_table(findings, {}, "")]
    note = "A standard deviation of five seeds is itself known only to about a factor of two."
    return Summary(verdict, tables, [picture, *curves(findings)], [note, *caveats(findings)])


PAIRS = (("FP3O", "HAPPO"), ("FP3O", "A2PO"), ("FP3O, double clip", "FP3O"))
"""The first of each is steadier in the paper."""


def answer(findings: CellResults) -> list[str]:
    """Deviations pair by pair, with what a bootstrap over seeds allows to say."""
    known = {item.cell.variant: item for item in findings if item.seeds.size > 2}
    ratios = {
        pair: deviations(known[pair[0]], known[pair[1]]) for pair in PAIRS if {*pair} <= {*known}
    }
    if not ratios:
        return ["The cells that would answer are not finished, or have too few seeds."]
    told = [
        f"{ours} {ends_text(ratio)} times that of {theirs}"
        for (ours, theirs), ratio in ratios.items()
    ]
    holds = (
        "holds" if all(x.high < 1 for x in ratios.values())
        else "does not hold" if all(x.low > 1 for x in ratios.values())
        else "is neither confirmed nor refuted"
    )  # fmt: skip
    return [f"The mean deviation of {'; of '.join(told)}: what the paper says {holds} here."]


def deviations(ours: CellResult, theirs: CellResult) -> Interval:
    """Mean deviation in training of one over that of the other, bootstrapped over seeds."""
    curves = [x.run.series(f"eval_{x.measure.name}").value for x in (ours, theirs) if x.run]
    rows = [np.arange(len(x), dtype=float) for x in curves]

    def ratio(strata: Sequence[np.ndarray]) -> np.ndarray:
        spreads = [
            curve[draws.astype(int)].std(1, ddof=1).mean(1)
            for curve, draws in zip(curves, strata, strict=True)
        ]
        return spreads[0] / np.maximum(spreads[1], 1e-12)

    return bootstrap(rows, ratio)


EXPERIMENT = Experiment(
    "stability", "Stability over repetitions",
    "How much do repetitions with other seeds differ, and does a double clip help?",
    grid, show,
    "FP3O fluctuates less than HAPPO and A2PO, and the double clip makes it steadier still.",
)  # fmt: skip
