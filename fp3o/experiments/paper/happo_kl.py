"""KL divergence of sequentially updated agents from the rollout policy, stage by stage."""

from collections.abc import Iterator
from typing import Any

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
from fp3o.experiments.framework.scales import algorithm_variants, make_cells
from fp3o.experiments.framework.score_table import gradient_steps, steps_text
from fp3o.experiments.framework.summary import run_caveats
from fp3o.learning.statistics import QUANTILES
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.figures.style import FAINT_COLOUR, PALETTE
from fp3o.reports.phrasing import DASH, number_text, sharing_title
from fp3o.reports.stats.intervals import mean_interval

_TASKS = {"paper": "smac/3s5z", "gpu": "smac/3s5z", "laptop": "smac/3s5z"}

_SHORTER = {"laptop": {"steps": 128_000}}

_LEVELS = (0.04, 0.08, 0.12)
"""Levels that are marked in the paper's figure."""

_MEDIAN = QUANTILES.index(0.5)

_CAPTION = "Median KL(rollout policy ‖ policy after the turn) over steps, and its 95 % quantile."


def _cells(scale: Scale) -> Iterator[Cell]:
    """Sequential algorithms, with full sharing and with none."""
    task = _TASKS.get(scale, "mpe/simple_speaker_listener")
    names = ("happo",) if scale == "smoke" else ("happo", "a2po")
    variants = algorithm_variants(*names, **_SHORTER.get(scale, {}))
    return make_cells([task], ["full", "none"], variants, scale)


def _kl_by_turn(item: CellResult) -> np.ndarray:
    """Quantiles of the KL of the agent updated in each turn, (seeds, turns, quantiles)."""
    assert item.run is not None
    turns = range(item.run.num_agents)
    parts = [item.run.series("kl_quantiles", turn).value for turn in turns]
    return np.stack([np.nanmean(part, axis=1) for part in parts], axis=1)


def _growth(item: CellResult) -> np.ndarray:
    """Median KL of the last turn minus that of the first, per seed."""
    value = _kl_by_turn(item)[:, :, _MEDIAN]
    return value[:, -1] - value[:, 0]


def _summarise(results: CellResults) -> Summary:
    """KL by turn, with full sharing and with none."""
    results = [item for item in results if _kl_by_turn(item).ndim == 3]
    if not results:
        return NOTHING_FINISHED
    rows, factors = [], []
    for item in results:
        value = _kl_by_turn(item)
        first, last = value[:, 0, _MEDIAN], value[:, -1, _MEDIAN]
        factor = mean_interval(last / np.maximum(first, 1e-12))
        pairs = value.mean(0)[:, [_MEDIAN, QUANTILES.index(0.95)]]
        cells = [f"{number_text(x)} ({number_text(y)})" for x, y in pairs]
        steps = f"{gradient_steps(item):,}"
        rows.append([item.cell.variant, item.cell.sharing, steps, *cells])
        ends = f" [{factor.low:.1f}, {factor.high:.1f}]" if factor.known else ""
        sharing = sharing_title(item.cell.sharing)
        factors.append(f"{item.cell.variant}, {sharing}, {factor.centre:.1f}{ends}")
    verdict = [
        "From the first turn of an iteration to the last, the median KL of the updated agent grows "
        f"by a factor of (95 % interval over seeds): {'; '.join(factors)}.",
        _claim_verdict(results),
    ]
    most = max(len(row) for row in rows) - 3
    rows = [[*row, *[DASH] * (most + 3 - len(row))] for row in rows]
    head = ["algorithm", "sharing", "gradient steps", *(f"turn {k + 1}" for k in range(most))]
    caption = "KL of the updated agent: median, and band from the 5 % to the 95 % quantile."
    return Summary(
        verdict,
        [ResultTable("KL per turn", head, rows, _CAPTION, 2)],
        [CaptionedFigure("kl_by_turn", _figure(results), caption)],
        [f"Trained for {steps_text(results[0])} steps; the paper for 5M.", *run_caveats(results)],
    )


def _claim_verdict(results: CellResults) -> str:
    """Whether the KL grows with the turns under full sharing, and more than without sharing."""
    growth = {item.cell.sharing: _growth(item) for item in results if item.cell.variant == "HAPPO"}
    if not {"full", "none"} <= growth.keys():
        return "Whether HAPPO's drift is due to sharing is not known yet."
    full = mean_interval(growth["full"])
    more = mean_interval(-np.diff(pad_columns([growth["full"], growth["none"]])))
    if not full.known or not more.known or full.low <= 0 <= full.high:
        return "Whether HAPPO's drift grows with the turns is undecided here."
    if full.high < 0:
        return "HAPPO's drift shrinks with the turns: the paper's claim does not hold here."
    if more.low > 0:
        return (
            "HAPPO's drift grows with the turns under full sharing, and more than without sharing: "
            "the paper's claim holds here."
        )
    return (
        "HAPPO's drift grows with the turns under full sharing, but not clearly more than without: "
        "the paper's claim holds in part here."
    )


def _figure(results: CellResults) -> Any:
    """Figure with one panel per algorithm."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    from fp3o.reports.figures.canvas import DASHED, PANEL, apply_layout, figure_style

    names = [*dict.fromkeys(item.cell.variant for item in results)]
    colours: dict[str, str] = dict(zip(("full", "none"), PALETTE, strict=False))
    with figure_style():
        size = (PANEL[0] * (0.3 + 0.7 * len(names)), PANEL[1])
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axis, name in zip(axes, names, strict=True):
            for item in [x for x in results if x.cell.variant == name]:
                low, middle, high = _kl_by_turn(item).mean(0)[:, 1:4].T
                turns = np.arange(1, len(middle) + 1)
                colour, label = colours[item.cell.sharing], sharing_title(item.cell.sharing)
                axis.plot(turns, middle, "o-", color=colour, label=label)
                axis.fill_between(turns, low, high, color=colour, alpha=0.16, lw=0)
            for level in _LEVELS:
                axis.axhline(level, color=FAINT_COLOUR, lw=0.8, ls=DASHED)
            axis.set_title(name)
            axis.set_xlabel("turn")
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes[0].set_ylabel("KL from the rollout policy")
        axes[0].legend(fontsize=8)
        return apply_layout(figure)


EXPERIMENT = Experiment(
    name="happo-kl",
    title="Drift of sequentially updated agents",
    question="Under full sharing every turn changes all agents: how far have the agents moved that "
    "are updated last?",
    claim="With full sharing on 3s5z, the KL of HAPPO's agents grows from turn to turn.",
    cells=_cells,
    summarise=_summarise,
    order=11,
)
