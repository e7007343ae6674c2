"""What the runs reached: the scores of every run and of the reference policies, task by task."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fp3o.reports.read import Run
from fp3o.reports.statistics import Interval, iqm_interval, mean_interval

REFERENCES = {
    "random": ("random actions", "any legal action, all equally likely"),
    "still": ("standing still", "nobody moves, and whoever speaks says the same word"),
    "blind": ("best blind policy", "stands where it is best without knowing any goal"),
    "planner": ("planner", "sees the whole state and plans a few steps ahead"),
}
"""Reference policies: name in words, explanation."""


class Score(NamedTuple):
    """Returns of one run's seeds and where they come from."""

    seeds: tuple[int, ...]
    values: np.ndarray
    errors: np.ndarray
    """Standard errors over evaluation episodes; NaN where unknown."""
    source: str
    """What was measured, in words."""
    final: bool
    """Whether this is the evaluation at the end of the run."""

    @property
    def interval(self) -> Interval:
        """Mean with its interval over seeds."""
        return mean_interval(self.values)

    @property
    def range(self) -> Interval:
        """What claims rest on: the interval over seeds, of a single seed that over episodes."""
        over_seeds = self.interval
        if over_seeds.size != 1 or not np.isfinite(self.errors).any():
            return over_seeds
        half = 1.96 * float(np.nanmax(self.errors))
        return over_seeds._replace(low=over_seeds.centre - half, high=over_seeds.centre + half)


class Reference(NamedTuple):
    """A policy that was not learned, played on the same task."""

    name: str
    value: float
    stderr: float
    episodes: int

    @property
    def label(self) -> str:
        """Its name in words."""
        return REFERENCES.get(self.name, (self.name, ""))[0]


class Section(NamedTuple):
    """The runs on one task."""

    task: str
    runs: list[Run]
    last: list[Score]
    """Of each run: the policy at the end (or the latest there is)."""
    best: list[Score | None]
    """Of each run: the best policy found in training, judged on fresh episodes."""
    references: list[Reference]


def sections(runs: Sequence[Run]) -> list[Section]:
    """The runs task by task; runs without any number are left out."""
    found = []
    for task in dict.fromkeys(run.task for run in runs):
        members = [(run, score) for run in runs if run.task == task and (score := last(run))]
        if members:
            own = [run for run, _ in members]
            scores = [score for _, score in members]
            found.append(Section(task, own, scores, [*map(best, own)], references(own)))
    return found


def last(run: Run) -> Score | None:
    """The final evaluation; of an unfinished run what it last showed; None: nothing yet."""
    if score := _score(run.results.get("last", []), "last policy", True):
        return score
    for name, words in (("eval_return", "latest evaluation"), ("episode_return", "training")):
        step, value = run.series(name)
        # Single iterations of training are noisy: its last tenth is taken together.
        width = 1 if name == "eval_return" else max(1, step.size // 10)
        rows = []
        for seed, line in zip(sorted(run.records), value, strict=True):
            tail = line[np.isfinite(line)][-width:]
            if tail.size:
                rows.append({"seed": seed, "return": float(tail.mean())})
        if score := _score(rows, words, False):
            return score
    return None


def best(run: Run) -> Score | None:
    """The 'absolute' evaluation; None where the run has none."""
    return _score(run.results.get("best", []), "best policy in training", True)


def _score(rows: Sequence[Mapping[str, Any]], source: str, final: bool) -> Score | None:
    there = [row for row in rows if isinstance(row.get("return"), int | float)]
    if not there:
        return None
    values = np.array([row["return"] for row in there], float)
    errors = np.array([np.nan if row.get("stderr") is None else row["stderr"] for row in there])
    seeds = tuple(int(row.get("seed", place)) for place, row in enumerate(there))
    return Score(seeds, values, errors.astype(float), source, final)


def references(runs: Sequence[Run]) -> list[Reference]:
    """The reference policies, lowest first; of several measurements the one on most episodes."""
    found: dict[str, Reference] = {}
    for run in runs:
        for name, row in (run.results.get("references") or {}).items():
            if not isinstance(row, Mapping) or not isinstance(row.get("return"), int | float):
                continue
            stderr = np.nan if row.get("stderr") is None else float(row["stderr"])
            new = Reference(str(name), float(row["return"]), stderr, int(row.get("episodes") or 0))
            if name not in found or new.episodes > found[name].episodes:
                found[name] = new
    return sorted(found.values(), key=lambda reference: reference.value)


def overall(parts: Sequence[Section]) -> list[tuple[str, Interval]]:
    """Interquartile means over several tasks, for the labels that were run on all of them.

    Returns of different tasks are made comparable by the references: 0 is random, 1 the planner.
    """
    scaled: list[dict[str, np.ndarray]] = []
    for part in parts:
        known = {reference.name: reference.value for reference in part.references}
        if not {"random", "planner"} <= known.keys() or known["random"] == known["planner"]:
            return []
        span = known["planner"] - known["random"]
        pairs = zip(part.runs, part.last, strict=True)
        scaled.append({run.label: (score.values - known["random"]) / span for run, score in pairs})
    if len(scaled) < 2:
        return []
    common = [label for label in scaled[0] if all(label in part for part in scaled)]
    return [(label, iqm_interval([part[label] for part in scaled])) for label in common]
