"""Comparisons of variants in words: counts of the cells, their power, the verdict."""

from collections import Counter
from collections.abc import Sequence

from fp3o.experiments.framework.cell_differences import (
    CellDifference,
    Comparison,
    compare_areas,
    compare_cells,
    count_signs,
)
from fp3o.experiments.framework.grid import CellResults
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.power import (
    cells_text,
    detectable,
    difference_text,
    half_width,
    holm_text,
    power_text,
    published,
    published_differences,
    range_text,
    sizes_text,
)
from fp3o.experiments.framework.score_table import (
    failed_condition,
    gradient_steps,
    planned_steps,
    published_steps,
)
from fp3o.experiments.framework.unlearned import not_won
from fp3o.reports.data.measures import WIN_RATE

METHOD = " (95 % intervals of the differences, paired by seed)"
"""How cells are compared; stated once per page."""


def compare_variants(
    results: CellResults, comparison: Comparison, paper: PaperScores | None = None
) -> list[str]:
    """Result of comparing two variants, and whether it agrees with the paper."""
    differences = compare_cells(results, comparison, paper)
    counted = [item for item in differences if item.counts]
    if not counted:
        return [_nothing_counts(results, differences, comparison)]
    if all(item.too_small for item in counted):
        return [_too_small(counted, comparison)]
    first = (
        f"{_counts_text(differences, comparison)}{METHOD}.{_kills_text(counted)}"
        f"{power_text(counted)}{_excluded_text(differences)}{areas_text(results, comparison)}"
    )
    claim = claim_verdict(differences, comparison, paper)
    return [first, *[claim] * bool(comparison.expected)]


def claim_verdict(
    differences: Sequence[CellDifference], comparison: Comparison, paper: PaperScores | None = None
) -> str:
    """What the paper's cells, as far as they count, say of its claim, in one sentence.

    It is a claim about all cells: one of the opposite, after Holm's correction, refutes it.
    """
    all_differences, differences = differences, _cells_of_claim(differences, comparison)
    counted = [item for item in differences if item.counts]
    if not counted:
        others = _other_cells(all_differences, comparison)
        return f"The paper's claim is not tested: none of its cells counts.{others}"
    if comparison.expected == "equal":
        return _claim_of_equality(differences)
    counts, at = count_signs(differences), _steps_condition(comparison, counted)
    of = len(published_differences(comparison, paper or {}))
    cells = f"{cells_text(counts.cells)} that {'counts' if counts.cells == 1 else 'count'}"
    cells += f" (the paper has {of}{_fewer_steps(counted)})" if of > counts.cells else ""
    if counts.corrected_worse:
        return (
            f"The paper's claim is refuted here: “{comparison.ours}” is lower in "
            f"{counts.corrected_worse} of {cells}{at}."
        )
    if counts.corrected_better == counts.cells:
        every = "all " if counts.cells > 1 else ""
        return f"The paper's claim holds in {every}{cells}{at}."
    if counts.corrected_better:
        return (
            f"The paper's claim holds in {counts.corrected_better} of {cells}{at}, and is neither "
            "confirmed nor refuted in the others."
        )
    return f"The paper's claim is neither confirmed nor refuted by the {cells}{at}."


def _fewer_steps(counted: Sequence[CellDifference]) -> str:
    """How many of the paper's cells have fewer steps here."""
    cells = [item.ours for item in counted if item.published is not None]
    fewer = sum(planned_steps(item) < published_steps(item) for item in cells)
    return f"; {fewer} here with fewer steps" if fewer else ""


def _cells_of_claim(
    differences: Sequence[CellDifference], comparison: Comparison
) -> list[CellDifference]:
    """Those of the claim's tasks, or else with published scores, or else all."""
    if comparison.tasks:
        return [item for item in differences if item.ours.cell.task in comparison.tasks]
    published_cells = [item for item in differences if item.published is not None]
    return published_cells or [*differences]


def _other_cells(differences: Sequence[CellDifference], comparison: Comparison) -> str:
    """What the cells say that count and are not the paper's."""
    counted = [item for item in differences if item.counts]
    if not counted:
        return ""
    if comparison.expected == "equal":
        return f" In other cells: {_found_differences(counted)}."
    counts = count_signs(counted)
    return (
        f" In other cells “{comparison.ours}” is higher in {counts.better} of "
        f"{cells_text(counts.cells)} and lower in {counts.worse} ({holm_text(counts)})"
        f"{_steps_condition(comparison, counted)}."
    )


def _claim_of_equality(differences: Sequence[CellDifference]) -> str:
    """Whether a claim of no difference holds, and how large a hidden difference could be."""
    counts, found = count_signs(differences), _found_differences(differences)
    if counts.corrected_better + counts.corrected_worse:
        return f"The paper's claim of no difference is refuted here: {found}."
    if counts.better or counts.worse:
        return f"The paper's claim of no difference is neither confirmed nor refuted here: {found}."
    return f"As the paper claims, {found}."


def _found_differences(differences: Sequence[CellDifference]) -> str:
    """The cells with a difference, or how large a hidden one could be."""
    counted = [item for item in differences if item.counts]
    if found := [item for item in counted if item.sign]:
        texts = [f"{difference_text(item)} (p = {item.corrected:.2g})" for item in found]
        sure = sum(item.corrected_sign != 0 for item in found)
        corrected = f", after Holm's correction in {sure}" if sure < len(found) else ""
        cells = f"{len(found)} of {cells_text(len(counted))}{corrected}"
        return f"a difference in {cells}: {', '.join(texts)}"
    sizes = sizes_text(counted, detectable)
    return (
        f"no difference in {cells_text(len(counted))}; one smaller than the smallest detectable "
        f"({sizes}) may exist"
    )


def _nothing_counts(
    results: CellResults, differences: Sequence[CellDifference], comparison: Comparison
) -> str:
    ours, theirs = comparison.ours, comparison.theirs
    if not differences:
        return f"Whether “{ours}” is better than “{theirs}” is not known yet."
    if all(item.excluded == "equal in every bit" for item in differences):
        failed = [failed_condition(item.ours) for item in differences]
        iterations = sum(total for _, total in failed)
        often = f": the condition failed in {sum(count for count, _ in failed):,} of {iterations:,}"
        often = f"{often} logged iterations" if iterations else ""
        return (
            f"“{ours}” and “{theirs}” are equal in every bit in {cells_text(len(differences))}"
            f"{often}. Nothing was compared."
        )
    reasons, areas = _excluded_text(differences), areas_text(results, comparison)
    return f"“{ours}” against “{theirs}”: no cell counts.{reasons}{areas}"


def _too_small(counted: Sequence[CellDifference], comparison: Comparison) -> str:
    return (
        f"“{comparison.ours}” against “{comparison.theirs}”: too small to judge. In "
        f"{cells_text(len(counted))} the interval contains 0 and its half width "
        f"({sizes_text(counted, half_width)}) exceeds the published difference "
        f"({sizes_text(counted, published)})."
    )


def _counts_text(differences: Sequence[CellDifference], comparison: Comparison) -> str:
    counts = count_signs(differences)
    at = _steps_condition(comparison, [item for item in differences if item.counts])
    corrected = f"; after Holm's correction {counts.corrected_better} and {counts.corrected_worse}"
    corrected = corrected if counts.better + counts.worse else ""
    return (
        f"“{comparison.ours}” is higher than “{comparison.theirs}” in {counts.better} of "
        f"{cells_text(counts.cells)}{at}, lower in {counts.worse}{corrected}, and not "
        f"distinguishable in {counts.open}"
    )


def _steps_condition(comparison: Comparison, counted: Sequence[CellDifference]) -> str:
    """The ratio of gradient steps, where the two variants take different numbers of them."""
    if not steps_differ(counted):
        return ""
    times = range_text(_step_ratios(counted))
    times = "twice" if times == "2" else f"{times} times"
    return f", at {times} the gradient steps of “{comparison.theirs}”"


def steps_differ(counted: Sequence[CellDifference]) -> bool:
    """Whether the two variants take different numbers of gradient steps."""
    return any(not 0.95 < ratio < 1.05 for ratio in _step_ratios(counted))


def _step_ratios(counted: Sequence[CellDifference]) -> list[float]:
    pairs = [(gradient_steps(item.ours), gradient_steps(item.theirs)) for item in counted]
    return [one / other for one, other in pairs if one and other]


def _excluded_text(differences: Sequence[CellDifference]) -> str:
    """Why some cells do not count."""
    reasons = Counter(item.excluded for item in differences if item.excluded)
    parts = [f"{count} {reason}" for reason, count in reasons.items()]
    return f" Not counted: {', '.join(parts)}." if parts else ""


def areas_text(results: CellResults, comparison: Comparison) -> str:
    """The same comparison by areas under the curve, for battles: their ends are often equal."""
    battles = [item for item in results if item.task_measure is WIN_RATE]
    counts = count_signs(compare_areas(battles, comparison))
    if not counts.cells:
        return ""
    return (
        f" By the area under the curve it is higher in {counts.better} of "
        f"{cells_text(counts.cells)} and lower in {counts.worse} ({holm_text(counts)})."
    )


def _kills_text(counted: Sequence[CellDifference]) -> str:
    """The part of the comparison that is about kills."""
    battles = [item for item in counted if item.ours.judged_by]
    if not (total := len(battles)):
        return ""
    counts = count_signs(battles)
    return (
        f" {total} of these cells {'was' if total == 1 else 'were'} "
        f"{not_won([item.ours for item in battles])}, and judged by kills: higher in "
        f"{counts.better}, lower in {counts.worse}."
    )
