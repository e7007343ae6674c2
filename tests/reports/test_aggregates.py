"""Aggregates over tasks, against their definitions, by hand and against rliable."""

import numpy as np
import pytest
import scipy.stats
from rliable_reference import AGGREGATES, OURS, RLIABLE, THEIRS, near

from fp3o.reports.stats import aggregates as many
from fp3o.reports.stats import intervals as stats


def random_tasks(seed: int, tasks: int = 7, seeds: int = 6) -> list[np.ndarray]:
    """Scores with ties, some above 1."""
    values = np.random.default_rng(seed).normal(0.6, 0.4, (tasks, seeds))
    return list(np.round(values, 1))


@pytest.mark.parametrize("algorithm", RLIABLE)
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_and_their_intervals_are_those_of_rliable(algorithm: str, name: str) -> None:
    tasks, reference = RLIABLE[algorithm]
    assert near(AGGREGATES[name](tasks), reference[name])


@pytest.mark.parametrize("seed", range(3))
def test_aggregates_against_the_definitions(seed: int) -> None:
    tasks = random_tasks(seed)
    matrix = np.array(tasks)
    found = many.aggregate_scores(tasks, gamma=0.9)
    assert found.iqm.centre == pytest.approx(scipy.stats.trim_mean(matrix.ravel(), 0.25))
    assert found.mean.centre == pytest.approx(matrix.mean())
    assert found.median.centre == pytest.approx(np.median(matrix.mean(1)))
    missing = [max(0.9 - x, 0) for x in matrix.ravel()]
    assert found.optimality_gap.centre == pytest.approx(np.mean(missing))
    assert all(part.low <= part.centre <= part.high and part.size == 6 for part in found)


def test_by_hand_with_different_numbers_of_seeds() -> None:
    tasks = [np.array([0.0, 1.0]), np.array([0.2, 0.4, 0.6, 2.0]), np.array([0.9, 0.9])]
    # Means over seeds 0.5, 0.8 and 0.9: every task weighs the same.
    assert many.task_mean(tasks).centre == pytest.approx(2.2 / 3)
    assert many.task_median(tasks).centre == pytest.approx(0.8)
    # 0, 0.2 | 0.4, 0.6, 0.9, 0.9 | 1, 2: every seed weighs the same.
    assert many.task_iqm(tasks).centre == pytest.approx(0.7)
    # To 1 are missing 0.5, (0.8 + 0.6 + 0.4 + 0) / 4 and 0.1.
    assert many.optimality_gap(tasks).centre == pytest.approx((0.5 + 0.45 + 0.1) / 3)
    # Above 0.5: one of two, two of four, all.
    assert many.performance_profile(tasks, [0.5]).centre == pytest.approx([2 / 3])
    assert many.task_mean(tasks).size == 2


@pytest.mark.parametrize("name", AGGREGATES)
def test_order_of_seeds_and_tasks_does_not_matter(name: str) -> None:
    aggregate = AGGREGATES[name]
    there, back = aggregate(OURS), aggregate([scores[::-1] for scores in OURS[::-1]])
    assert near(back, there[:3])


def test_aggregates_move_with_the_scale() -> None:
    scaled = [3 * scores - 2 for scores in OURS]
    for aggregate in (many.task_iqm, many.task_mean, many.task_median):
        plain = np.array(aggregate(OURS)[:3])
        np.testing.assert_allclose(aggregate(scaled)[:3], 3 * plain - 2)
    gap = np.array(many.optimality_gap(OURS)[:3])
    np.testing.assert_allclose(many.optimality_gap(scaled, gamma=1.0)[:3], 3 * gap)


def test_one_task_is_the_plain_statistic() -> None:
    for scores in OURS:
        assert many.task_iqm([scores]).centre == stats.iqm(scores)
        assert many.task_mean([scores]) == stats.bootstrap_mean(scores)
        assert many.task_median([scores]) == many.task_mean([scores])


def test_seeds_are_resampled_within_their_task() -> None:
    tasks = [np.full(4, 0.2), np.full(5, 0.4), np.full(3, 1.5)]  # nothing varies inside
    for interval in many.aggregate_scores(tasks):
        np.testing.assert_allclose(interval[1:3], interval.centre)


def test_a_task_with_one_seed_has_no_interval() -> None:
    for interval in many.aggregate_scores([*OURS, np.array([0.5])]):
        assert np.isfinite(interval.centre) and not interval.known and interval.size == 1
    assert not many.improvement_over_tasks(OURS, [scores[:1] for scores in THEIRS]).known
    profile = many.performance_profile([np.array([0.5])], [0.4, 0.6])
    assert profile.centre.tolist() == [1, 0] and np.isnan(profile.low).all()


def test_missing_seeds_are_left_out_and_missing_tasks_rejected() -> None:
    holed = [np.append(scores, np.nan) for scores in OURS]
    assert many.aggregate_scores(holed) == many.aggregate_scores(OURS)
    with pytest.raises(ValueError, match="no score of task 1"):
        many.task_iqm([np.ones(3), np.array([np.nan]), np.ones(2)])
    with pytest.raises(ValueError, match="no task"):
        many.task_mean([])


def test_normalising_puts_low_at_0_and_high_at_1() -> None:
    returns = [np.array([-30.0, -5.0, -17.5]), np.array([[0.0, 20.0], [25.0, 5.0]])]
    first, second = many.normalise_scores(returns, [-30, 0], [-5, 20])
    assert first.tolist() == [0, 1, 0.5]
    assert second.tolist() == [[0, 1], [1.25, 0.25]]
    with pytest.raises(ValueError, match="low must be less than high"):
        many.normalise_scores(returns, [-30, 20], [-5, 20])
    with pytest.raises(ValueError):
        many.normalise_scores(returns, [-30], [-5])


def test_improvement_is_that_of_rliable() -> None:
    found = many.improvement_over_tasks(OURS, THEIRS)
    assert near(found, (0.5833333333333334, 0.45, 0.7208333333333332))


@pytest.mark.parametrize("seed", range(3))
def test_improvement_is_the_mean_of_mann_whitney(seed: int) -> None:
    ours, theirs = random_tasks(seed), random_tasks(seed + 9, seeds=4)
    pairs = list(zip(ours, theirs, strict=True))
    wins = [scipy.stats.mannwhitneyu(x, y).statistic / (x.size * y.size) for x, y in pairs]
    found = many.improvement_over_tasks(ours, theirs).centre
    assert found == pytest.approx(np.mean(wins))
    assert found + many.improvement_over_tasks(theirs, ours).centre == pytest.approx(1)
    # Only the order of scores counts.
    curved = [[np.exp(3 * scores) for scores in side] for side in (ours, theirs)]
    assert many.improvement_over_tasks(*curved).centre == found


def test_improvement_over_itself_and_over_other_tasks() -> None:
    assert many.improvement_over_tasks(OURS, OURS).centre == 0.5
    one = many.improvement_over_tasks(OURS[:1], THEIRS[:1])
    assert one == stats.improvement(OURS[0], THEIRS[0])
    with pytest.raises(ValueError, match="the numbers of tasks differ: 6 and 5"):
        many.improvement_over_tasks(OURS, THEIRS[:-1])
