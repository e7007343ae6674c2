"""How often FP3O's condition, which can be known in advance, foretells its constraint."""

from collections.abc import Iterator, Sequence

import numpy as np

from fp3o.experiments.framework.grid import (
    SHARINGS,
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
    side_by_side,
)
from fp3o.experiments.framework.plots import in_words, lines_of
from fp3o.experiments.framework.scales import plan
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import score_text
from fp3o.reports.stats.intervals import Interval, mean_interval

SIZES = (100, 200, 500, 1000)
"""Steps of a rollout times agents."""

TASKS = {
    "paper": ("mamujoco/Reacher-2x1", "smac/2c_vs_64zg"),
    "gpu": ("smac/2c_vs_64zg", "mpe/simple_reference", "mpe/simple_speaker_listener"),
    "laptop": ("mamujoco/Reacher-2x1", "mpe/simple_reference", "mpe/simple_speaker_listener"),
    "smoke": ("mpe/simple_speaker_listener",),
}

FULL = 99.0
"""Percent of agreement from which there is nothing left to gain."""

ITERATIONS = {"paper": 1000, "gpu": 500, "laptop": 200, "smoke": 2}


def grid(scale: Scale) -> Iterator[Cell]:
    """Rollout sizes under every sharing, in one environment; shut gates are looked behind."""
    small = scale == "smoke"
    for task in TASKS[scale]:
        for sharing in SHARINGS[:1] if small else SHARINGS:
            for size in SIZES[:2] if small else SIZES:
                usual = plan(task, sharing, scale, "fp3o")
                rollout = size // usual.task_info.spec(usual.variant).num_agents
                settings = {
                    "num_envs": 1, "rollout": rollout, "minibatches": 1, "eval_every": 0,
                    "steps": ITERATIONS[scale] * rollout, "final_episodes": 10,
                }  # fmt: skip
                made = plan(task, sharing, scale, "fp3o:shadow=true", **settings)
                yield Cell(task, sharing, "FP3O", made, more=str(size))


def degrees(item: CellResult) -> tuple[np.ndarray, np.ndarray]:
    """Percent of iterations in which both agree, of each seed: with shadows, and as run.

    As run, a shut gate keeps the intermediate policies, and the constraint then says the same as
    the condition by itself.
    """
    assert item.run is not None
    matched = item.run.series("condition_matches").value > 0.5
    certified = item.run.series("condition_holds").value > 0.5
    return 100 * matched.mean(1), 100 * (matched | ~certified).mean(1)


def said(gains: Sequence[Interval], findings: CellResults) -> list[str]:
    """Whether it grows with the rollout, where it can, and how high it is."""
    grown = sum(gain.known and gain.low > 0 for gain in gains)
    shrunk = sum(gain.known and gain.high < 0 for gain in gains)
    largest = max(int(item.cell.more) for item in findings)
    last = [degrees(item)[0].mean() for item in findings if int(item.cell.more) == largest]
    first = (
        f"At the largest rollout ({largest} samples) condition and constraint agree in "
        f"{min(last):.0f} to {max(last):.0f} % of the iterations."
    )
    if not gains:
        return [first, f"They agree in more than {FULL:g} % with the smallest, too: what the paper "
                "says about its size cannot be seen here."]  # fmt: skip
    words = "holds" if grown > len(gains) / 2 and not shrunk else (
        "does not hold" if shrunk > grown else "is neither confirmed nor refuted"
    )  # fmt: skip
    return [
        first,
        f"From the smallest rollout on, where there is room below {FULL:g} %, the matching degree "
        f"grows in {grown} of {len(gains)} cases and falls in {shrunk}: what the paper says {words}"
        " here.",
    ]


def show(findings: CellResults) -> Summary:
    """Lines over rollout sizes, a panel a task."""
    if not findings:
        return Summary(["Nothing is finished yet."])
    panels: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    rows, gains = [], []
    for task in dict.fromkeys(item.cell.task for item in findings):
        for sharing in dict.fromkeys(item.cell.sharing for item in findings):
            own = [x for x in findings if (x.cell.task, x.cell.sharing) == (task, sharing)]
            if not own:
                continue
            sizes = np.array([int(item.cell.more) for item in own])
            values = [degrees(item) for item in own]
            panels.setdefault(task, {})[in_words(sharing)] = (
                sizes, side_by_side([shadow for shadow, _ in values]),
            )  # fmt: skip
            if values[0][0].mean() < FULL:
                gains.append(mean_interval(np.diff(side_by_side([values[0][0], values[-1][0]]))))
            for size, (shadow, as_run) in zip(sizes, values, strict=True):
                told = [score_text(mean_interval(x), " %") for x in (shadow, as_run)]
                rows.append([task, sharing, str(size), *told])
    figure = lines_of(panels, "rollout size (steps x agents)", "matching degree (%)", (True, False))
    verdict = said(gains, findings)
    head = ["task", "sharing", "rollout size", "matching degree", "as run"]
    caption = (
        "Share of iterations in which condition and constraint agree, mean ± half of the 95 % "
        "interval over seeds. Where the gate is shut, the dependent step is taken all the same, "
        "measured and forgotten; as run: a shut gate counts as agreement."
    )
    picture = CaptionedFigure(
        "matching_degree", figure, "Matching degree over rollout sizes, by sharing."
    )
    notes = [
        "What the paper says about equal and unequal agents under sharing is not judged: the "
        "tasks here differ in more than that."
    ]
    return Summary(
        verdict, [ResultTable("Matching degree", head, rows, caption, 2)], [picture], notes
    )


EXPERIMENT = Experiment(
    "matching-degree", "Condition and constraint",
    "Does the condition, known before the dependent step, foretell whether the constraint holds "
    "after it?",
    grid, show,
    "The larger the rollout, the more often they agree; with teams of equals more often under "
    "sharing, with unequal agents more often without.",
)  # fmt: skip
