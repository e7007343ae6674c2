"""Variance of the products of ratios in each algorithm's objective as teams grow."""

from collections.abc import Iterator

import numpy as np

from fp3o.experiments.framework.grid import (
    NOTHING_FINISHED,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
    pad_columns,
)
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.score_table import gradient_steps
from fp3o.experiments.framework.summary import run_caveats
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import DASH, number_text, score_text, with_sign
from fp3o.reports.stats.intervals import Interval, mean_interval

_MAPS = {
    "paper": ("3m", "5m_vs_6m", "8m", "10m_vs_11m", "25m"),
    "gpu": ("3m", "8m", "25m"),
    "laptop": ("3m", "5m_vs_6m", "8m"),
    "smoke": ("3m",),
}

_STEPS = {"paper": 2_000_000, "gpu": 1_000_000, "laptop": 128_000}

_CAPTION = (
    "Variance, over the samples of an iteration, of the products of ratios in the objective before "
    "clipping: of the stage in which it is largest, mean over training and seeds. Gradient steps: "
    "per seed, with the most agents."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    """Teams of marines with full sharing; the clip range is the same for all."""
    tasks = [f"smac/{name}" for name in _MAPS[scale]]
    if scale == "smoke":
        variants = algorithm_variants("fp3o", "mappo", clip_range=0.2)
        return make_cells(tasks, ["full"], variants, scale)
    settings = {"clip_range": 0.2, "steps": _STEPS[scale]}
    variants = algorithm_variants("mappo", "coppo", "happo", "a2po", "fp3o")
    return with_controls(tasks, ["full"], variants, scale, **settings)


def _largest_variance(item: CellResult) -> np.ndarray:
    """Largest variance of any stage, mean over training, per seed."""
    assert item.run is not None
    lines = [*item.run.metrics[item.run.seeds[0]].values()]
    stages = max(len(line.get("product_variance") or []) for line in lines)
    parts = [item.run.series("product_variance", stage).value for stage in range(stages)]
    return np.nanmean(np.nanmax(np.stack(parts), axis=0), axis=1)


def _summarise(results: CellResults) -> Summary:
    """Variance over the number of agents."""
    from fp3o.experiments.framework.plots import lines_figure  # imports matplotlib

    if not results:
        return NOTHING_FINISHED
    lines = {}
    for name in dict.fromkeys(item.cell.variant for item in results):
        group = [item for item in results if item.cell.variant == name]
        agents = np.array([item.run.num_agents for item in group if item.run])
        lines[name] = agents, pad_columns([_largest_variance(item) for item in group])
    means = {
        name: dict(zip(agents.tolist(), np.nanmean(value, axis=0).tolist(), strict=True))
        for name, (agents, value) in lines.items()
    }
    counts = sorted({count for known in means.values() for count in known})
    last = {name: known[counts[-1]] for name, known in means.items() if counts[-1] in known}
    order = ", ".join(
        f"{name} {number_text(last[name])}" for name in sorted(last, key=last.__getitem__)
    )
    verdict = [
        f"With {counts[-1]} agents the variance of the products is, lowest first: {order}.",
        _claim_verdict({name: value[:, -1] for name, (_, value) in lines.items() if name in last}),
    ]
    steps = {item.cell.variant: f"{gradient_steps(item):,}" for item in results}
    rows = [
        [name, *(number_text(known[x]) if x in known else DASH for x in counts), steps[name]]
        for name, known in means.items()
    ]
    head = ["algorithm", *(f"{x} agents" for x in counts), "gradient steps"]
    labels = "agents", "variance of the products"
    figure = lines_figure({"full sharing": lines}, *labels, log=(True, True))
    caption = "Variance of the products of ratios as teams grow."
    return Summary(
        verdict,
        [ResultTable("Variance of the products", head, rows, _CAPTION)],
        [CaptionedFigure("variance", figure, caption)],
        run_caveats(results),
    )


_CLAIMED = {"MAPPO": 1, "CoPPO": -1, "HAPPO": -1, "A2PO": -1}
"""Sign of FP3O's difference from each, by the paper's count of factors."""


def _claim_verdict(last: dict[str, np.ndarray]) -> str:
    """FP3O's differences from the others with the most agents, by seed, against the paper's order.

    It takes more gradient steps than MAPPO and CoPPO here, and fewer than the sequential two.
    """
    others = [name for name in _CLAIMED if name in last]
    if "FP3O" not in last or "MAPPO" not in last:
        return "The cells needed for the verdict are not finished."
    texts = [_judgement(name, mean_interval(last["FP3O"] - last[name])) for name in others]
    return f"FP3O's, at its own number of gradient steps: {'; '.join(texts)}."


def _judgement(name: str, difference: Interval) -> str:
    sign = int(difference.low > 0) - int(difference.high < 0)
    words = {1: "higher than", -1: "lower than", 0: "not distinguishable from"}[sign]
    claim = {_CLAIMED[name]: "as claimed", -_CLAIMED[name]: "against the claim"}.get(sign)
    claim = f", {claim}" if claim else ""
    return f"{words} {name}'s{claim} ({with_sign(score_text(difference))})"


EXPERIMENT = Experiment(
    name="instability-order",
    title="Products of ratios",
    question="How unstable are the objectives, by the products of ratios in them?",
    claim="By the number of factors, FP3O's objective is less stable than MAPPO's and at least as "
    "stable as those of CoPPO, HAPPO and A2PO.",
    cells=_cells,
    summarise=_summarise,
    order=14,
)
