"""How often FP3O's condition, known before the dependent step, agrees with its constraint."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fp3o.experiments.framework.grid import (
    NOTHING_FINISHED,
    PAPER_SHARINGS,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Lines,
    Scale,
    Summary,
    pad_columns,
)
from fp3o.experiments.framework.scales import cell_config
from fp3o.experiments.framework.score_table import gradient_steps
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import score_text, sharing_title
from fp3o.reports.stats.intervals import Interval, mean_interval

_SIZES = (100, 200, 500, 1000)
"""Rollout sizes: steps times agents."""

_TASKS = {
    "paper": ("mamujoco/Reacher-2x1", "smac/2c_vs_64zg"),
    "gpu": ("smac/2c_vs_64zg", "mpe/simple_reference", "mpe/simple_speaker_listener"),
    "laptop": ("mamujoco/Reacher-2x1", "mpe/simple_reference", "mpe/simple_speaker_listener"),
    "smoke": ("mpe/simple_speaker_listener",),
}

_SATURATED = 99.0
"""Percent of agreement above which no increase can be measured."""

_ITERATIONS = {"paper": 1000, "gpu": 500, "laptop": 200, "smoke": 2}

_CAPTION = (
    "Share of iterations in which condition and constraint agree, mean ± half of the 95 % interval "
    "over seeds. Where the gate is closed, the dependent step is taken nevertheless, measured and "
    "reverted; as run: a closed gate counts as agreement."
)

_NOTE = (
    "The paper's claim about homogeneous and heterogeneous agents under sharing is not evaluated: "
    "the tasks here differ in more than that."
)


def _cells(scale: Scale) -> Iterator[Cell]:
    """Rollout sizes under every sharing, with one environment and the shadow step."""
    small = scale == "smoke"
    for task in _TASKS[scale]:
        for sharing in PAPER_SHARINGS[:1] if small else PAPER_SHARINGS:
            for size in _SIZES[:2] if small else _SIZES:
                usual = cell_config(task, sharing, scale, "fp3o")
                rollout = size // usual.task_info.spec(usual.variant).num_agents
                settings = {
                    "num_envs": 1, "rollout": rollout, "minibatches": 1, "eval_every": 0,
                    "steps": _ITERATIONS[scale] * rollout, "final_episodes": 10,
                }  # fmt: skip
                config = cell_config(task, sharing, scale, "fp3o:shadow=true", **settings)
                yield Cell(task, sharing, "FP3O", config, detail=str(size))


def _matching_degrees(item: CellResult) -> tuple[np.ndarray, np.ndarray]:
    """Percent of iterations in which both agree, per seed: with the shadow step, and as run.

    As run, a closed gate keeps the intermediate policies, for which the constraint is the
    condition itself.
    """
    assert item.run is not None
    matches = item.run.series("condition_matches").value > 0.5
    holds = item.run.series("condition_holds").value > 0.5
    return 100 * matches.mean(1), 100 * (matches | ~holds).mean(1)


def _verdict(gains: Sequence[Interval], results: CellResults) -> list[str]:
    """Whether the matching degree grows with the rollout, where it can, and how high it is."""
    grown = sum(gain.known and gain.low > 0 for gain in gains)
    fallen = sum(gain.known and gain.high < 0 for gain in gains)
    largest = max(int(item.cell.detail) for item in results)
    cells = [item for item in results if int(item.cell.detail) == largest]
    last = [_matching_degrees(item)[0].mean() for item in cells]
    first = (
        f"At the largest rollout ({largest} samples), condition and constraint agree in "
        f"{min(last):.0f} to {max(last):.0f} % of the iterations."
    )
    if not gains:
        return [
            first,
            f"They agree in more than {_SATURATED:g} % with the smallest, too: the paper's claim "
            "about its size cannot be tested here.",
        ]
    holds = "is neither confirmed nor refuted"
    if grown > len(gains) / 2 and not fallen:
        holds = "holds"
    elif fallen > grown:
        holds = "does not hold"
    return [
        first,
        f"From the smallest to the largest rollout, where it starts below {_SATURATED:g} %, the "
        f"matching degree grows in {grown} of {len(gains)} cases and falls in {fallen}: the "
        f"paper's claim {holds} here.",
    ]


def _summarise(results: CellResults) -> Summary:
    """Lines over rollout sizes, one panel per task."""
    if not results:
        return NOTHING_FINISHED
    panels: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    rows, gains = [], []
    for task, sharing in dict.fromkeys((item.cell.task, item.cell.sharing) for item in results):
        group = [x for x in results if (x.cell.task, x.cell.sharing) == (task, sharing)]
        sizes = np.array([int(item.cell.detail) for item in group])
        values = [_matching_degrees(item) for item in group]
        shadow = pad_columns([degree for degree, _ in values])
        panels.setdefault(task, {})[sharing_title(sharing)] = sizes, shadow
        if values[0][0].mean() < _SATURATED:
            gains.append(mean_interval(shadow[:, -1] - shadow[:, 0]))
        for item, size, degrees in zip(group, sizes, values, strict=True):
            texts = [score_text(mean_interval(x), " %") for x in degrees]
            rows.append([task, sharing, str(size), *texts, f"{gradient_steps(item):,}"])
    head = ["task", "sharing", "rollout size", "matching degree", "as run", "gradient steps"]
    table = ResultTable("Matching degree", head, rows, _CAPTION, 2)
    return Summary(_verdict(gains, results), [table], [_figure(panels)], [_NOTE])


def _figure(panels: Mapping[str, Lines]) -> CaptionedFigure:
    from fp3o.experiments.framework.plots import lines_figure  # imports matplotlib

    labels = "rollout size (steps x agents)", "matching degree (%)"
    figure = lines_figure(panels, *labels, log=(True, False))
    caption = "Matching degree over rollout sizes, by sharing."
    return CaptionedFigure("matching_degree", figure, caption)


EXPERIMENT = Experiment(
    name="matching-degree",
    title="Condition and constraint",
    question="Does the condition, known before the dependent step, predict whether the constraint "
    "holds after it?",
    claim="The larger the rollout, the more often they agree; with homogeneous agents more often "
    "under sharing, with heterogeneous agents more often without.",
    cells=_cells,
    summarise=_summarise,
    order=10,
)
