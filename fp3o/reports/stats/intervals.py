"""What a few seeds can say: intervals over seeds, robust means, who beats whom.

The intervals of means, in curves and tables, are **Student-t** intervals. A run has about five
seeds, and the percentile bootstrap of five numbers is too narrow: it cannot look outside the five,
and holds the true mean about 84 % of the time where it promises 95 %. Student's interval keeps its
promise if the seeds' returns are roughly normal. The bootstrap serves where no formula exists (the
interquartile mean, the probability of improvement); it is drawn from a fixed seed, so the same runs
always give the same report. Aggregates over many tasks are in `fp3o.reports.aggregates`.

How much too narrow is known: resampled means of n seeds vary as if the seeds' standard deviation
were √((n-1)/n) of what it is. More tasks cannot mend that. A bootstrapped mean that promises 95 %
holds the truth in

| seeds of a task |    5 |   10 |   20 |   50 |
|-----------------|------|------|------|------|
| one task        | 84 % | 90 % | 93 % | 94 % |
| very many tasks | 92 % | 94 % | 94 % | 95 % |

"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
"""How often an interval should hold the truth."""

DRAWS = 5000
"""Resamples of a bootstrap."""


class Interval(NamedTuple):
    """A number with its interval over seeds; without one (a single seed) the ends are NaN."""

    centre: float
    low: float
    high: float
    size: int
    """How many seeds."""

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return bool(np.isfinite(self.low))

    @property
    def half(self) -> float:
        """Half its width: the number after ±."""
        return (self.high - self.low) / 2


_T = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution: a table, then Fisher's expansion."""
    if freedom < 1:
        return float("nan")
    if freedom <= len(_T):
        return _T[freedom - 1]
    z, n = 1.959964, freedom
    first = (z**3 + z) / (4 * n)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    return z + first + second + third


def mean_interval(values: Sequence[float | int] | np.ndarray) -> Interval:
    """Mean over seeds with its Student-t interval; seeds without a number are left out."""
    column = np.asarray(values, float).reshape(-1, 1)
    mean, low, high = (float(row[0]) for row in mean_band(column))
    return Interval(mean, low, high, int(np.isfinite(column).sum()))


def mean_band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, low and high end over the first axis (seeds) at every point; NaN is left out."""
    there = np.isfinite(values)
    count = there.sum(0)
    safe = np.maximum(count, 1)
    mean = np.where(count > 0, np.where(there, values, 0.0).sum(0) / safe, np.nan)
    square = np.where(there, (values - mean) ** 2, 0.0).sum(0)
    error = np.sqrt(square / np.maximum(count - 1, 1) / safe)
    by_count = np.array([t_quantile(n - 1) for n in range(len(values) + 1)])
    half = by_count[count] * error
    return mean, mean - half, mean + half


def median_and_deviation(values: Sequence[float | int] | np.ndarray) -> tuple[float, float]:
    """Median over seeds and their standard deviation (NaN for one seed): how win rates are told."""
    seeds = np.asarray(values, float)
    deviation = float(seeds.std(ddof=1)) if seeds.size > 1 else float("nan")
    return float(np.median(seeds)), deviation


class WinRate(NamedTuple):
    """A win rate as papers on SMAC tell it, and how it varies."""

    median: float
    """Over seeds, of each seed's median over its last evaluations."""
    deviation: float
    """Standard deviation over the seeds' medians; NaN for one seed."""
    pooled_deviation: float
    """Standard deviation over the last evaluations of all seeds together."""
    size: int
    """How many seeds."""


def smac_win_rate(win_rates: np.ndarray, last: int = 10) -> WinRate:
    """SMAC's metric of a (seeds, evaluations) array: the median of the last ten, then over seeds.

    Papers rarely say which deviation stands beside it: that over seeds, or that over all the last
    evaluations, which holds the luck of 32 battles too. Both are sample deviations (n - 1). NaN (no
    evaluation) is left out, as are seeds without any.
    """
    rows = [row[np.isfinite(row)][-last:] for row in np.atleast_2d(np.asarray(win_rates, float))]
    ends = [row for row in rows if row.size]
    if last < 1 or not ends:
        raise ValueError("a win rate needs at least one evaluation of one seed")
    median, deviation = median_and_deviation([float(np.median(row)) for row in ends])
    _, pooled = median_and_deviation(np.concatenate(ends))
    return WinRate(median, deviation, pooled, len(ends))


def iqm(values: Sequence[float | int] | np.ndarray) -> float:
    """Interquartile mean: the mean without the lowest and the highest quarter."""
    return float(_iqm([np.asarray(values, float).reshape(1, -1)])[0])


Statistic = Callable[[Sequence[np.ndarray]], np.ndarray]
"""Samples, each (draws, seeds) -> the number of every draw."""


def bootstrap(samples: Sequence[np.ndarray], statistic: Statistic) -> Interval:
    """Percentile bootstrap of a statistic of several samples, each resampled by itself.

    Samples are strata: the seeds of one task, or of one of two algorithms. They are never mixed.
    """
    strata = [np.asarray(sample, float) for sample in samples]
    count = min(sample.size for sample in strata)
    centre = float(statistic([sample[None] for sample in strata])[0])
    if count < 2:
        return Interval(centre, float("nan"), float("nan"), count)
    generator = np.random.default_rng(0)
    draws = [
        sample[generator.integers(sample.size, size=(DRAWS, sample.size))] for sample in strata
    ]
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(statistic(draws), [tail, 100 - tail])
    return Interval(centre, float(low), float(high), count)


def bootstrap_mean(values: Sequence[float | int] | np.ndarray) -> Interval:
    """Mean over seeds with a percentile bootstrap, as many papers report it."""
    return bootstrap([np.asarray(values, float)], lambda strata: strata[0].mean(1))


def iqm_interval(tasks: Sequence[np.ndarray]) -> Interval:
    """Interquartile mean over the seeds of all tasks, bootstrapped task by task."""
    return bootstrap(tasks, _iqm)


def improvement(ours: np.ndarray, theirs: np.ndarray) -> Interval:
    """Probability that a seed of ours beats a seed of theirs (a tie counts half)."""
    return bootstrap([ours, theirs], pairs_won)


def pairs_won(strata: Sequence[np.ndarray]) -> np.ndarray:
    """Of two samples: the share of pairs, one of each, that the first wins (a tie counts half)."""
    ours, theirs = strata
    difference = ours[:, :, None] - theirs[:, None, :]
    return ((difference > 0) + 0.5 * (difference == 0)).mean((1, 2))


def _iqm(strata: Sequence[np.ndarray]) -> np.ndarray:
    ranked = np.sort(np.concatenate(strata, axis=1), axis=1)
    cut = ranked.shape[1] // 4
    return ranked[:, cut : ranked.shape[1] - cut].mean(1)
