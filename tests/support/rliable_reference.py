"""Scores of two algorithms, and the statistics of rliable 1.2.0 for them.

It has drawn 100 000 resamples for aggregates, 50 000 for curves and profiles, 20 000 for the
probability of improvement.
"""

from collections.abc import Callable

import numpy as np
import pytest

from fp3o.reports.stats import aggregates as many
from fp3o.reports.stats import intervals as stats

OURS = [
    np.array([0.15, 0.16, 0.17, -0.14, 0.17]),
    np.array([0.49, 0.65, 0.31, 0.26, 0.42]),
    np.array([0.56, 0.53, 0.60, 0.32, 0.22]),
    np.array([0.72, 0.76, 0.95, 0.81, 0.77]),
    np.array([0.88, 1.02, 0.75, 0.76, 0.94]),
    np.array([0.95, 1.15, 1.03, 1.14, 1.12]),
]
THEIRS = [
    np.array([-0.16, 0.07, -0.11, -0.03]),
    np.array([0.30, 0.50, 0.38, 0.67]),
    np.array([0.37, 0.43, 0.72, 0.63]),
    np.array([0.65, 0.75, 0.54, 0.59]),
    np.array([1.03, 0.89, 1.00, 0.88]),
    np.array([0.90, 1.03, 1.04, 1.11]),
]
Aggregate = Callable[[list[np.ndarray]], stats.Interval]
AGGREGATES: dict[str, Aggregate] = {
    "iqm": many.task_iqm,
    "mean": many.task_mean,
    "median": many.task_median,
    "gap": many.optimality_gap,
    "gap to 0.8": lambda tasks: many.optimality_gap(tasks, 0.8),
}
RLIABLE = {
    "ours": (OURS, {
        "iqm": (0.641875, 0.5819, 0.6975),
        "mean": (0.6206666666666666, 0.5793, 0.6610),
        "median": (0.624, 0.5750, 0.6970),
        "gap": (0.39466666666666683, 0.3563, 0.4343),
        "gap to 0.8": (0.2456666666666666, 0.2117, 0.2813),
    }),
    "theirs": (THEIRS, {
        "iqm": (0.6358333333333334, 0.5708, 0.6992),
        "mean": (0.5908333333333333, 0.5500, 0.6325),
        "median": (0.585, 0.5212, 0.6662),
        "gap": (0.4179166666666667, 0.3779, 0.4571),
        "gap to 0.8": (0.27083333333333337, 0.2329, 0.3079),
    }),
}  # fmt: skip


def near(found: stats.Interval, reference: tuple[float, float, float], grid: float = 0.0) -> bool:
    """The same estimate, and bounds that agree up to the noise of two bootstraps."""
    centre, low, high = reference
    # The 2.5 % quantile of 5000 draws has a standard error of a hundredth of the interval.
    luck = 0.04 * (high - low) + grid + 1e-3
    ends = max(abs(found.low - low), abs(found.high - high))
    return found.centre == pytest.approx(centre, abs=1e-12) and ends <= luck
