"""Aggregates over tasks, SMAC's metric and the export, against definitions, hand and rliable.

The reference numbers are what rliable 1.2.0 says about `OURS` and `THEIRS`: 100 000 resamples for
aggregates, 50 000 for curves and profiles, 20 000 for the probability of improvement.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

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


def random_tasks(seed: int, tasks: int = 7, seeds: int = 6) -> list[np.ndarray]:
    """Scores with ties, some above 1."""
    values = np.random.default_rng(seed).normal(0.6, 0.4, (tasks, seeds))
    return list(np.round(values, 1))


def near(found: stats.Interval, reference: tuple[float, float, float], grid: float = 0.0) -> bool:
    """The same number, and ends that two bootstraps, each with its own luck, can share."""
    centre, low, high = reference
    # The 2.5 % quantile of 5000 draws has a standard error of a hundredth of the interval.
    luck = 0.04 * (high - low) + grid + 1e-3
    ends = max(abs(found.low - low), abs(found.high - high))
    return found.centre == pytest.approx(centre, abs=1e-12) and ends <= luck


# Aggregates ----------------------------------------------------------------------------------


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
def test_order_of_seeds_and_tasks_means_nothing(name: str) -> None:
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


def test_seeds_are_drawn_inside_of_their_task() -> None:
    tasks = [np.full(4, 0.2), np.full(5, 0.4), np.full(3, 1.5)]  # nothing varies inside
    for interval in many.aggregate_scores(tasks):
        np.testing.assert_allclose(interval[1:3], interval.centre)


def test_a_task_with_one_seed_has_no_interval() -> None:
    for interval in many.aggregate_scores([*OURS, np.array([0.5])]):
        assert np.isfinite(interval.centre) and not interval.known and interval.size == 1
    assert not many.improvement_over_tasks(OURS, [scores[:1] for scores in THEIRS]).known
    profile = many.performance_profile([np.array([0.5])], [0.4, 0.6])
    assert profile.centre.tolist() == [1, 0] and np.isnan(profile.low).all()


def test_missing_seeds_are_left_out_and_missing_tasks_refused() -> None:
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


# Probability of improvement ------------------------------------------------------------------


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


# Profiles and curves -------------------------------------------------------------------------

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


# Coverage ------------------------------------------------------------------------------------

TRIALS = 1000
"""Experiments that are made up to count how often an interval holds the truth, 0.5."""


def coverage(aggregate: Aggregate, tasks: int, seeds: int) -> float:
    """How often an interval holds the truth; tasks lie symmetrically around it."""
    generator = np.random.default_rng(11)
    levels = np.linspace(0.2, 0.8, tasks)[:, None] if tasks > 1 else 0.5
    held = 0
    for _ in range(TRIALS):
        interval = aggregate(list(generator.normal(levels, 0.1, (tasks, seeds))))
        held += interval.low <= 0.5 <= interval.high
    return held / TRIALS


def allowance(share: float) -> float:
    """Three standard errors of a share of the trials; half a percent for the few draws."""
    return 3 * (share * (1 - share) / TRIALS) ** 0.5 + 0.005


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "DRAWS", 500)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_student_intervals_keep_their_promise_with_few_seeds(seeds: int) -> None:
    trials = 100_000
    _, low, high = stats.mean_band(np.random.default_rng(2).normal(size=(seeds, trials)))
    error = (0.95 * 0.05 / trials) ** 0.5
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.95, abs=3 * error)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("aggregate", "tasks", "seeds"),
    [(many.task_iqm, 1, 20), (many.task_iqm, 4, 20), (many.task_mean, 1, 100)],
)
def test_bootstraps_keep_their_promise_with_many_seeds(
    aggregate: Aggregate, tasks: int, seeds: int
) -> None:
    assert coverage(aggregate, tasks, seeds) == pytest.approx(0.95, abs=allowance(0.95))


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("tasks", "seeds", "expected"), [(1, 5, 0.84), (8, 5, 0.91), (1, 10, 0.90), (1, 20, 0.93)]
)
def test_bootstrapped_means_of_few_seeds_are_as_narrow_as_documented(
    tasks: int, seeds: int, expected: float
) -> None:
    found = coverage(many.task_mean, tasks, seeds)
    assert found == pytest.approx(expected, abs=allowance(expected))
    # Why: a resampled mean varies √((n-1)/n) times as much as it should.
    short = 1.96 * ((seeds - 1) / seeds) ** 0.5
    theory = 1 - 2 * scipy.stats.t.sf(short, tasks * (seeds - 1))
    assert expected == pytest.approx(theory, abs=0.01)


@pytest.mark.usefixtures("few_draws")
def test_an_interquartile_mean_of_five_seeds_a_task_is_narrow_too() -> None:
    assert 0.87 < coverage(many.task_iqm, 8, 5) < 0.93


# SMAC's metric -------------------------------------------------------------------------------


def test_smac_win_rate_by_hand() -> None:
    rows = [[0, 0] + [0.5] * 5 + [1] * 5, [1, 1] + [0.25] * 10, [0, 0] + [1] * 10]
    found = stats.smac_win_rate(np.array(rows))
    # medians of the last ten: 0.75, 0.25 and 1
    assert found.median == 0.75 and found.size == 3
    squares = (0.75 - 2 / 3) ** 2 + (0.25 - 2 / 3) ** 2 + (1 - 2 / 3) ** 2
    assert found.deviation == pytest.approx((squares / 2) ** 0.5)
    # 30 evaluations, mean 2/3: 5 of 0.5, 15 of 1, 10 of 0.25
    pooled = 5 * (1 / 6) ** 2 + 15 * (1 / 3) ** 2 + 10 * (5 / 12) ** 2
    assert found.pooled_deviation == pytest.approx((pooled / 29) ** 0.5)


def test_smac_win_rate_sees_only_the_end_and_no_order_of_seeds() -> None:
    values = np.random.default_rng(4).integers(0, 33, (5, 40)) / 32
    found = stats.smac_win_rate(values)
    assert found == stats.smac_win_rate(values[::-1])
    assert found == stats.smac_win_rate(values[:, -10:])
    shuffled = np.concatenate([values[:, :-10], values[:, :-11:-1]], axis=1)
    assert stats.smac_win_rate(shuffled) == found
    percent = stats.smac_win_rate(100 * values)
    np.testing.assert_allclose(percent[:3], 100 * np.array(found[:3]))
    last = stats.smac_win_rate(values, last=1)
    assert last.median == np.median(values[:, -1])
    assert last.deviation == pytest.approx(last.pooled_deviation)


def test_smac_win_rate_of_unfinished_runs() -> None:
    missing = float("nan")
    rows = np.array([[0.0, 0.5, missing], [1.0, missing, 0.5], [missing] * 3])
    found = stats.smac_win_rate(rows, last=2)
    assert found.median == 0.5 and found.size == 2  # medians 0.25 and 0.75
    single = stats.smac_win_rate(rows[0])
    assert single.median == 0.25 and np.isnan(single.deviation)
    with pytest.raises(ValueError, match="at least one evaluation"):
        stats.smac_win_rate(rows[2:])
