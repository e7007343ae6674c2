"""Coverage of confidence intervals in simulations."""

import numpy as np
import pytest
import scipy.stats
from rliable_reference import Aggregate

from fp3o.reports.stats import aggregates as many
from fp3o.reports.stats import intervals as stats

TRIALS = 1000
"""Number of simulated experiments; the true value is 0.5."""


def coverage(aggregate: Aggregate, tasks: int, seeds: int) -> float:
    """Share of intervals that contain the true value; tasks lie symmetrically around it."""
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
def test_student_coverage_is_as_stated_with_few_seeds(seeds: int) -> None:
    trials = 100_000
    _, low, high = stats.mean_band(np.random.default_rng(2).normal(size=(seeds, trials)))
    error = (0.95 * 0.05 / trials) ** 0.5
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.95, abs=3 * error)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("aggregate", "tasks", "seeds"),
    [(many.task_iqm, 1, 20), (many.task_iqm, 4, 20), (many.task_mean, 1, 100)],
)
def test_bootstrap_coverage_is_as_stated_with_many_seeds(
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
