"""Comparisons seed by seed: p-values, Holm's correction, power, speed, improvement."""

import numpy as np
import pytest
import scipy.stats

from fp3o.reports.stats.comparisons import (
    POWER,
    holm,
    paired_improvement,
    paired_p_value,
    smallest_detectable,
    steps_to,
)
from fp3o.reports.stats.intervals import Interval, mean_interval


def test_the_p_value_is_that_of_students_test() -> None:
    generator = np.random.default_rng(0)
    for size in (2, 3, 5, 10, 40):
        values = generator.normal(0.4, 1.0, size)
        expected = scipy.stats.ttest_1samp(values, 0.0)[1]
        assert paired_p_value(values) == pytest.approx(expected, rel=1e-9)
        assert paired_p_value(-values) == pytest.approx(expected, rel=1e-9)
    # By hand: mean 1 and error 1, with one degree of freedom: a quarter in each tail.
    assert paired_p_value([0.0, 2.0]) == pytest.approx(0.5)


def test_the_p_value_agrees_with_the_interval() -> None:
    """It is below 5 % where the 95 % interval does not contain 0, and only there."""
    generator = np.random.default_rng(1)
    known = []
    for _ in range(200):
        values = generator.normal(1.0, 1.0, 5)
        interval = mean_interval(values)
        known.append(paired_p_value(values) < 0.05)
        assert known[-1] == (interval.low > 0 or interval.high < 0)
    assert 20 < sum(known) < 180


def test_p_values_of_too_few_and_of_equal_seeds() -> None:
    assert np.isnan(paired_p_value([])) and np.isnan(paired_p_value([1.0]))
    assert np.isnan(paired_p_value([1.0, np.nan]))
    assert paired_p_value([0.0, 0.0, 0.0]) == 1.0
    assert paired_p_value([2.0, 2.0, 2.0]) == 0.0
    assert paired_p_value([1.0, np.nan, 3.0]) == paired_p_value([1.0, 3.0])


def test_holms_correction_by_hand() -> None:
    """Times 4, 3, 2, 1 from the smallest to the largest; the third must not be below the second."""
    np.testing.assert_allclose(holm([0.04, 0.01, 0.021, 0.02]), [0.06, 0.04, 0.06, 0.06])
    np.testing.assert_allclose(holm([0.5, 0.4]), [0.8, 0.8])
    np.testing.assert_allclose(holm([0.7, 0.8, 0.9]), [1.0, 1.0, 1.0])
    assert holm([0.03]).tolist() == [0.03] and holm([]).size == 0


def test_cells_without_a_test_are_not_counted_by_holm() -> None:
    corrected = holm([np.nan, 0.01, np.nan, 0.04])
    np.testing.assert_allclose(corrected, [np.nan, 0.02, np.nan, 0.04])
    assert np.isnan(holm([np.nan, np.nan])).all()


def test_holms_correction_keeps_the_order_and_is_below_bonferronis() -> None:
    generator = np.random.default_rng(2)
    for size in (1, 2, 7, 30):
        values = generator.uniform(size=size) ** 3
        corrected = holm(values.tolist())
        assert (np.diff(corrected[np.argsort(values)]) >= 0).all()
        assert (corrected >= values).all()
        assert (corrected <= np.minimum(1.0, size * values) + 1e-15).all()


@pytest.mark.parametrize("seeds", [5, 10])
def test_the_smallest_detectable_difference_is_found_in_four_of_five(seeds: int) -> None:
    """With the true deviation, 1; the approximation is a little conservative for few seeds."""
    half = scipy.stats.t.ppf(0.975, seeds - 1) / np.sqrt(seeds)
    size = smallest_detectable(Interval(0.0, -half, half, seeds))
    draws = np.random.default_rng(3).normal(size, 1.0, (20_000, seeds))
    found = np.asarray(scipy.stats.ttest_1samp(draws, 0.0, axis=1)[1]) < 0.05
    assert POWER - 0.02 < found.mean() < POWER + 0.05


def test_the_smallest_detectable_difference_by_hand() -> None:
    # Four degrees of freedom: quantiles 2.7764 and 0.9410, standard error √0.5.
    interval = mean_interval([1, 2, 3, 4, 5])
    assert smallest_detectable(interval) == pytest.approx((2.77645 + 0.94096) * 0.5**0.5, rel=1e-5)
    assert np.isnan(smallest_detectable(mean_interval([1.0])))
    assert smallest_detectable(mean_interval([2.0, 2.0])) == 0.0


def test_steps_to_a_threshold() -> None:
    step = np.array([0.0, 100.0, 300.0, 400.0])
    values = np.array([
        [0.0, 4.0, 8.0, 2.0],  # between the second and the third evaluation
        [6.0, 0.0, 0.0, 9.0],  # from the start
        [0.0, 5.9, 1.0, 5.0],  # never
        [0.0, np.nan, 8.0, 8.0],  # between those that are known
        [np.nan, 6.0, 8.0, 9.0],  # at its first evaluation
        [np.nan] * 4,
    ])  # fmt: skip
    expected = [200.0, 0.0, np.inf, 225.0, 100.0, np.nan]
    np.testing.assert_allclose(steps_to(6.0, step, values), expected)


def test_improvement_counts_all_pairs_and_half_of_the_ties() -> None:
    """Of four pairs two are won, one is lost, one is tied."""
    assert paired_improvement(np.array([1.0, 2.0]), np.array([0.0, 2.0])).centre == 0.625
    sure = paired_improvement(np.array([3.0, 4.0, 5.0]), np.array([0.0, 1.0, 2.0]))
    assert sure[:3] == (1.0, 1.0, 1.0)
    lost = paired_improvement(np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0, 5.0]))
    assert lost[:3] == (0.0, 0.0, 0.0)


def test_the_bootstrap_draws_both_scores_of_a_seed() -> None:
    """Equal scores win half of the pairs in every draw; drawn apart they would not."""
    scores = np.array([1.0, 5.0, 2.0, 9.0, 4.0])
    assert paired_improvement(scores, scores)[:3] == (0.5, 0.5, 0.5)
    better = paired_improvement(scores + 0.5, scores)
    assert better.centre == 0.6 and better.low > 0.5
    assert better == paired_improvement(scores + 0.5, scores)
