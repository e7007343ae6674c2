"""Scores of runs and baselines, grouped by task."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fp3o.errors import printable
from fp3o.reports.data.measures import (
    MEASURES,
    RETURN,
    Measure,
    declared_measures,
    find_measure,
)
from fp3o.reports.data.metrics import is_built_in
from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.stats.intervals import Interval, iqm_interval, mean_interval

MOST_CUSTOM_METRICS = 30
"""Maximum number of custom metrics of a task that are shown."""


class Score(NamedTuple):
    """A measure of one run, per seed."""

    seeds: tuple[int, ...]
    values: np.ndarray
    errors: np.ndarray
    """Standard errors over evaluation episodes; NaN if unknown."""
    source: str
    """Which policy and evaluation the values come from, as text."""
    final: bool
    """Whether this is the evaluation at the end of the run."""

    @property
    def interval(self) -> Interval:
        """Mean and its interval over seeds."""
        return mean_interval(self.values)

    @property
    def evidence(self) -> Interval:
        """Interval for claims: over seeds; for a single seed, over its evaluation episodes."""
        over_seeds = self.interval
        if over_seeds.size != 1 or not np.isfinite(self.errors).any():
            return over_seeds
        half = 1.96 * float(np.nanmax(self.errors))
        return over_seeds._replace(low=over_seeds.centre - half, high=over_seeds.centre + half)


class BaselineScore(NamedTuple):
    """Score of a scripted policy on the same task."""

    name: str
    title: str
    summary: str
    value: float
    stderr: float
    episodes: int


class TaskScores(NamedTuple):
    """Scores of the runs on one task."""

    task: str
    runs: list[RunRecord]
    last: list[Score]
    """Per run: the policy at the end of training, or the latest evaluation so far."""
    best: list[Score | None]
    """Per run: the best policy found during training, evaluated on fresh episodes."""
    baselines: list[BaselineScore]
    """Scripted policies, lowest score first."""
    measure: Measure = RETURN
    episode_metrics: "Mapping[str, TaskScores]" = MappingProxyType({})
    """The same runs by other measures than the return, where they have them."""
    other_metrics: "Mapping[str, TaskScores]" = MappingProxyType({})
    """The same runs by declared metrics, and by those that fp3o does not know."""

    @property
    def wins(self) -> "TaskScores | None":
        """Scores by win rate; None if the task has no wins."""
        return self.episode_metrics.get("won")

    @property
    def ranking(self) -> "TaskScores":
        """Scores that rank the runs: win rates if all runs have them, else returns."""
        return self.wins if self.wins and len(self.wins.runs) == len(self.runs) else self

    @property
    def main_measures(self) -> "list[TaskScores]":
        """Scores shown in detail: win rates, where there are some, then returns."""
        return [self.wins, self] if self.wins else [self]

    @property
    def order(self) -> list[int]:
        """Indices of the runs, best first; equal win rates are ordered by return."""
        first, then = ([score.interval.centre for score in x.last] for x in (self.ranking, self))
        return sorted(range(len(self.runs)), key=lambda k: (first[k], then[k]), reverse=True)

    def score(self, run: RunRecord) -> Score | None:
        """Score of a run's last policy; None if the run has none by this measure."""
        pairs = zip(self.runs, self.last, strict=True)
        return next((score for other, score in pairs if other.path == run.path), None)

    def baseline(self, name: str) -> BaselineScore | None:
        """A baseline by name; None if it has no such score."""
        return next((item for item in self.baselines if item.name == name), None)


def scores_by_task(runs: Sequence[RunRecord]) -> list[TaskScores]:
    """Group runs by task; runs without any return are left out."""
    groups = []
    for task in dict.fromkeys(run.task for run in runs):
        if scores := _task_scores([run for run in runs if run.task == task], RETURN):
            declared = {k: v for run in runs for k, v in declared_measures(run.metadata).items()}
            names = dict.fromkeys([*MEASURES, *(x for run in scores.runs for x in _metrics(run))])
            known = _by_measure(scores.runs, [x for x in names if x != RETURN.name], declared)
            others = sorted({*declared, *(x for run in scores.runs for x in _custom_keys(run))})
            custom = _by_measure(scores.runs, others[:MOST_CUSTOM_METRICS], declared)
            groups.append(scores._replace(episode_metrics=known, other_metrics=custom))
    return groups


def _by_measure(
    runs: Sequence[RunRecord], names: Sequence[str], declared: Mapping[str, Measure]
) -> dict[str, TaskScores]:
    """Scores by each of some measures, without those that no run has."""
    scores = {x: _task_scores(runs, declared.get(x) or find_measure(x)) for x in names}
    return {name: found for name, found in scores.items() if found}


def _custom_keys(run: RunRecord) -> set[str]:
    """Keys in `metrics.jsonl` that are no metrics of fp3o itself."""
    lines = (line for seed in run.metrics.values() for line in seed.values())
    return {key for key in set().union(*lines) if not is_built_in(key)}


def metric_key(run: RunRecord, measure: Measure) -> str:
    """The key of a measure in `metrics.jsonl`: an evaluation, else training, else its name."""
    keys = f"eval_{measure.name}", f"episode_{measure.name}"
    return next((key for key in keys if run.series(key).step.size), measure.name)


def scalar_series(run: RunRecord, key: str) -> Series:
    """A metric over training (seeds, t): after the last stage, as the mean over agents."""
    step, value = run.series(key, -1)
    if value.ndim == 2:
        return Series(step, value)
    known = np.isfinite(value)
    total, count = np.where(known, value, 0.0).sum(-1), known.sum(-1)
    return Series(step, np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _task_scores(runs: Sequence[RunRecord], measure: Measure) -> TaskScores | None:
    """Scores of the runs that have this measure; None if no run has it."""
    pairs = [(run, score) for run in runs if (score := last_score(run, measure))]
    if not pairs:
        return None
    members, last = [run for run, _ in pairs], [score for _, score in pairs]
    best = [_final_score(run, "best", measure, "best policy in training") for run in members]
    baselines = _baselines(members, measure)
    return TaskScores(runs[0].task, members, last, best, baselines, measure)


def _metrics(run: RunRecord) -> list[str]:
    """Names of the episode metrics in a run's final evaluation."""
    rows = run.results.get("last", [])
    return [str(name) for row in rows for name in row.get("episode_metrics") or {}]


def last_score(run: RunRecord, measure: Measure = RETURN) -> Score | None:
    """The final evaluation, or the latest one of an unfinished run; None: no number yet."""
    if score := _final_score(run, "last", measure, "last policy"):
        return score
    sources = {"eval_": "latest evaluation", "episode_": "training", "": "training"}
    for prefix, source in sources.items():
        step, value = scalar_series(run, prefix + measure.name)
        # Single iterations of training are noisy: average over the last tenth.
        width = 1 if prefix == "eval_" else max(1, step.size // 10)
        rows = []
        for seed, line in zip(sorted(run.metrics), value, strict=True):
            tail = line[np.isfinite(line)][-width:]
            if tail.size:
                rows.append((seed, measure.scale * float(tail.mean()), np.nan))
        if score := _score(rows, source, final=False):
            return score
    return None


def _final_score(run: RunRecord, key: str, measure: Measure, source: str) -> Score | None:
    """Scores under `key` of `results.json`."""
    episodes = int((run.results.get("evaluation") or {}).get("episodes") or 0)
    rows = [
        (int(row.get("seed", k)), measure.value(row), measure.standard_error(row, episodes))
        for k, row in enumerate(run.results.get(key, []))
    ]
    return _score(rows, source, final=True)


def _score(rows: Sequence[tuple[int, float, float]], source: str, final: bool) -> Score | None:
    """Score of (seed, value, error) rows; seeds without a finished episode are left out."""
    if not (known := [row for row in rows if np.isfinite(row[1])]):
        return None
    seeds, values, errors = zip(*known, strict=True)
    return Score(seeds, np.array(values), np.array(errors), source, final)


def _baselines(runs: Sequence[RunRecord], measure: Measure) -> list[BaselineScore]:
    """Baselines, lowest first; of several evaluations the one with most episodes."""
    known: dict[str, BaselineScore] = {}
    for run in runs:
        for name, row in (run.results.get("baselines") or {}).items():
            if not isinstance(row, Mapping) or not np.isfinite(value := measure.value(row)):
                continue
            episodes = int(row.get("episodes") or 0)
            title = printable(row.get("title") or name, 60)
            summary = printable(row.get("summary") or "", 300)
            error = measure.standard_error(row, episodes)
            new = BaselineScore(printable(name, 60), title, summary, value, error, episodes)
            if new.name not in known or new.episodes > known[new.name].episodes:
                known[new.name] = new
    return sorted(known.values(), key=lambda baseline: baseline.value)


def iqm_over_tasks(tasks: Sequence[TaskScores]) -> list[tuple[str, Interval]]:
    """Interquartile mean over several tasks per label, for labels that were run on all of them.

    Returns are normalised per task by its lowest baseline (0) and its highest one (1).
    """
    normalised: list[dict[str, np.ndarray]] = []
    for scores in tasks:
        known = [baseline.value for baseline in scores.baselines]
        if len(known) < 2 or known[0] == known[-1]:
            return []
        span = known[-1] - known[0]
        pairs = zip(scores.runs, scores.last, strict=True)
        normalised.append({run.label: (x.values - known[0]) / span for run, x in pairs})
    if len(normalised) < 2:
        return []
    common = [label for label in normalised[0] if all(label in task for task in normalised)]
    return [(label, iqm_interval([task[label] for task in normalised])) for label in common]
