"""The result of an experiment in short: the row that stands beside those of others."""

from collections.abc import Sequence

from fp3o.experiments.framework.cell_differences import (
    CellDifference,
    Comparison,
    compare_cells,
    count_signs,
)
from fp3o.experiments.framework.grid import CellResults
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.power import (
    cells_text,
    detectable,
    difference_text,
    holm_text,
    published_differences,
    range_text,
    sizes_text,
)
from fp3o.experiments.framework.verdicts import METHOD, areas_text, compare_variants, steps_differ
from fp3o.reports.experiment_report import KeyResult

FEW_CELLS = 6
"""The most cells whose differences are named one by one."""


def key_result(
    results: CellResults,
    comparisons: Sequence[Comparison],
    paper: PaperScores | None,
    published: str,
    more: Sequence[str] = (),
) -> KeyResult:
    """The claim's comparison and its controls in short; `more` sentences belong to the verdict."""
    claim, *others = comparisons
    differences = compare_cells(results, claim, paper)
    lines = compare_variants(results, claim, paper)
    verdict = lines[-1].replace(METHOD, "")
    counted = [item for item in differences if item.counts]
    if not claim.expected and not all(item.too_small for item in counted):
        verdict = f"{_short_counts(differences, claim)}." if counted else ""
    controls = [_short_counts(compare_cells(results, x), x) for x in others if not x.expected]
    if claim.expected and others:
        verdict += _at_equal_steps(compare_cells(results, others[0]), others[0])
    sentences = [verdict, *more] if claim.expected else [*more, verdict]
    return KeyResult(
        published or _published_text(claim, paper or {}),
        f"{_short_counts(differences, claim)}.{areas_text(results, claim)}".lstrip(". "),
        "; ".join(filter(None, controls)),
        " ".join(filter(None, sentences)),
    )


def _at_equal_steps(differences: Sequence[CellDifference], comparison: Comparison) -> str:
    """The sentence that qualifies a verdict by its control."""
    counts = count_signs(differences)
    if steps_differ([item for item in differences if item.counts]):
        return ""
    if not counts.cells:
        return " At equal gradient steps no cell counts."
    corrected = f" ({holm_text(counts)})" if counts.better + counts.worse else ""
    return (
        f" At equal gradient steps “{comparison.ours}” is higher in {counts.better} of "
        f"{cells_text(counts.cells)} and lower in {counts.worse}{corrected}."
    )


def _short_counts(differences: Sequence[CellDifference], comparison: Comparison) -> str:
    """Counts and power, and the differences with their intervals if they are few."""
    counted = [item for item in differences if item.counts]
    if not counted:
        return ""
    counts = count_signs(differences)
    text = (
        f"{comparison.ours} against {comparison.theirs}: higher in {counts.better} of "
        f"{cells_text(counts.cells)}, lower in {counts.worse} ({holm_text(counts)})"
    )
    if len(counted) <= FEW_CELLS:
        text += f": {', '.join(map(difference_text, counted))}"
    open_cells = [item for item in counted if item.sign == 0]
    return f"{text}; detectable {sizes_text(open_cells, detectable)}" if open_cells else text


def _published_text(comparison: Comparison, paper: PaperScores) -> str:
    """In how many of its cells the paper's mean is higher, and by how much."""
    differences = published_differences(comparison, paper)
    if not differences:
        return ""
    higher = sum(difference > 0 for difference in differences)
    return f"higher in {higher} of {cells_text(len(differences))}, by {range_text(differences)}"
