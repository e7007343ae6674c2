"""Comparisons of two algorithms seed by seed: tests, power, speed of learning.

A cell of an experiment has few seeds, and an experiment many cells. So a difference comes with
three numbers beside its interval: its p-value after Holm's correction for the number of cells, the
smallest difference that so many seeds would probably have found, and the probability that a seed
of one algorithm beats a seed of the other.
"""

from collections.abc import Sequence

import numpy as np

from fp3o.reports.stats.intervals import Interval, bootstrap, t_quantile

POWER = 0.8
"""Probability of finding the smallest detectable difference."""


def paired_p_value(differences: Sequence[float | int] | np.ndarray) -> float:
    """Two-sided p-value of Student's t-test that the mean difference is 0; NaN below two seeds."""
    from scipy.special import stdtr  # slow to import

    values = np.asarray(differences, float)
    values = values[np.isfinite(values)]
    if values.size < 2:
        return float("nan")
    error = values.std(ddof=1) / np.sqrt(values.size)
    if error == 0:
        return 1.0 if values.mean() == 0 else 0.0
    return float(2 * stdtr(values.size - 1, -abs(values.mean()) / error))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """P-values corrected for their number by Holm's method; NaN (no test) is left out.

    Each is compared with the level itself: the probability that any true null hypothesis is
    rejected is at most the level, whatever the dependence between the tests.
    """
    values = np.asarray(p_values, float)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    corrected = np.full(values.shape, np.nan)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * values[place]))
        corrected[place] = largest
    return corrected


def smallest_detectable(difference: Interval) -> float:
    """The difference that the seeds would find with a probability of 80 %; NaN if unknown.

    To first order: the two quantiles of Student's t distribution, times the standard error.
    """
    if not difference.known:
        return float("nan")
    degrees = difference.size - 1
    return difference.half * (1 + t_quantile(degrees, POWER) / t_quantile(degrees))


def steps_to(threshold: float, step: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Steps after which the curve of every seed (seeds, t) first reaches a threshold.

    Interpolated between evaluations; infinite for a seed that never reaches it, NaN for one without
    evaluations.
    """
    return np.array([_first_crossing(threshold, step, row) for row in values])


def _first_crossing(threshold: float, step: np.ndarray, row: np.ndarray) -> float:
    known = np.isfinite(row)
    x, y = step[known], row[known]
    above = np.flatnonzero(y >= threshold)
    if not y.size or not above.size:
        return np.inf if y.size else np.nan
    after = int(above[0])
    if after == 0:
        return float(x[0])
    share = (threshold - y[after - 1]) / (y[after] - y[after - 1])
    return float(x[after - 1] + share * (x[after] - x[after - 1]))


def paired_improvement(ours: np.ndarray, theirs: np.ndarray) -> Interval:
    """Probability that a seed of ours beats one of theirs, over all pairs; a tie counts half.

    The bootstrap draws seeds, and with a seed its scores under both: scores of one seed are not
    independent, since it also determines the initial state of the networks.
    """
    pairs = np.stack([np.asarray(ours, float), np.asarray(theirs, float)])
    wins = _wins(pairs[0][:, None] - pairs[1][None, :])

    def probability(strata: Sequence[np.ndarray]) -> np.ndarray:
        drawn = strata[0].astype(int)
        return wins[drawn[:, :, None], drawn[:, None, :]].mean((1, 2))

    return bootstrap([np.arange(pairs.shape[1], dtype=float)], probability)


def _wins(difference: np.ndarray) -> np.ndarray:
    return (difference > 0) + 0.5 * (difference == 0)
