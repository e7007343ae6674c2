"""Intervals over seeds: Student-t, bootstrap, interquartile mean."""

import numpy as np
import pytest
import scipy.stats

from fp3o.reports.phrasing import score_text
from fp3o.reports.stats import intervals as stats


def test_student_interval_against_hand_and_scipy() -> None:
    # 1..5: mean 3, sd √2.5, standard error √0.5, t(4) = 2.7764
    interval = stats.mean_interval([1, 2, 3, 4, 5])
    assert interval.centre == 3 and interval.size == 5
    assert interval.half == pytest.approx(2.7764451 * 0.5**0.5)
    for freedom in (1, 2, 4, 9, 10, 30, 200):
        assert stats.t_quantile(freedom) == pytest.approx(
            scipy.stats.t.ppf(0.975, freedom), abs=2e-4
        )


def test_missing_numbers_are_left_out_and_one_seed_has_no_interval() -> None:
    mean, low, high = stats.mean_band(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_allclose(mean, [2, 5, np.nan])
    np.testing.assert_allclose(high - low, [2 * 12.7062, np.nan, np.nan], rtol=1e-5)
    single = stats.mean_interval([7.0])
    assert single.centre == 7 and not single.known and score_text(single) == "7"


def test_interquartile_mean_drops_a_quarter_at_each_end() -> None:
    assert stats.iqm([0, 1, 2, 3, 4, 5, 6, 100]) == 3.5
    assert stats.iqm([100, 1, 2, 3, -50]) == 2
    values = np.random.default_rng(3).normal(size=23)
    assert stats.iqm(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25))


def test_bootstrap_is_reproducible_stratified_and_near_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(size=400)
    interval = stats.bootstrap_mean(values)
    assert interval == stats.bootstrap_mean(values)
    assert interval.half == pytest.approx(1.96 * values.std() / 20, rel=0.06)
    # Two tasks that do not vary inside: a draw that mixed them would vary.
    tasks = [np.zeros(4), np.ones(4)]
    assert stats.iqm_interval(tasks)[:3] == (0.5, 0.5, 0.5)
    assert not stats.bootstrap_mean([1.0]).known


def test_probability_of_improvement_counts_pairs() -> None:
    ours, theirs = np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0])
    # of six pairs: four won, one tie, one lost
    assert stats.improvement(ours, theirs).centre == pytest.approx(4.5 / 6)
    sure = stats.improvement(ours + 10, theirs)
    assert sure[:3] == (1, 1, 1)
