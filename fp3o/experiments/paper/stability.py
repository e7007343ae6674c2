"""Variation of training over seeds."""

from collections.abc import Iterator, Sequence

import numpy as np

from fp3o.experiments.framework.grid import (
    NOTHING_FINISHED,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
)
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.summary import run_caveats, score_tables
from fp3o.experiments.framework.unlearned import judge_by_kills
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import number_text
from fp3o.reports.stats.intervals import Interval, bootstrap

_TASKS = {"paper": "smac/3s5z", "gpu": "smac/3s5z", "laptop": "mpe/simple_reference"}

_DOUBLE = "FP3O, double clip"

_PAIRS = (("FP3O", "HAPPO"), ("FP3O", "A2PO"), (_DOUBLE, "FP3O"))
"""The first of each pair is more stable in the paper."""

_NOTE = "The standard deviation of five seeds is itself known only to about a factor of two."


def _cells(scale: Scale) -> Iterator[Cell]:
    task = _TASKS.get(scale, "mpe/simple_speaker_listener")
    names = ("fp3o",) if scale == "smoke" else ("happo", "a2po", "mappo", "fp3o")
    variants = {**algorithm_variants(*names), _DOUBLE: {"algorithm": "fp3o:inner_clip=0.5"}}
    make = make_cells if scale == "smoke" else with_controls
    return make([task], ["full"], variants, scale)


def _deviation(item: CellResult) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the standard deviation over seeds at each evaluation."""
    assert item.run is not None
    step, value = item.run.series(f"eval_{item.measure.name}")
    return step, item.measure.scale * value.std(0, ddof=1)


def _summarise(results: CellResults) -> Summary:
    """Standard deviation over training, and its mean."""
    from fp3o.experiments.framework.plots import curve_figures, lines_figure

    if not results:
        return NOTHING_FINISHED
    lines = {item.cell.variant: _deviation(item) for item in results}
    means = {name: float(np.mean(value)) for name, (_, value) in lines.items()}
    order = sorted(means, key=means.__getitem__)
    unit = results[0].measure.unit
    texts = ", ".join(f"{name} {number_text(means[name])}{unit}" for name in order)
    verdict = [
        f"Mean standard deviation over seeds during training, lowest first: {texts}.",
        _claim_verdict(results),
    ]
    rows = [
        [name, number_text(means[name]), number_text(float(lines[name][1][-1]))] for name in order
    ]
    head = ["variant", "mean deviation in training", "deviation at the end"]
    caption = f"Standard deviation of evaluations over {results[0].seeds.size} seeds."
    labels = "environment steps", "deviation over seeds"
    figure = CaptionedFigure(
        "deviation",
        lines_figure({results[0].cell.task: lines}, *labels),
        "Standard deviation over seeds during training.",
    )
    scores = score_tables(results, judge_by_kills(results))
    tables = [ResultTable("Stability", head, rows, caption), *scores]
    notes = [_NOTE, *run_caveats(results)]
    return Summary(verdict, tables, [figure, *curve_figures(results)], notes)


def _claim_verdict(results: CellResults) -> str:
    """Ratios of the deviations of each pair, with bootstrap intervals over seeds."""
    known = {item.cell.variant: item for item in results if item.seeds.size > 2}
    ratios = {
        pair: _deviation_ratio(known[pair[0]], known[pair[1]])
        for pair in _PAIRS
        if {*pair} <= {*known}
    }
    if not ratios:
        return "The cells needed for the verdict are not finished, or have too few seeds."
    texts = [
        f"that of {ours} is {_ratio_text(ratio)} times that of {theirs} ({_judgement(ratio)})"
        for (ours, theirs), ratio in ratios.items()
    ]
    return f"Mean deviations, and the paper's claims that the first is lower: {'; '.join(texts)}."


def _ratio_text(ratio: Interval) -> str:
    """With two digits: rounded as usual, a bound may not show on which side of 1 it is."""
    return f"{ratio.centre:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _judgement(ratio: Interval) -> str:
    if ratio.high < 1:
        return "holds"
    return "refuted here" if ratio.low > 1 else "neither confirmed nor refuted"


def _deviation_ratio(ours: CellResult, theirs: CellResult) -> Interval:
    """Ratio of the mean deviations in training, bootstrapped over seeds."""
    curves = [x.run.series(f"eval_{x.measure.name}").value for x in (ours, theirs) if x.run]
    seeds = [np.arange(len(x), dtype=float) for x in curves]

    def ratio(strata: Sequence[np.ndarray]) -> np.ndarray:
        deviations = [
            curve[draws.astype(int)].std(1, ddof=1).mean(1)
            for curve, draws in zip(curves, strata, strict=True)
        ]
        return deviations[0] / np.maximum(deviations[1], 1e-12)

    return bootstrap(seeds, ratio)


EXPERIMENT = Experiment(
    name="stability",
    title="Stability over seeds",
    question="How much do runs with different seeds differ, and does a double clip help?",
    claim="FP3O varies less than HAPPO and A2PO, and the double clip makes it more stable still.",
    cells=_cells,
    summarise=_summarise,
    order=12,
)
