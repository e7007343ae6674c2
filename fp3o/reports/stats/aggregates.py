"""Aggregate scores over many tasks (Agarwal et al., 2021): robust means, profiles, curves.

Scores are one array per task, one number per seed, normalised first (`normalise_scores`). The
definitions are those of the authors' package rliable; unlike there, tasks may have different
numbers of seeds: means and profiles weigh tasks equally, the interquartile mean weighs seeds
equally.

Every interval is a percentile bootstrap that resamples seeds within each task: it describes the
variation over seeds, not over tasks. With few seeds it is a little too narrow (see the table in
`fp3o.reports.stats.intervals`). Seeds without a number (NaN) are left out.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fp3o.reports.stats.intervals import Interval, bootstrap, iqm_interval, pairs_won

Tasks = Sequence[np.ndarray]
"""One array of scores per task, one number per seed."""


class Aggregates(NamedTuple):
    """The four aggregates that are usually reported together."""

    iqm: Interval
    mean: Interval
    median: Interval
    optimality_gap: Interval


class Band(NamedTuple):
    """A line with an interval at each point; NaN where there is none."""

    at: np.ndarray
    """Thresholds or environment steps."""
    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray


def normalise_scores(
    tasks: Tasks, low: Sequence[float | int], high: Sequence[float | int]
) -> list[np.ndarray]:
    """Scores, or curves, per task on a scale where `low` is 0 and `high` is 1."""
    scaled = []
    for scores, bottom, top in zip(tasks, low, high, strict=True):
        if not -np.inf < bottom < top < np.inf:
            raise ValueError(f"low must be less than high to normalise: low={bottom}, high={top}")
        scaled.append((np.asarray(scores, float) - bottom) / (top - bottom))
    return scaled


def aggregate_scores(tasks: Tasks, gamma: float = 1.0) -> Aggregates:
    """Interquartile mean, mean, median and optimality gap with their intervals."""
    return Aggregates(
        task_iqm(tasks), task_mean(tasks), task_median(tasks), optimality_gap(tasks, gamma)
    )


def task_iqm(tasks: Tasks) -> Interval:
    """Mean of the middle half of all seeds of all tasks."""
    return iqm_interval(_scores(tasks))


def task_mean(tasks: Tasks) -> Interval:
    """Mean over tasks of the means over seeds."""
    return bootstrap(_scores(tasks), _mean)


def task_median(tasks: Tasks) -> Interval:
    """Median over tasks of the means over seeds."""
    return bootstrap(_scores(tasks), lambda strata: np.median(_means(strata), axis=0))


def optimality_gap(tasks: Tasks, gamma: float = 1.0) -> Interval:
    """Mean shortfall from `gamma`; scores above `gamma` count as `gamma`."""
    return bootstrap([np.maximum(gamma - scores, 0.0) for scores in _scores(tasks)], _mean)


def improvement_over_tasks(ours: Tasks, theirs: Tasks) -> Interval:
    """Probability that a seed of ours beats one of theirs on a task (a tie counts half)."""
    if len(ours) != len(theirs):
        raise ValueError(f"the numbers of tasks differ: {len(ours)} and {len(theirs)}")
    return bootstrap([*_scores(ours), *_scores(theirs)], _mean_pairs_won)


def performance_profile(
    tasks: Tasks, thresholds: Sequence[float | int] | np.ndarray, of_means: bool = False
) -> Band:
    """Share of seeds that score above each threshold; all tasks have the same weight.

    Args:
        tasks: the scores.
        thresholds: where the profile is evaluated.
        of_means: use the share of tasks whose mean is above the threshold instead.
    """
    scores, at = _scores(tasks), np.asarray(thresholds, float)
    if of_means:
        points = [bootstrap(scores, partial(_means_above, threshold)) for threshold in at]
    else:
        points = [bootstrap([x > threshold for x in scores], _mean) for threshold in at]
    return _band(at, points)


def sample_efficiency(
    steps: Sequence[float | int] | np.ndarray, curves: Sequence[np.ndarray]
) -> Band:
    """Interquartile mean over tasks along training, from one (seeds, steps) array per task.

    A point at which some task has no number is NaN: over fewer tasks it would not be comparable.
    """
    at = np.asarray(steps, float)
    if not curves or any(curve.ndim != 2 or curve.shape[1] != at.size for curve in curves):
        shapes = [curve.shape for curve in curves]
        raise ValueError(f"curves must be (seeds, {at.size} steps), one per task; got {shapes}")
    nothing = Interval(np.nan, np.nan, np.nan, 0)
    complete = np.all([np.isfinite(curve).any(0) for curve in curves], axis=0)
    columns = ([curve[:, k] for curve in curves] for k in range(at.size))
    points = [task_iqm(x) if full else nothing for x, full in zip(columns, complete, strict=True)]
    return _band(at, points)


def _scores(tasks: Tasks) -> list[np.ndarray]:
    scores = [np.asarray(task, float).ravel() for task in tasks]
    scores = [task[np.isfinite(task)] for task in scores]
    if empty := [str(place) for place, task in enumerate(scores) if not task.size]:
        raise ValueError(f"no score of task {', '.join(empty)} (counted from 0)")
    if not scores:
        raise ValueError("no task to aggregate")
    return scores


def _band(at: np.ndarray, points: Iterable[Interval]) -> Band:
    centre, low, high = np.array([point[:3] for point in points]).reshape(-1, 3).T
    return Band(at, centre, low, high)


def _means(strata: Sequence[np.ndarray]) -> np.ndarray:
    """Means over seeds, (tasks, draws)."""
    return np.stack([sample.mean(1) for sample in strata])


def _mean(strata: Sequence[np.ndarray]) -> np.ndarray:
    return _means(strata).mean(0)


def _means_above(threshold: float, strata: Sequence[np.ndarray]) -> np.ndarray:
    return (_means(strata) > threshold).mean(0)


def _mean_pairs_won(strata: Sequence[np.ndarray]) -> np.ndarray:
    half = len(strata) // 2
    pairs = zip(strata[:half], strata[half:], strict=True)
    return np.mean([pairs_won(pair) for pair in pairs], axis=0)
