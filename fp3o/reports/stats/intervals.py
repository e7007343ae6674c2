"""Intervals over a few seeds: Student-t, bootstrap, interquartile mean, probability of improvement.

Intervals of means, in curves and tables, are **Student-t** intervals. A run has about five seeds,
and the percentile bootstrap of five numbers is too narrow: it covers the true mean about 84 % of
the time where 95 % is stated. Student's interval has the stated coverage if returns are roughly
normal over seeds. The bootstrap is used where there is no formula (interquartile mean, probability
of improvement), with a fixed random seed, so that the same runs always give the same report.
Aggregates over many tasks are in `fp3o.reports.stats.aggregates`.

The coverage of the bootstrap is known: resampled means of n seeds vary as if the standard deviation
over seeds were √((n-1)/n) of its true value, however many tasks there are. Coverage of a
bootstrapped mean with a stated 95 %:

| seeds per task  |    5 |   10 |   20 |   50 |
|-----------------|------|------|------|------|
| one task        | 84 % | 90 % | 93 % | 94 % |
| very many tasks | 92 % | 94 % | 94 % | 95 % |

"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
"""Stated coverage of all intervals."""

DRAWS = 5000
"""Number of bootstrap resamples."""


class Interval(NamedTuple):
    """An estimate with its interval over seeds; the ends are NaN for a single seed."""

    centre: float
    low: float
    high: float
    size: int
    """Number of seeds."""

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.low))

    @property
    def half(self) -> float:
        """Half the width: the number after ±."""
        return (self.high - self.low) / 2


def t_quantile(degrees: int, share: float = (1 + LEVEL) / 2) -> float:
    """A quantile of Student's t distribution, that of 95 % intervals by default.

    NaN for no degree of freedom.
    """
    from scipy.special import stdtrit  # slow to import, and reading runs does not need it

    return float(stdtrit(degrees, share)) if degrees > 0 else float("nan")


def mean_interval(values: Sequence[float | int] | np.ndarray) -> Interval:
    """Mean over seeds with its Student-t interval; NaN (no number) is left out."""
    column = np.asarray(values, float).reshape(-1, 1)
    mean, low, high = (float(row[0]) for row in mean_band(column))
    return Interval(mean, low, high, int(np.isfinite(column).sum()))


def mean_band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, lower and upper end over the first axis (seeds) at every point; NaN is left out."""
    known = np.isfinite(values)
    count = known.sum(0)
    safe = np.maximum(count, 1)
    mean = np.where(count > 0, np.where(known, values, 0.0).sum(0) / safe, np.nan)
    square = np.where(known, (values - mean) ** 2, 0.0).sum(0)
    error = np.sqrt(square / np.maximum(count - 1, 1) / safe)
    by_count = np.array([t_quantile(n - 1) for n in range(len(values) + 1)])
    half = by_count[count] * error
    return mean, mean - half, mean + half


def median_and_deviation(values: Sequence[float | int] | np.ndarray) -> tuple[float, float]:
    """Median and standard deviation over seeds (NaN for one seed), as win rates are reported."""
    seeds = np.asarray(values, float)
    deviation = float(seeds.std(ddof=1)) if seeds.size > 1 else float("nan")
    return float(np.median(seeds)), deviation


class WinRate(NamedTuple):
    """A win rate as reported in papers on SMAC, with its variation."""

    median: float
    """Over seeds, of each seed's median over its last evaluations."""
    deviation: float
    """Standard deviation over the seeds' medians; NaN for one seed."""
    pooled_deviation: float
    """Standard deviation over the last evaluations of all seeds together."""
    size: int
    """Number of seeds."""


def smac_win_rate(win_rates: np.ndarray, last: int = 10) -> WinRate:
    """SMAC's metric of a (seeds, evaluations) array: median of the last ten, then over seeds.

    Papers rarely state which deviation they print: over seeds, or over all of the last evaluations,
    which includes the noise of 32 battles. Both are sample deviations (n - 1). NaN (no evaluation)
    is left out, as are seeds without any evaluation.
    """
    rows = [row[np.isfinite(row)][-last:] for row in np.atleast_2d(np.asarray(win_rates, float))]
    ends = [row for row in rows if row.size]
    if last < 1 or not ends:
        raise ValueError("a win rate needs at least one evaluation of one seed")
    median, deviation = median_and_deviation([float(np.median(row)) for row in ends])
    _, pooled = median_and_deviation(np.concatenate(ends))
    return WinRate(median, deviation, pooled, len(ends))


def mean_over_training(step: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Area under the curve of every seed (seeds, t) over steps (t), divided by their range.

    By trapezoids between the evaluations that a seed has; NaN for a seed with less than two.
    """
    means = []
    for row in values:
        known = np.isfinite(row)
        x, y = step[known], row[known]
        area = float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
        means.append(area / (x[-1] - x[0]) if x.size > 1 else np.nan)
    return np.array(means)


def iqm(values: Sequence[float | int] | np.ndarray) -> float:
    """Interquartile mean: the mean without the lowest and the highest quarter."""
    return float(_iqm([np.asarray(values, float).reshape(1, -1)])[0])


Statistic = Callable[[Sequence[np.ndarray]], np.ndarray]
"""Samples, each (draws, seeds) -> one number per draw."""


def bootstrap(samples: Sequence[np.ndarray], statistic: Statistic) -> Interval:
    """Stratified percentile bootstrap of a statistic of several samples.

    The samples are strata (the seeds per task, or per algorithm) and are resampled separately.
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
    """Interquartile mean over the seeds of all tasks, bootstrapped per task."""
    return bootstrap(tasks, _iqm)


def improvement(ours: np.ndarray, theirs: np.ndarray) -> Interval:
    """Probability that a seed of ours beats a seed of theirs (a tie counts half)."""
    return bootstrap([ours, theirs], pairs_won)


def pairs_won(strata: Sequence[np.ndarray]) -> np.ndarray:
    """Share of pairs of two samples in which the first is larger (a tie counts half)."""
    ours, theirs = strata
    difference = ours[:, :, None] - theirs[:, None, :]
    return ((difference > 0) + 0.5 * (difference == 0)).mean((1, 2))


def _iqm(strata: Sequence[np.ndarray]) -> np.ndarray:
    ranked = np.sort(np.concatenate(strata, axis=1), axis=1)
    cut = ranked.shape[1] // 4
    return ranked[:, cut : ranked.shape[1] - cut].mean(1)
