"""SMAC's metric, the median of the last win rates, by hand."""

import numpy as np
import pytest

from fp3o.reports.stats import intervals as stats


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


def test_smac_win_rate_depends_on_last_evaluations_only() -> None:
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
