"""Numbers and findings as text."""

from pathlib import Path
from typing import Any

import pytest
from report_runs import (
    RETURNS,
    make,
)

from fp3o.reports import read_runs
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.phrasing import count_text, finding, number_text, score_text
from fp3o.reports.stats import intervals as stats


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (41_600, "41.6k"),
        (999_600, "1M"),
        (999_999, "1M"),
        (999_400, "999k"),
        (1.5e6, "1.5M"),
        (2e9, "2G"),
    ],
)
def test_counts_are_short(count: float, text: str) -> None:
    assert count_text(count) == text


def test_numbers_have_the_digits_of_their_spread() -> None:
    assert score_text(stats.Interval(-5.2149, -5.52, -4.90, 5)) == "-5.21 ± 0.31"
    assert score_text(stats.Interval(4123.4, 3990.0, 4250.0, 5)) == "4123 ± 130"
    assert number_text(-4.5) == "-4.5" and number_text(1000.0) == "1000"
    assert number_text(float("nan")) == "–"


def test_a_claim_needs_an_interval_clear_of_the_baseline(tmp_path: Path) -> None:
    def text_of(name: str, *returns: float, **settings: Any) -> str:
        return finding(scores_by_task(read_runs([make(tmp_path / name, returns, **settings)]))[0])

    clear = text_of("clear", *RETURNS)
    assert "FP3O with partial sharing reached -5.10 ± 0.28 per agent (5 seeds)" in clear
    assert "better than the baseline “best blind policy” (-10.1)" in clear
    assert clear.endswith("worse than the baseline “planner” (-4.5).")
    near = text_of("near", -9.9, -9.2, -10.6, -9.0, -9.5)
    assert "not clearly different from the baseline “best blind policy”" in near
    poor = text_of("poor", -14.0, -14.1, -14.2, -13.9, -14.0)
    assert (
        "better than the baseline “standing still” (-29.4), worse than the baseline “best" in poor
    )
    top = text_of("top", -4.6, -4.7, -4.5, -4.4, -4.8)
    assert "not clearly different from the baseline “planner” (-4.5)" in top
    one = text_of("one", -5.0)
    assert "one seed" in one and "±" not in one and "other seeds may differ" in one


def test_the_order_of_runs_is_open_where_intervals_overlap(tmp_path: Path) -> None:
    good = make(tmp_path / "good")
    same = make(tmp_path / "same", tuple(x - 0.4 for x in RETURNS), algorithm="mappo")
    poor = make(tmp_path / "poor", tuple(x - 5 for x in RETURNS), algorithm="happo")
    words = finding(scores_by_task(read_runs([good, same, poor]))[0])
    assert words.startswith("Best of 3 runs: FP3O")
    assert words.endswith("overlaps that of MAPPO · partial: their order is open.")
    assert "lies above all others" in finding(scores_by_task(read_runs([good, poor]))[0])
