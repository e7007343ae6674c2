"""Which cells of a comparison count, and how their differences are judged."""

from dataclasses import replace

import numpy as np
import pytest
from finished_cells import result, with_results

from fp3o.experiments.framework.cell_differences import (
    CellDifference,
    Comparison,
    compare_areas,
    compare_cells,
    count_signs,
)
from fp3o.experiments.framework.exclusions import aggregate_exclusions
from fp3o.experiments.framework.grid import CellResult
from fp3o.experiments.framework.paper_results import PaperScore
from fp3o.reports.stats.comparisons import paired_p_value

CLAIM = Comparison("ours", "theirs")

NOISE = np.array([-0.1, 0.0, 0.1])
"""What differs between three seeds."""

RANDOM = {"random": {"return": 5.0, "stderr": 0.1, "episodes": 1000, "role": "random"}}
"""A baseline that nothing learned is worse than."""

CURVES = [[0.0, 0.5, 0.9]] * 3
"""Evaluations of three seeds."""


def pair(difference: float, task: str = "a", spread: float = 1.0) -> list[CellResult]:
    """A cell in which ours is higher by a difference."""
    values = 10.0 + 5 * NOISE
    ours = result("ours", values + difference + spread * NOISE, task)
    return [ours, result("theirs", values, task)]


def only(results: list[CellResult], paper: dict | None = None) -> CellDifference:
    (judgement,) = compare_cells(results, CLAIM, paper)
    return judgement


def with_step(item: CellResult, step: int) -> CellResult:
    """A cell that was trained for so many steps."""
    return with_results(item, steps=step)


def test_a_cell_counts() -> None:
    item = only(pair(1.0))
    assert item.counts and item.excluded == "" and item.text == "higher" and item.sign == 1
    assert item.difference.centre == pytest.approx(1.0)
    assert item.p_value == item.corrected == pytest.approx(paired_p_value(1 + NOISE))
    assert only(pair(-1.0)).text == "lower" and only(pair(0.0)).text == "not distinguishable"


def test_cells_below_the_planned_steps_do_not_count() -> None:
    """Nor those of which one was trained for longer than the other."""
    ours, theirs = pair(1.0)
    planned = ours.run.step if ours.run else 0
    for steps in ((planned - 1, planned), (planned, planned - 1), (planned, planned + 50)):
        cells = [with_step(x, k) for x, k in zip((ours, theirs), steps, strict=True)]
        item = only(cells)
        assert item.text == item.excluded == "below the planned steps" and not item.counts
    assert only([with_step(x, planned + 50) for x in (ours, theirs)]).counts


def test_cells_in_which_nothing_was_learned_do_not_count() -> None:
    """Neither is better than the baseline, even if a third one is; one of the two is enough."""
    cells = [with_results(item, baselines=RANDOM) for item in pair(1.0)]
    assert only(cells).counts
    poor = [result(name, end + NOISE) for name, end in (("ours", 5.1), ("theirs", 3.0))]
    poor = [with_results(item, baselines=RANDOM) for item in poor]
    assert only(poor).excluded == "not learned"
    third = with_results(result("third", 7.0 + NOISE), baselines=RANDOM)
    assert only([*poor, third]).excluded == "not learned"
    assert only([with_results(result("ours", 7.0 + NOISE), baselines=RANDOM), poor[1]]).counts


def test_cells_at_the_ceiling_do_not_count() -> None:
    """Both win at least 99 % of their battles; returns have no ceiling."""
    almost, below = result("ours", [0.99, 1.0, 0.98], won=True), [0.98, 0.99, 0.99]
    assert only([almost, result("theirs", [1.0, 0.99, 1.0], won=True)]).excluded == "at the ceiling"
    assert only([almost, result("theirs", below, won=True)]).counts
    assert only([result("ours", [99.5, 99.9]), result("theirs", [99.6, 99.8])]).counts


def test_cells_that_are_equal_in_every_bit_do_not_count() -> None:
    """Equal evaluations of every seed during training, and equal final scores."""
    ends = [0.5, 0.6, 0.7]
    ours = result("ours", ends, curves=CURVES)
    assert only([ours, result("theirs", ends, curves=CURVES)]).excluded == "equal in every bit"
    other = [[0.0, 0.5 + 1e-15, 0.9], *CURVES[1:]]
    assert only([ours, result("theirs", ends, curves=other)]).counts
    assert only([ours, result("theirs", [0.5, 0.6, 0.71], curves=CURVES)]).counts
    # Without evaluations nothing is known.
    assert only([result("ours", ends), result("theirs", ends)]).counts


def test_two_names_of_one_sharing_are_one_cell() -> None:
    """`auto` that has found `full`: the same runs, counted and aggregated once."""
    ends = {"ours": 3.0 + NOISE, "theirs": 2.0 + NOISE}
    first = [result(name, values, curves=CURVES) for name, values in ends.items()]
    rename = lambda item: replace(item, cell=replace(item.cell, sharing="auto"))  # noqa: E731
    again = [rename(item) for item in first]
    one, two = compare_cells([*first, *again], CLAIM)
    assert one.counts and two.excluded == "the same runs as another sharing"
    assert count_signs([one, two]).cells == 1
    key = ("a", "auto")
    assert aggregate_exclusions([*first, *again]) == {key: "the same runs as another sharing"}
    # One of the two variants is another run: both cells count.
    other = rename(result("theirs", 2.0 + 2 * NOISE, curves=CURVES))
    _, two = compare_cells([*first, again[0], other], CLAIM)
    assert two.counts and not aggregate_exclusions([*first, again[0], other])


def test_one_common_seed_is_too_few() -> None:
    assert only([result("ours", [1.0]), result("theirs", [9.0])]).excluded == "one seed"
    none = only([result("ours", [1.0, None, 3.0]), result("theirs", [None, 2.0, None])])
    assert none.excluded == "one seed" and np.isnan(none.p_value)


def test_holms_correction_is_over_the_cells_that_count() -> None:
    """Three cells, one of which does not count: the smallest p-value is doubled."""
    cells = [*pair(1.0, "a"), *pair(1.0, "b", 2.0), *pair(9.0, "c")]
    cells[-1] = with_step(cells[-1], 50)
    items = compare_cells(cells, CLAIM)
    assert [item.counts for item in items] == [True, True, False]
    assert items[0].corrected == pytest.approx(2 * items[0].p_value)
    assert items[1].corrected == pytest.approx(items[1].p_value)
    assert np.isnan(items[2].corrected) and items[2].p_value < 0.05
    assert count_signs(items) == (2, 0, 0, 2, 0) and count_signs(items).cells == 2


def test_a_sign_may_not_survive_the_correction() -> None:
    """Two cells with p = 3 %: each is above 0 by its interval, neither with Holm's correction."""
    spread = 1 / 0.3  # of the seeds: t = 5.2 / 0.3 * 0.1 * √3
    cells = [x for task in "ab" for x in pair(1.0, task, spread)]
    items = compare_cells(cells, CLAIM)
    assert all(0.025 < item.p_value < 0.05 < item.corrected for item in items)
    assert [(item.sign, item.corrected_sign) for item in items] == [(1, 0)] * 2
    assert items[0].text == "higher, not after Holm" and count_signs(items) == (2, 0, 0, 0, 0)
    assert only(cells[:2]).text == "higher"
    lower = compare_cells([x for task in "ab" for x in pair(-1.0, task, spread)], CLAIM)
    assert lower[0].text == "lower, not after Holm" and count_signs(lower) == (0, 2, 0, 0, 0)


def test_cells_may_be_too_small_for_the_published_difference() -> None:
    """The interval contains 0, and is wider than the published difference to either side."""

    def published(difference: float) -> dict[tuple[str, str, str], PaperScore]:
        scores = {"ours": 7.0 + difference, "theirs": 7.0}
        return {("a", "full", name): PaperScore(x, 1.0) for name, x in scores.items()}

    cells = pair(0.1)  # half of the interval: 4.303 * 0.1 / √3 = 0.248
    for difference, small in ((0.24, True), (-0.24, True), (0.26, False), (-0.26, False)):
        item = only(cells, published(difference))
        assert item.published == pytest.approx(difference) and item.too_small == small
        assert (
            item.text == ("too small to judge" if small else "not distinguishable") and item.counts
        )
    assert not only(cells).too_small and only(cells).published is None
    found = only(pair(1.0), published(0.01))
    assert not found.too_small and found.text == "higher"


def test_the_paper_may_have_only_one_of_the_variants() -> None:
    paper = {("a", "full", "ours"): PaperScore(7.0, 1.0)}
    assert only(pair(1.0), paper).published is None


def test_only_cells_with_both_variants_are_compared() -> None:
    """In the same task, sharing and detail."""
    ours, theirs = pair(1.0)
    assert compare_cells([ours], CLAIM) == [] == compare_cells([theirs], CLAIM)
    assert (
        compare_cells([ours, replace(theirs, cell=replace(theirs.cell, sharing="none"))], CLAIM)
        == []
    )
    assert (
        compare_cells([ours, replace(theirs, cell=replace(theirs.cell, detail="200"))], CLAIM) == []
    )
    assert compare_cells([ours, replace(theirs, run=None)], CLAIM) == []


def test_aggregates_leave_out_what_does_not_count() -> None:
    """A task is left out if any variant is unfinished, or all are at the ceiling."""
    full, half = [1.0, 0.995, 1.0], [0.5, 0.6, 0.4]
    cells = [
        result(name, wins, task, won=True)
        for task, ends in (("a", (full, full)), ("b", (full, half)), ("c", (half, half)))
        for name, wins in zip(("ours", "theirs"), ends, strict=True)
    ]
    cells[-1] = with_step(cells[-1], 50)
    cells += [with_results(item, baselines=RANDOM) for item in pair(-20.0, "d")[:1]]
    assert aggregate_exclusions(cells) == {
        ("a", "full"): "at the ceiling",
        ("c", "full"): "below the planned steps",
        ("d", "full"): "not learned",
    }


def test_areas_under_the_curve_count_at_the_ceiling() -> None:
    """Two variants that both win all battles in the end may learn at different speeds."""
    fast = [[0.0, 0.9 + x, 1.0] for x in NOISE / 10]
    slow = [[0.0, 0.2, 1.0]] * 3
    ours, theirs = (
        result(name, [1.0] * 3, won=True, curves=rows)
        for name, rows in (("ours", fast), ("theirs", slow))
    )
    assert only([ours, theirs]).excluded == "at the ceiling"
    (area,) = compare_areas([ours, theirs], CLAIM)
    assert area.counts and area.text == "higher"
    assert area.difference.centre == pytest.approx(35.0)  # in percent: (0.9 - 0.2) / 2
    short = [with_step(item, 50) for item in (ours, theirs)]
    short = [replace(x, run=replace(x.run, metrics=halved(x))) for x in short if x.run]
    assert [item.excluded for item in compare_areas(short, CLAIM)] == ["below the planned steps"]
    assert compare_areas(pair(1.0), CLAIM) == []  # no evaluations


def halved(item: CellResult) -> dict:
    """The metrics of a cell at half of their steps."""
    assert item.run
    return {
        seed: {k: {**line, "step": line["step"] // 2} for k, line in lines.items()}
        for seed, lines in item.run.metrics.items()
    }
