"""Comparisons of variants in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from finished_cells import result, with_results

from fp3o.experiments.framework.cell_differences import Comparison, compare_cells
from fp3o.experiments.framework.grid import CellResult
from fp3o.experiments.framework.paper_results import PaperScore
from fp3o.experiments.framework.ranks import MEAN, MEDIAN_OF_32, Rank, count_highest
from fp3o.experiments.framework.verdicts import METHOD, claim_verdict, compare_variants
from fp3o.experiments.paper.convergence import _claim_verdict as convergence_verdict
from fp3o.experiments.paper.instability_order import _claim_verdict as products_verdict

CLAIM = Comparison("FP3O", "MAPPO")

EQUAL = Comparison("FP3O", "MAPPO", "equal")

NOISE = np.array([-0.1, 0.0, 0.1])
"""What differs between three seeds: the interval of a difference has a half width of 0.25."""

BARELY = 10.0 / 3.0
"""Factor of the noise with which a difference of 1 has p = 3 %: no longer with two cells."""

Paper = dict[tuple[str, str, str], PaperScore]


def cells(
    *differences: float, spread: float = 1.0, first: str = "a", **more: Any
) -> list[CellResult]:
    """One task per difference, named by the alphabet; `more` are metrics of our runs."""
    results = []
    for k, difference in enumerate(differences):
        task, base = f"toy/{chr(ord(first) + k)}", 10.0 + 5 * NOISE
        ours, curves = base + difference + spread * NOISE, [[0.0, 5.0 + x, 10.0] for x in NOISE]
        results.append(result("FP3O", ours, task, curves=curves, **more))
        results.append(result("MAPPO", base, task, curves=curves, actor_steps=4))
    return results


def published(difference: float, tasks: str) -> Paper:
    """A paper in which FP3O is higher by a difference."""
    scores = {"FP3O": 7.0 + difference, "MAPPO": 7.0}
    return {
        (f"toy/{task}", "full", x): PaperScore(y, 1.0) for task in tasks for x, y in scores.items()
    }


def verdict(
    results: Sequence[CellResult], comparison: Comparison = CLAIM, paper: Paper | None = None
) -> str:
    return claim_verdict(compare_cells(results, comparison, paper), comparison, paper)


def unfinished(results: Sequence[CellResult]) -> list[CellResult]:
    """Cells whose runs differ in their length: they do not count."""
    return [with_results(x, steps=200 + 50 * k) for k, x in enumerate(results)]


@pytest.mark.parametrize(
    ("differences", "sentence"),
    [
        ((1.0,), "The paper's claim holds in 1 cell that counts."),
        ((1.0, 2.0, 3.0), "The paper's claim holds in all 3 cells that count."),
        (
            (1.0, 0.0, 2.0),
            "The paper's claim holds in 2 of 3 cells that count, and is neither confirmed nor "
            "refuted in the others.",
        ),
        ((0.0,), "The paper's claim is neither confirmed nor refuted by the 1 cell that counts."),
        (
            (0.0, 0.1),
            "The paper's claim is neither confirmed nor refuted by the 2 cells that count.",
        ),
        (
            (1.0, 2.0, 3.0, -9.0),
            "The paper's claim is refuted here: “FP3O” is lower in 1 of 4 cells that count.",
        ),
        (
            (-1.0,),
            "The paper's claim is refuted here: “FP3O” is lower in 1 of 1 cell that counts.",
        ),
        ((), "The paper's claim is not tested: none of its cells counts."),
    ],
)
def test_a_claim_about_all_cells(differences: Sequence[float], sentence: str) -> None:
    """It holds in those above 0; one below it, after Holm's correction, refutes it."""
    assert verdict(cells(*differences)) == sentence


def test_what_holms_correction_leaves_open_neither_refutes_nor_confirms() -> None:
    """Intervals below 0 and above it in one of two cells each, both with p = 3 %."""
    for difference in (-1.0, 1.0):
        results = cells(difference, 0.0, spread=BARELY)
        assert compare_cells(results, CLAIM)[0].sign == np.sign(difference)
        assert verdict(results) == (
            "The paper's claim is neither confirmed nor refuted by the 2 cells that count."
        )
    # Above 0 in all cells, none of which Holm's correction leaves.
    assert "neither confirmed nor refuted" in verdict(cells(1.0, 1.0, spread=BARELY))


def test_cells_that_do_not_count_do_not_decide() -> None:
    worse = unfinished(cells(-9.0, first="b"))
    assert verdict([*cells(1.0), *worse]) == "The paper's claim holds in 1 cell that counts."
    assert verdict(worse) == "The paper's claim is not tested: none of its cells counts."


def test_only_cells_with_published_numbers_decide() -> None:
    """If the paper has numbers at all; those of it that do not count are named."""
    results, paper = cells(1.0, -9.0), published(2.0, "a")
    assert verdict(results, CLAIM, paper) == "The paper's claim holds in 1 cell that counts."
    assert "refuted here: “FP3O” is lower in 1 of 2" in verdict(results)
    assert verdict(results, CLAIM, published(2.0, "acd")) == (
        "The paper's claim holds in 1 cell that counts (the paper has 3; 1 here with fewer steps)."
    )
    lines = compare_variants(results, CLAIM, paper)
    assert "higher than “MAPPO” in 1 of 2 cells, lower in 1" in lines[0]
    assert lines[1] == "The paper's claim holds in 1 cell that counts."
    mixed = [*unfinished(cells(1.0)), *cells(1.0, first="b")]
    for comparison, others in (
        (CLAIM, "“FP3O” is higher in 1 of 1 cell and lower in 0 (Holm: 1 and 0)"),
        (EQUAL, "a difference in 1 of 1 cell: b full +1.00 ± 0.25 (p = 0.0033)"),
    ):
        text = verdict(mixed, comparison, paper)
        assert text.startswith(
            "The paper's claim is not tested: none of its cells counts. In other"
        )
        assert others in text


def test_a_claim_about_some_tasks() -> None:
    """Others do not refute it, whether or not those of the claim were run."""
    results = cells(1.0, -9.0)
    claim = CLAIM._replace(tasks=("toy/a",))
    assert verdict(results, claim) == "The paper's claim holds in 1 cell that counts."
    assert verdict(results, CLAIM._replace(tasks=("toy/c",))) == (
        "The paper's claim is not tested: none of its cells counts. In other cells “FP3O” is "
        "higher in 1 of 2 cells and lower in 1 (Holm: 1 and 1)."
    )
    assert "None" not in verdict(unfinished(results), claim)


def test_a_claim_of_equality() -> None:
    """What is not found may be smaller than what these seeds would find."""
    assert verdict(cells(0.0, 0.05), EQUAL) == (
        "As the paper claims, no difference in 2 cells; one smaller than the smallest detectable "
        "(0.31) may exist."
    )
    assert verdict(cells(0.0, 3.0, -9.0), EQUAL) == (
        "The paper's claim of no difference is refuted here: a difference in 2 of 3 cells: b full "
        "+3.00 ± 0.25 (p = 0.00074), c full -9.00 ± 0.25 (p = 0.00012)."
    )
    assert verdict(cells(1.0, 0.0, spread=BARELY), EQUAL) == (
        "The paper's claim of no difference is neither confirmed nor refuted here: a difference in "
        "1 of 2 cells, after Holm's correction in 0: a full +1.00 ± 0.83 (p = 0.07)."
    )


def test_a_comparison_without_a_claim_has_no_verdict() -> None:
    (line,) = compare_variants(cells(1.0, 0.0), Comparison("FP3O", "MAPPO", ""))
    assert line.startswith("“FP3O” is higher than “MAPPO” in 1 of 2 cells, lower in 0")
    assert "claim" not in line


def test_the_tally_states_method_power_and_what_does_not_count() -> None:
    results = [*cells(1.0, 0.0), *unfinished(cells(5.0, first="c"))]
    assert compare_variants(results, CLAIM)[0] == (
        "“FP3O” is higher than “MAPPO” in 1 of 2 cells, lower in 0; after Holm's correction 1 and "
        f"0, and not distinguishable in 1{METHOD}. There the smallest detectable difference is "
        "0.31. Not counted: 1 below the planned steps."
    )
    # One of two cells would have missed the published difference, or is far below it.
    for difference, found in ((0.2, "in 0 of 1 cell, and 1 is too small to judge."), (9.0, "in 1")):
        text = compare_variants(results, CLAIM, published(difference, "ab"))[0]
        assert (
            f"difference is 0.31 (published: {difference:g}); the published one is outside the "
            f"interval {found}" in text
        )
    text = compare_variants(cells(0.0), CLAIM)[0]
    assert "in 0 of 1 cell, lower in 0, and not distinguishable in 1" in text


def test_variants_that_are_equal_in_every_bit_are_no_comparison() -> None:
    """The sentence says how often the condition failed in the logged iterations, if it is known."""

    def equal(**more: float) -> list[CellResult]:
        names = {"FP3O": more, "MAPPO": {}}
        curves = [[0.0, 5.0, 10.0]] * 3
        return [
            result(name, 10.0 + NOISE, task, curves=curves, **known)
            for task in "ab"
            for name, known in names.items()
        ]

    text = "“FP3O” and “MAPPO” are equal in every bit in 2 cells"
    assert compare_variants(equal(), CLAIM) == [f"{text}. Nothing was compared."]
    # Two cells of three seeds with three logged iterations each.
    for holds, failed in ((1.0, 0), (0.0, 18)):
        assert compare_variants(equal(condition_holds=holds), CLAIM) == [
            f"{text}: the condition failed in {failed} of 18 logged iterations. Nothing was "
            "compared."
        ]


def test_too_small_cells_are_all_that_is_said() -> None:
    assert compare_variants(cells(0.0, 0.01), CLAIM, published(0.2, "ab")) == [
        "“FP3O” against “MAPPO”: too small to judge. In 2 cells the interval contains 0 and its "
        "half width (0.248) exceeds the published difference (0.2)."
    ]


def test_sizes_of_several_families_stand_apart() -> None:
    """Their scores differ in scale."""
    battles = [
        result(
            name,
            np.array([0.5, 0.6, 0.7]) + 0.01 * (NOISE if name == "FP3O" else 0),
            "smac/3m",
            True,
        )
        for name in ("FP3O", "MAPPO")
    ]
    text = compare_variants([*cells(0.0), *battles], EQUAL)[1]
    assert "smallest detectable (0.31 (toy), 0.31 % (smac)) may exist" in text


def test_without_cells_nothing_is_known() -> None:
    assert compare_variants([], CLAIM) == [
        "Whether “FP3O” is better than “MAPPO” is not known yet."
    ]
    assert compare_variants(unfinished(cells(1.0, 1.0)), CLAIM) == [
        "“FP3O” against “MAPPO”: no cell counts. Not counted: 2 below the planned steps."
    ]


@pytest.mark.parametrize(
    ("steps", "words"),
    [(8, ", at twice the gradient steps of “MAPPO”"), (6, ", at 1.5 times the gradient"), (4, "")],
)
def test_other_numbers_of_gradient_steps_are_a_condition(steps: int, words: str) -> None:
    """Of the tally and of the verdict."""
    results = cells(1.0, 2.0, actor_steps=steps)
    tally, claim = compare_variants(results, CLAIM)
    assert words in tally and words in claim
    assert ("gradient steps" in tally) == ("gradient steps" in claim) == bool(words)
    if steps == 8:
        assert claim == f"The paper's claim holds in all 2 cells that count{words}."
        worse = cells(-1.0, actor_steps=8)
        assert verdict(worse).endswith(f"lower in 1 of 1 cell that counts{words}.")
    several = [*cells(1.0, actor_steps=8), *cells(1.0, first="b", actor_steps=12)]
    assert "at 2 to 3 times the gradient steps" in verdict(several)


@pytest.mark.parametrize(
    ("rank", "scores", "words"),
    [
        (MEAN, (3.0, 2.0, 1.0), "highest mean, alone or tied, in 1 of 1 cell with HAPPO, MAPPO"),
        (MEAN, (3.0, 3.1, 1.0), "highest mean, alone or tied, in 0 of 1 cell"),
        (MEDIAN_OF_32, (98.6, 99.9, 1.0), "32 battles, alone or tied, in 1 of 1 cell"),
        (MEDIAN_OF_32, (95.0, 99.0, 1.0), "32 battles, alone or tied, in 0 of 1 cell"),
    ],
)
def test_the_highest_of_several_algorithms(rank: Rank, scores: Sequence[float], words: str) -> None:
    names = "FP3O", "MAPPO", "HAPPO"
    paper = {("toy/a", "full", name): PaperScore(9.0, 1.0) for name in names}
    results = [result(name, x + NOISE, "toy/a") for name, x in zip(names, scores, strict=True)]
    (line,) = count_highest(paper, rank)(results)
    assert words in line and line.endswith("(published: 1 of 1).")
    (line,) = count_highest(paper, rank)(results[:2])
    assert "is not tested: no cell has all of FP3O, HAPPO, MAPPO" in line


@pytest.mark.parametrize(
    ("stuck", "words"),
    [
        ((0, 0, 0), "their failures are not reproduced"),
        ((1, 2, 2), "refuted"),
        ((0, 1, 2), "holds here"),
        ((0, 0, 2), "holds in part here"),
    ],
)
def test_the_claim_about_single_seeds(stuck: Sequence[int], words: str) -> None:
    assert words in convergence_verdict(*stuck)


def test_the_claim_about_products_of_ratios() -> None:
    """Each algorithm on its own; differences are paired by seed."""
    ours = 5.0 + NOISE
    text = products_verdict({"FP3O": ours, "MAPPO": ours - 1.0, "CoPPO": ours + BARELY * NOISE})
    assert "higher than MAPPO's, as claimed (+1" in text
    assert "not distinguishable from CoPPO's (" in text
    assert "higher than HAPPO's, against the claim (+2" in products_verdict(
        {"FP3O": ours, "MAPPO": ours, "HAPPO": ours - 2.0}
    )
