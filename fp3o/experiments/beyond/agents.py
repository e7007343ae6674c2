"""Cost and score as teams grow."""

from collections.abc import Iterator

import numpy as np

from fp3o.experiments.framework.grid import (
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
    side_by_side,
)
from fp3o.experiments.framework.plots import dots, lines_of
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.score_table import minutes, score_table
from fp3o.experiments.framework.summary import caveats
from fp3o.reports.experiment_report import CaptionedFigure

MAPS = {
    "paper": ("3m", "8m", "10m_vs_11m", "25m"), "gpu": ("3m", "8m", "25m"),
    "laptop": ("3m", "5m_vs_6m", "8m"), "smoke": ("3m",),
}  # fmt: skip

STEPS = {"gpu": 2_000_000, "laptop": 320_000}


def grid(scale: Scale) -> Iterator[Cell]:
    """Teams of marines, full sharing."""
    tasks = [f"smac/{name}" for name in MAPS[scale]]
    names = ("fp3o", "mappo") if scale == "smoke" else ("fp3o", "mappo", "happo")
    told = {"steps": STEPS[scale]} if scale in STEPS else {}
    return cells(tasks, ["full"], {x: {**row, **told} for x, row in rows(*names).items()}, scale)


def cost(item: CellResult) -> float:
    """Milliseconds of training a thousand steps of one seed."""
    assert item.run is not None
    return 6e7 * minutes(item) / (item.run.step * len(item.run.seeds))


def show(findings: CellResults) -> Summary:
    """Lines over the number of agents, and the scores."""
    if not findings:
        return Summary(["Nothing is finished yet."])
    costs, wins = {}, {}
    for name in dict.fromkeys(item.cell.variant for item in findings):
        own = [item for item in findings if item.cell.variant == name]
        agents = np.array([item.run.config["agents"] for item in own if item.run])
        costs[name] = agents, np.array([[cost(item) for item in own]])
        wins[name] = agents, side_by_side([item.seeds for item in own])
    told = [
        f"{name} {value[0, 0]:.0f} ms with {agents[0]} agents and {value[0, -1]:.0f} with "
        f"{agents[-1]}"
        for name, (agents, value) in costs.items()
    ]
    verdict = [
        f"A thousand steps of a seed cost: {'; '.join(told)}.",
        "Scores are of different maps: only those of one map can be compared.",
    ]
    pictures = [
        CaptionedFigure("cost", lines_of({"full sharing": costs}, "agents", "ms for 1,000 steps of a seed"),
                "Time of training as teams grow."),
        CaptionedFigure("score", lines_of({"full sharing": wins}, "agents", findings[0].measure.axis),
                "Score of the last policies as teams grow; the maps differ in more than size."),
        dots(findings, {}),
    ]  # fmt: skip
    return Summary(verdict, [score_table(findings, {}, "MAPPO")], pictures, caveats(findings))


EXPERIMENT = Experiment(
    "agents", "As teams grow",
    "What do algorithms cost, and what do they reach, as the number of agents grows?",
    grid, show,
)  # fmt: skip
