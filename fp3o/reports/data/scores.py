"""What the runs reached: the scores of every run and of the reference policies, task by task."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fp3o.reports.data.measures import MEASURES, RETURN, Measure, measure
from fp3o.reports.data.record import RunRecord
from fp3o.reports.stats.intervals import Interval, iqm_interval, mean_interval

REFERENCES = {
    "random": ("random actions", "any legal action, all equally likely"),
    "still": ("standing still", "nobody moves, and whoever speaks says the same word"),
    "blind": ("best blind policy", "stands where it is best without knowing any goal"),
    "planner": ("planner", "sees the whole state and plans a few steps ahead"),
    "nearest": ("attack the nearest", "everyone attacks the nearest enemy"),
    "focus": ("focus fire", "everyone attacks the weakest enemy in range"),
    "kite": ("kiting", "shoots, and steps back while the weapon is not ready"),
}
"""Reference policies: name in words, explanation."""


class Score(NamedTuple):
    """Returns (or another number) of one run's seeds and where they come from."""

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
    runs: list[RunRecord]
    last: list[Score]
    """Of each run: the policy at the end (or the latest there is)."""
    best: list[Score | None]
    """Of each run: the best policy found in training, judged on fresh episodes."""
    references: list[Reference]
    measure: Measure = RETURN
    """What the scores are."""
    outcomes: "Mapping[str, Section]" = MappingProxyType({})
    """The same runs by what their episodes ended with beside the return, as far as they tell."""

    @property
    def wins(self) -> "Section | None":
        """The section of the win rates; None where nothing can be won."""
        return self.outcomes.get("won")

    @property
    def lead(self) -> "Section":
        """What the runs are ranked by: wins where all of them have some, else returns."""
        return self.wins if self.wins and len(self.wins.runs) == len(self.runs) else self

    @property
    def headed(self) -> "list[Section]":
        """What is shown at length: wins where there are some, then returns."""
        return [self.wins, self] if self.wins else [self]

    @property
    def order(self) -> list[int]:
        """The places of the runs, the best one first; of equal wins the higher return."""
        first, then = ([score.interval.centre for score in x.last] for x in (self.lead, self))
        return sorted(range(len(self.runs)), key=lambda k: (first[k], then[k]), reverse=True)

    def score(self, run: RunRecord) -> Score | None:
        """The run's last policy; None where it is not in this section."""
        pairs = zip(self.runs, self.last, strict=True)
        return next((score for own, score in pairs if own.path == run.path), None)

    def reference(self, name: str) -> Reference | None:
        """A reference policy by name; None where it is not in this section."""
        return next((item for item in self.references if item.name == name), None)


def sections(runs: Sequence[RunRecord]) -> list[Section]:
    """The runs task by task; runs without any number are left out."""
    found = []
    for task in dict.fromkeys(run.task for run in runs):
        if part := _section([run for run in runs if run.task == task], RETURN):
            names = dict.fromkeys([*MEASURES, *(x for run in part.runs for x in _outcomes(run))])
            others = {x: _section(part.runs, measure(x)) for x in names if x != RETURN.name}
            found.append(part._replace(outcomes={x: own for x, own in others.items() if own}))
    return found


def _section(runs: Sequence[RunRecord], what: Measure) -> Section | None:
    """The runs of one task that have such numbers; None where there is none."""
    members = [(run, score) for run in runs if (score := last(run, what))]
    if not members:
        return None
    own = [run for run, _ in members]
    finest = [best(run, what) for run in own]
    scores = [score for _, score in members]
    return Section(runs[0].task, own, scores, finest, references(own, what), what)


def _outcomes(run: RunRecord) -> list[str]:
    """The outcomes that a finished run was judged by."""
    return [str(x) for row in run.results.get("last", []) for x in row.get("outcomes") or {}]


def last(run: RunRecord, what: Measure = RETURN) -> Score | None:
    """The final evaluation; of an unfinished run what it last showed; None: nothing yet."""
    if score := _judged(run, "last", what, "last policy"):
        return score
    for kind, words in (("eval", "latest evaluation"), ("episode", "training")):
        step, value = run.series(f"{kind}_{what.name}")
        # Single iterations of training are noisy: its last tenth is taken together.
        width = 1 if kind == "eval" else max(1, step.size // 10)
        rows = []
        for seed, line in zip(sorted(run.records), value, strict=True):
            tail = line[np.isfinite(line)][-width:]
            if tail.size:
                rows.append((seed, what.scale * float(tail.mean()), np.nan))
        if score := _score(rows, words, False):
            return score
    return None


def best(run: RunRecord, what: Measure = RETURN) -> Score | None:
    """The 'absolute' evaluation; None where the run has none."""
    return _judged(run, "best", what, "best policy in training")


def _judged(run: RunRecord, kind: str, what: Measure, source: str) -> Score | None:
    """An evaluation after training."""
    episodes = int((run.results.get("evaluation") or {}).get("episodes") or 0)
    rows = [
        (int(row.get("seed", place)), what.of(row), what.error(row, episodes))
        for place, row in enumerate(run.results.get(kind, []))
    ]
    return _score(rows, source, True)


def _score(rows: Sequence[tuple[int, float, float]], source: str, final: bool) -> Score | None:
    """From seeds, numbers and their errors; seeds without a number are left out."""
    if not (there := [row for row in rows if np.isfinite(row[1])]):
        return None
    seeds, values, errors = zip(*there, strict=True)
    return Score(seeds, np.array(values), np.array(errors), source, final)


def references(runs: Sequence[RunRecord], what: Measure = RETURN) -> list[Reference]:
    """The reference policies, lowest first; of several measurements the one on most episodes."""
    found: dict[str, Reference] = {}
    for run in runs:
        for name, row in (run.results.get("references") or {}).items():
            if not isinstance(row, Mapping) or not np.isfinite(value := what.of(row)):
                continue
            episodes = int(row.get("episodes") or 0)
            new = Reference(str(name), value, what.error(row, episodes), episodes)
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
