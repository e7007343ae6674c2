"""Performance profiles and sample efficiency curves, by hand and against rliable."""

from typing import Any

import numpy as np
import pytest
from rliable_reference import OURS, THEIRS, near

from fp3o.reports.stats import aggregates as many
from fp3o.reports.stats import intervals as stats

THRESHOLDS = np.array([-0.2, 0, 0.17, 0.5, 0.75, 0.76, 1.0, 1.2])


def same_band(found: many.Band, centre: Any, low: Any, high: Any, grid: float = 0.0) -> None:
    for k, reference in enumerate(zip(centre, low, high, strict=True)):
        point = stats.Interval(*(float(x[k]) for x in found[1:]), size=5)
        assert near(point, reference, grid), (k, point, reference)


def test_profile_is_that_of_rliable() -> None:
    same_band(
        many.performance_profile(OURS, THRESHOLDS),
        np.array([30, 29, 25, 19, 13, 11, 5, 0]) / 30,
        [1.0, 0.9, 0.8333, 0.5333, 0.3333, 0.2667, 0.1, 0.0],
        [1.0, 1.0, 0.8333, 0.7333, 0.5, 0.4667, 0.2333, 0.0],
        grid=1 / 30,  # shares of 30 seeds
    )


def test_profile_of_means_is_that_of_rliable() -> None:
    same_band(
        many.performance_profile(OURS, THRESHOLDS, of_means=True),
        np.array([6, 6, 5, 3, 3, 3, 1, 0]) / 6,
        [1.0, 0.8333, 0.8333, 0.5, 0.3333, 0.3333, 0.1667, 0.0],
        [1.0, 1.0, 0.8333, 0.8333, 0.5, 0.5, 0.1667, 0.0],
    )


@pytest.mark.parametrize("of_means", [False, True])
def test_profile_falls_from_1_to_0(of_means: bool) -> None:
    band = many.performance_profile(THEIRS, np.linspace(-1, 2, 61), of_means)
    for line in band[1:]:
        assert line[0] == 1 and line[-1] == 0
        assert (np.diff(line) <= 0).all()
    assert (band.low <= band.centre).all() and (band.centre <= band.high).all()


def test_profile_says_above_not_at() -> None:
    tasks = [np.array([0.25, 0.5, 0.5, 0.75])]
    assert many.performance_profile(tasks, [0.25, 0.5, 0.75]).centre.tolist() == [0.75, 0.25, 0]
    assert many.performance_profile(tasks, [0.25, 0.5], of_means=True).centre.tolist() == [1, 0]


def test_sample_efficiency_is_that_of_rliable() -> None:
    curves = [(scores[:, None] * np.array([0.1, 0.5, 1.0])) ** 2 for scores in OURS]
    band = many.sample_efficiency([0, 100, 200], curves)
    assert band.at.tolist() == [0, 100, 200]
    same_band(
        band,
        [0.004459437500000001, 0.1114859375, 0.44594375],
        [0.0038, 0.0957, 0.3833],
        [0.0052, 0.1292, 0.5162],
    )
    assert many.task_iqm([curve[:, 1] for curve in curves])[:3] == tuple(x[1] for x in band[1:])


def test_sample_efficiency_needs_every_task_at_a_point() -> None:
    full, late = np.ones((3, 2)), np.array([[np.nan, 0.0], [np.nan, 2.0], [np.nan, np.nan]])
    band = many.sample_efficiency([0, 1], [full, late])
    assert np.isnan(band.centre[0]) and np.isnan(band.low[0])
    assert band.centre[1] == 1 and band.low[1] < 1 < band.high[1]
    with pytest.raises(ValueError, match=r"\(seeds, 3 steps\)"):
        many.sample_efficiency([0, 1, 2], [full])
    with pytest.raises(ValueError, match="one per task"):
        many.sample_efficiency([0, 1], [])
