"""The result of an experiment in short: the row that stands beside those of others."""

from collections.abc import Sequence

from fp3o.experiments.framework.cell_differences import (
    CellDifference,
    Comparison,
    compare_cells,
    count_signs,
)
from fp3o.experiments.framework.comparison_table import with_sign
from fp3o.experiments.framework.grid import CellResults
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.power import (
    cells_text,
    detectable,
    published_differences,
    range_text,
    sizes_text,
)
from fp3o.experiments.framework.verdicts import METHOD, compare_variants
from fp3o.reports.experiment_report import KeyResult
from fp3o.reports.phrasing import score_text

FEW_CELLS = 6
"""The most cells whose differences are named one by one."""


def key_result(
    results: CellResults,
    comparisons: Sequence[Comparison],
    paper: PaperScores | None,
    published: str,
) -> KeyResult:
    """The claim's comparison and its controls in short."""
    claim, *others = comparisons
    differences = compare_cells(results, claim, paper)
    lines = compare_variants(results, claim, paper)
    verdict = lines[-1].replace(METHOD, "")
    counted = [item for item in differences if item.counts]
    if not claim.expected and not all(item.too_small for item in counted):
        verdict = f"{_short_counts(differences, claim)}."
    controls = [_short_counts(compare_cells(results, x), x) for x in others if not x.expected]
    if claim.theirs == "MAPPO" and others:
        verdict += _at_equal_steps(compare_cells(results, others[0]), others[0])
    return KeyResult(
        published or _published_text(claim, paper or {}),
        _short_counts(differences, claim),
        "; ".join(filter(None, controls)),
        verdict,
    )


def _at_equal_steps(differences: Sequence[CellDifference], comparison: Comparison) -> str:
    """The sentence that qualifies a verdict by its control."""
    counts = count_signs(differences)
    if not counts.cells:
        return " At equal gradient steps no cell counts."
    return (
        f" At equal gradient steps “{comparison.ours}” is higher in {counts.better} of "
        f"{cells_text(counts.cells)} and lower in {counts.worse}."
    )


def _short_counts(differences: Sequence[CellDifference], comparison: Comparison) -> str:
    """Counts and power, and the differences with their intervals if they are few."""
    counted = [item for item in differences if item.counts]
    if not counted:
        return ""
    counts = count_signs(differences)
    text = (
        f"{comparison.ours} against {comparison.theirs}: higher in {counts.better} of "
        f"{cells_text(counts.cells)}, lower in {counts.worse} (Holm: {counts.corrected_better} and "
        f"{counts.corrected_worse})"
    )
    if len(counted) <= FEW_CELLS:
        text += f": {', '.join(map(_difference_text, counted))}"
    open_cells = [item for item in counted if item.sign == 0]
    return f"{text}; detectable {sizes_text(open_cells, detectable)}" if open_cells else text


def _difference_text(item: CellDifference) -> str:
    """A difference with its cell."""
    cell, text = item.ours.cell, score_text(item.difference, item.ours.measure.unit)
    detail = f" {cell.detail}" if cell.detail else ""
    return f"{cell.task.split('/')[-1]} {cell.sharing}{detail} {with_sign(text)}"


def _published_text(comparison: Comparison, paper: PaperScores) -> str:
    """In how many of its cells the paper's mean is higher, and by how much."""
    differences = published_differences(comparison, paper)
    if not differences:
        return ""
    higher = sum(difference > 0 for difference in differences)
    return f"higher in {higher} of {cells_text(len(differences))}, by {range_text(differences)}"
