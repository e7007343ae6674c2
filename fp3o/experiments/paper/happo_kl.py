"""How far agents that take turns drift from the rollout's policies, turn by turn."""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fp3o.experiments.framework.grid import (
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
    side_by_side,
)
from fp3o.experiments.framework.plots import colour_of, in_words
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.score_table import steps
from fp3o.experiments.framework.summary import caveats
from fp3o.learning.statistics import QUANTILES
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.figures.canvas import PANEL, laid_out, styled
from fp3o.reports.figures.style import FAINT
from fp3o.reports.phrasing import number_text
from fp3o.reports.stats.intervals import mean_interval

TASKS = {"paper": "smac/3s5z", "gpu": "smac/3s5z", "laptop": "smac/3s5z"}

SHORT = {"laptop": {"steps": 128_000}}

CIRCLES = (0.04, 0.08, 0.12)
"""Where the paper's picture has its circles."""


def grid(scale: Scale) -> Iterator[Cell]:
    """Those who take turns, with full sharing and with none."""
    task = TASKS.get(scale, "mpe/simple_speaker_listener")
    names = ("happo",) if scale == "smoke" else ("happo", "a2po")
    variants = {name: {**row, **SHORT.get(scale, {})} for name, row in rows(*names).items()}
    return cells([task], ["full", "none"], variants, scale)


def drift(item: CellResult) -> np.ndarray:
    """Quantiles of the KL of the agent whose turn it was, (seeds, turns, quantiles)."""
    assert item.run is not None
    turns = item.run.config["agents"]
    parts = [item.run.series("kl_quantiles", turn).value for turn in range(turns)]
    return np.stack([np.nanmean(part, axis=1) for part in parts], axis=1)


def show(findings: CellResults) -> Summary:
    """Bands over turns: full sharing against none."""
    if not findings:
        return Summary(["Nothing is finished yet."])
    rows, told = [], []
    for item in findings:
        value = drift(item)
        middle = QUANTILES.index(0.5)
        first, last = value[:, 0, middle], value[:, -1, middle]
        factor = mean_interval(last / np.maximum(first, 1e-12))
        cells = [f"{number_text(x)} ({number_text(y)})" for x, y in
                 zip(value.mean(0)[:, middle], value.mean(0)[:, 3], strict=True)]  # fmt: skip
        rows.append([item.cell.variant, item.cell.sharing, *cells])
        sure = f" [{factor.low:.1f}, {factor.high:.1f}]" if factor.known else ""
        told.append(
            f"{item.cell.variant}, {in_words(item.cell.sharing)}, {factor.centre:.1f}{sure}"
        )
    verdict = [
        "From the first turn of an iteration to the last the median KL of the agent whose turn it "
        f"is grows by a factor of (95 % interval over seeds): {'; '.join(told)}.",
        claim_holds(findings),
    ]
    most = max(len(row) for row in rows) - 2
    rows = [[*row, *["–"] * (most + 2 - len(row))] for row in rows]
    head = ["algorithm", "sharing", *(f"turn {k + 1}" for k in range(most))]
    caption = "Median KL(rollout policy ‖ policy after the turn) over steps, and its 95 % quantile."
    words = "KL of the agent whose turn it was: median, and from the 5 % to the 95 % quantile."
    return Summary(
        verdict, [ResultTable("KL turn by turn", head, rows, caption, 2)],
        [CaptionedFigure("kl_by_turn", bands(findings), words)],
        [f"Trained for {steps(findings[0])} steps; the paper for 5M.", *caveats(findings)],
    )  # fmt: skip


def claim_holds(findings: CellResults) -> str:
    """Whether drift grows with the turns where parameters are shared, and more than without."""
    own = {item.cell.sharing: growth(item) for item in findings if item.cell.variant == "HAPPO"}
    if not {"full", "none"} <= own.keys():
        return "Whether sharing is what makes HAPPO drift is not known yet."
    full = mean_interval(own["full"])
    more = mean_interval(-np.diff(side_by_side([own["full"], own["none"]])))
    if not full.known or not more.known or full.low <= 0 <= full.high:
        return "Whether HAPPO's drift grows with the turns is not decided here."
    if full.high < 0:
        return "HAPPO's drift shrinks with the turns: what the paper says does not hold here."
    if more.low > 0:
        return (
            "HAPPO's drift grows with the turns under full sharing, and more than without sharing: "
            "what the paper says holds here."
        )
    return (
        "HAPPO's drift grows with the turns under full sharing, but not clearly more than without: "
        "what the paper says holds here in part."
    )


def growth(item: CellResult) -> np.ndarray:
    """Median KL of the last turn less that of the first, of each seed."""
    value = drift(item)[:, :, QUANTILES.index(0.5)]
    return value[:, -1] - value[:, 0]


def bands(findings: CellResults) -> Figure:
    """A panel an algorithm."""
    names = [*dict.fromkeys(item.cell.variant for item in findings)]
    with styled():
        size = (PANEL[0] * (0.3 + 0.7 * len(names)), PANEL[1])
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axis, name in zip(axes, names, strict=True):
            for item in [x for x in findings if x.cell.variant == name]:
                low, middle, high = drift(item).mean(0)[:, 1:4].T
                turns = np.arange(1, len(middle) + 1)
                colour = colour_of("FP3O" if item.cell.sharing == "full" else "MAPPO", [])
                axis.plot(turns, middle, "o-", color=colour, label=in_words(item.cell.sharing))
                axis.fill_between(turns, low, high, color=colour, alpha=0.16, lw=0)
            for level in CIRCLES:
                axis.axhline(level, color=FAINT, lw=0.8, ls=(0, (4, 3)))
            axis.set_title(name)
            axis.set_xlabel("turn")
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes[0].set_ylabel("KL from the rollout policy")
        axes[0].legend(fontsize=8)
        return laid_out(figure)


EXPERIMENT = Experiment(
    "happo-kl", "Drift of agents that take turns",
    "Under full sharing every turn moves all agents: how far have those moved whose turn is last?",
    grid, show,
    "With full sharing on 3s5z the KL of HAPPO's agents grows from turn to turn.",
)  # fmt: skip
