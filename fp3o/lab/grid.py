"""Experiments as grids: cells with plans, the scales they can be run at, what was found.

An experiment is a function from a scale to cells, and one from what was found to what is shown.
Cells are told apart by a few words: the task, the sharing, and the variant that is compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fp3o.plan import Plan, change, draft
from fp3o.reports.exhibit import Grid, Picture
from fp3o.reports.measures import Measure, measure
from fp3o.reports.read import Run

Scale = Literal["paper", "gpu", "laptop", "smoke"]
SCALES: Mapping[Scale, str] = {
    "paper": "the paper's tasks, steps and batches: days",
    "gpu": "the paper's hyperparameters, with large batches for battles and fewer steps for bodies",
    "laptop": "small tasks or few steps: minutes a cell on two cores",
    "smoke": "two tiny iterations, to see that everything works: seconds a cell, numbers mean "
    "nothing",
}
"""How large an experiment can be."""

SHARINGS = ("full", "partial", "none")


@dataclass(frozen=True)
class Cell:
    """One place of a grid: what tells it from the others, and the work to be done there."""

    task: str
    sharing: str
    variant: str
    """What is compared, as tables call it."""
    plan: Plan
    work: str = "train"
    """One of `conduct.WORKS`."""
    more: str = ""
    """A fourth word where three do not tell it from the others, such as a rollout size."""

    @property
    def label(self) -> str:
        """The name of its directory."""
        own = map(slug, (self.sharing, self.variant, self.more))
        return "-".join(filter(None, (self.task.split("/")[-1], *own)))


def slug(words: str) -> str:
    """Words as a part of a file's name."""
    kept = "".join(x if x.isalnum() or x == "_" else " " for x in words.lower())
    return "_".join(kept.split())


@dataclass(frozen=True)
class Found:
    """A finished cell."""

    cell: Cell
    path: Path
    run: Run | None = None
    """What was trained."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was measured, if nothing was trained."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Task, sharing, variant."""
        return self.cell.task, self.cell.sharing, self.cell.variant

    @property
    def measure(self) -> Measure:
        """What its task is judged by: wins where there are some, else the return."""
        rows = self.run.results["last"] if self.run else []
        return measure("won" if rows and "won" in (rows[0].get("outcomes") or {}) else "return")

    @property
    def by_seed(self) -> dict[int, float]:
        """What the last policy of every seed reached."""
        rows = self.run.results["last"] if self.run else []
        return {int(row["seed"]): self.measure.of(row) for row in rows}

    @property
    def seeds(self) -> np.ndarray:
        """The same as numbers in a row."""
        return np.array([*self.by_seed.values()])


Findings = Sequence[Found]


def side_by_side(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers of seeds (s,) of several cells as (s, cells); NaN where a cell has fewer seeds."""
    most = max(column.size for column in columns)
    rows = [np.pad(x, (0, most - x.size), constant_values=np.nan) for x in columns]
    return np.stack(rows, axis=1)


@dataclass(frozen=True)
class Shown:
    """What an experiment makes of its findings."""

    verdict: Sequence[str]
    tables: Sequence[Grid] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A question, the runs that answer it, and how the answer is shown."""

    name: str
    title: str
    question: str
    cells: Callable[[Scale], Iterator[Cell]]
    show: Callable[[Findings], Shown]
    claim: str = ""
    """What the paper says; empty where the experiment is not in the paper."""


# Plans ------------------------------------------------------------------------------------------

SMOKE: Mapping[str, Any] = {
    "num_envs": 2, "epochs": 2, "minibatches": 1, "hidden": (8,), "recurrent": 0, "chunk": 1,
    "seeds": 2, "eval_every": 1, "eval_episodes": 2, "final_episodes": 2,
}  # fmt: skip
"""What all tasks have in common at the scale `smoke`."""

LAPTOP: Mapping[str, Mapping[str, Any]] = {
    # The demo's settings: a team that talks in a minute.
    "mpe": {
        "num_envs": 64, "epochs": 4, "minibatches": 4, "recurrent": 0, "chunk": 1, "gamma": 0.9,
        "actor_lr": 2e-3, "critic_lr": 2e-3, "steps": 640_000, "eval_every": 20,
    },
    "mamujoco": {"steps": 200_000, "minibatches": 8, "eval_every": 10, "eval_episodes": 4},
    "smac": {
        "num_envs": 64, "rollout": 50, "minibatches": 1, "steps": 640_000, "eval_every": 20,
        "final_episodes": 200,
    },
}  # fmt: skip
"""What changes at the scale `laptop`, family by family."""

GPU: Mapping[str, Mapping[str, Any]] = {"mamujoco": {"steps": 2_000_000, "eval_episodes": 8}}
"""What changes at the scale `gpu`; battles have presets for it."""

ROLLOUT = {"mpe": 25, "mamujoco": 20, "smac": 10}
"""Steps of a rollout at the scale `smoke`."""


def plan(task: str, sharing: str, scale: Scale, algorithm: str, **settings: Any) -> Plan:
    """A task's plan at a scale, with some settings changed."""
    family = task.split("/")[0]
    kind = "many" if family == "smac" and scale != "paper" else "paper"
    names = draft(task).description.presets
    preset = f"{kind}-{sharing}"
    made = draft(task, preset if preset in names else kind if kind in names else None)
    chosen: dict[str, Any] = {}
    if scale == "gpu":
        chosen |= GPU.get(family, {})
    if scale == "laptop":
        chosen |= LAPTOP.get(family, {})
    if scale == "smoke":
        rollout = ROLLOUT.get(family, 4)
        chosen |= {**SMOKE, "rollout": rollout, "steps": 2 * SMOKE["num_envs"] * rollout}
    given = sharing if sharing in SHARINGS else {}
    chosen |= {"algorithm": algorithm} | ({"sharing": given} if given else {})
    return change(made, chosen | settings)


def cells(
    tasks: Iterable[str],
    sharings: Iterable[str],
    variants: Mapping[str, Mapping[str, Any]],
    scale: Scale,
) -> Iterator[Cell]:
    """Every task under every sharing in every variant; a variant is a name and its settings."""
    sharings = [*sharings]
    for task in tasks:
        for sharing in sharings:
            for name, settings in variants.items():
                yield Cell(task, sharing, name, plan(task, sharing, scale, **settings))


def rows(*algorithms: str) -> dict[str, dict[str, str]]:
    """Algorithms as variants: `fp3o` is called FP3O."""
    return {name.upper().replace("COPPO", "CoPPO"): {"algorithm": name} for name in algorithms}
