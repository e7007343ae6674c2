"""Cost and score as a function of team size."""

from collections.abc import Iterator

import numpy as np

from fp3o.experiments.framework.grid import (
    NOTHING_FINISHED,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Lines,
    Scale,
    Summary,
    pad_columns,
)
from fp3o.experiments.framework.scales import algorithm_variants, make_cells, with_controls
from fp3o.experiments.framework.score_table import training_minutes
from fp3o.experiments.framework.summary import run_caveats, score_tables
from fp3o.experiments.framework.unlearned import judge_by_kills
from fp3o.reports.experiment_report import CaptionedFigure

_MAPS = {
    "paper": ("3m", "8m", "10m_vs_11m", "25m"),
    "gpu": ("3m", "8m", "25m"),
    "laptop": ("3m", "5m_vs_6m", "8m"),
    "smoke": ("3m",),
}

_STEPS = {"gpu": 2_000_000, "laptop": 128_000}

_COST_CAPTION = "Training time as teams grow."

_SCORE_CAPTION = "Score of the last policies as teams grow; the maps differ in more than size."


def _cells(scale: Scale) -> Iterator[Cell]:
    """Teams of marines with full sharing; the clip range is the same for all."""
    tasks = [f"smac/{name}" for name in _MAPS[scale]]
    if scale == "smoke":
        return make_cells(tasks, ["full"], algorithm_variants("fp3o", "mappo"), scale)
    settings = {"clip_range": 0.2, **({"steps": _STEPS[scale]} if scale in _STEPS else {})}
    variants = algorithm_variants("fp3o", "mappo", "happo")
    return with_controls(tasks, ["full"], variants, scale, **settings)


def _cost(item: CellResult) -> float:
    """Milliseconds of training per thousand steps of one seed."""
    assert item.run is not None
    return 6e7 * training_minutes(item) / (item.run.step * len(item.run.seeds))


def _summarise(results: CellResults) -> Summary:
    """Cost and score over the number of agents, and the table of scores."""
    from fp3o.experiments.framework.plots import score_dots  # imports matplotlib

    if not results:
        return NOTHING_FINISHED
    costs, scores = {}, {}
    for name in dict.fromkeys(item.cell.variant for item in results):
        group = [item for item in results if item.cell.variant == name]
        agents = np.array([item.run.num_agents for item in group if item.run])
        costs[name] = agents, np.array([[_cost(item) for item in group]])
        scores[name] = agents, pad_columns([item.seeds for item in group])
    texts = [
        f"{name} {value[0, 0]:.0f} ms with {agents[0]} agents and {value[0, -1]:.0f} with "
        f"{agents[-1]}"
        for name, (agents, value) in costs.items()
    ]
    verdict = [
        f"Training time per thousand steps of a seed: {'; '.join(texts)}.",
        "Scores are of different maps: only those of one map can be compared.",
    ]
    figures = [
        _figure("cost", costs, "ms per 1,000 steps of a seed", _COST_CAPTION),
        _figure("score", scores, results[0].measure.axis, _SCORE_CAPTION),
        score_dots(results, {}),
    ]
    tables = score_tables(results, judge_by_kills(results))
    return Summary(verdict, tables, figures, run_caveats(results))


def _figure(name: str, lines: Lines, y_label: str, caption: str) -> CaptionedFigure:
    from fp3o.experiments.framework.plots import lines_figure  # imports matplotlib

    figure = lines_figure({"full sharing": lines}, "agents", y_label)
    return CaptionedFigure(name, figure, caption)


EXPERIMENT = Experiment(
    name="agents",
    title="As teams grow",
    question="What do the algorithms cost, and what do they score, as the number of agents grows?",
    cells=_cells,
    summarise=_summarise,
    order=4,
)
