"""Summary of experiments about scores: table, figures, comparisons of variants, verdict."""

import operator
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from fp3o.experiments.framework.grid import NOTHING_FINISHED, CellResults, Summary
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.score_table import (
    battle_table,
    paired_difference,
    planned_steps,
    same_cell,
    score_table,
    steps_text,
)
from fp3o.experiments.framework.unlearned import (
    judge_by_kills,
    not_won,
    unlearned_cells,
    unlearned_notes,
)
from fp3o.reports.phrasing import count_text, number_text
from fp3o.reports.stats.intervals import Interval

METHOD = " (95 % intervals of the differences, paired by seed)"
"""How cells are compared; stated once per page."""


class Comparison(NamedTuple):
    """Two variants that are compared in every task and sharing."""

    ours: str
    theirs: str
    expected: Literal["better", "equal", ""] = "better"
    """The paper's claim about `ours`; empty if there is none."""


class Counts(NamedTuple):
    """Number of cells in which a variant is better, worse, or not distinguishable."""

    better: int
    worse: int
    open: int


def score_summary(
    *comparisons: Comparison,
    paper: PaperScores | None = None,
    base: str = "",
    verdict: Callable[[CellResults], Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Callable[[CellResults], Summary]:
    """Summary function of an experiment about scores: one table, dots, curves, comparisons."""

    def summarise(results: CellResults) -> Summary:
        from fp3o.experiments.framework.aggregate import aggregate_results  # imports matplotlib
        from fp3o.experiments.framework.plots import curve_figures, score_dots

        trained = [item for item in results if item.run]
        if not trained:
            return NOTHING_FINISHED
        judged = judge_by_kills(trained)
        lines = [line for pair in comparisons for line in compare_variants(judged, pair)]
        lines = [line.replace(METHOD, "") if k else line for k, line in enumerate(lines)]
        lines += verdict(trained) if verdict else []
        reference = base or (comparisons[0].theirs if comparisons else "")
        tables, profiles = aggregate_results(trained, reference)
        tables = [score_table(judged, paper or {}, reference), *battle_table(trained), *tables]
        figures = [score_dots(trained, paper or {}), *profiles, *curve_figures(judged)]
        remarks = [*run_caveats(trained), *unlearned_notes(judged), *notes]
        return Summary(lines, tables, figures, remarks)

    return summarise


def compare_variants(results: CellResults, comparison: Comparison) -> Sequence[str]:
    """Result of comparing two variants, and whether it agrees with the paper."""
    counts = count_differences(results, comparison.ours, comparison.theirs)
    total = sum(counts)
    ours, theirs = comparison.ours, comparison.theirs
    if not total:
        return [f"Whether “{ours}” is better than “{theirs}” is not known yet."]
    first = (
        f"“{ours}” is better than “{theirs}” in {counts.better} of {total} "
        f"{'cell' if total == 1 else 'cells'}, worse in {counts.worse}, and not distinguishable in "
        f"{counts.open}{METHOD}.{_kills_text(results, comparison)}"
    )
    if comparison.expected == "equal":
        return [first, _claim_of_equality(results, comparison, counts)]
    return [first, *[claim_verdict(counts)] * bool(comparison.expected)]


def _kills_text(results: CellResults, comparison: Comparison) -> str:
    """The part of the comparison that is about kills."""
    battles = [item for item in results if item.judged_by]
    counts = count_differences(battles, comparison.ours, comparison.theirs)
    if not (total := sum(counts)):
        return ""
    return (
        f" {total} of these cells {'was' if total == 1 else 'were'} {not_won(battles)}, and judged "
        f"by kills: better in {counts.better}, worse in {counts.worse}."
    )


def count_differences(results: CellResults, ours: str, theirs: str) -> Counts:
    """Count cells by the sign of the difference; cells without an interval are left out."""
    intervals = [x for x in _differences(results, ours, theirs) if x.known]
    better, worse = sum(x.low > 0 for x in intervals), sum(x.high < 0 for x in intervals)
    return Counts(better, worse, len(intervals) - better - worse)


def _differences(results: CellResults, ours: str, theirs: str) -> list[Interval]:
    """Differences of two variants per task and sharing, where something was learned."""
    excluded = unlearned_cells(results)
    differences = []
    for item in results:
        other = same_cell(item, results, theirs)
        key = item.cell.task, item.cell.sharing
        if item.cell.variant == ours and other and key not in excluded:
            differences.append(paired_difference(item, other))
    return differences


def claim_verdict(counts: Counts) -> str:
    """Whether a claim of improvement holds: in most cells, and contradicted in none."""
    total = sum(counts)
    if counts.better > total / 2 and not counts.worse:
        return "The paper's claim holds here."
    if counts.worse > total / 2 and not counts.better:
        return "The paper's claim does not hold here: the opposite does."
    return "The paper's claim is neither confirmed nor refuted here."


def _claim_of_equality(results: CellResults, comparison: Comparison, counts: Counts) -> str:
    """Whether a claim of no difference holds, and how large a hidden difference could be."""
    if counts.better or counts.worse:
        return "The paper's claim of no difference does not hold in all cells here."
    intervals = [x for x in _differences(results, comparison.ours, comparison.theirs) if x.known]
    low, high = (number_text(end([x.half for x in intervals])) for end in (min, max))
    widths = low if low == high else f"{low} to {high}"
    return (
        "No difference is found, as the paper claims; one smaller than the half widths of the "
        f"intervals ({widths}) would not be detected."
    )


def run_caveats(results: CellResults) -> list[str]:
    """Notes on cells with few seeds or another number of steps than planned."""
    notes = []
    runs = [item.run for item in results if item.run]
    few = min((len(run.seeds) for run in runs), default=5)
    if few < 5:
        notes.append(f"Some cells have only {few} seeds: their intervals are wide or missing.")
    for quantifier, differs in (("Fewer", operator.lt), ("More", operator.gt)):
        cells = [
            f"{item.cell.label} ({steps_text(item)}, planned {count_text(planned_steps(item))})"
            for item in results
            if item.run and differs(item.run.step, planned_steps(item))
        ]
        if cells:
            more = f" and {len(cells) - 6} more" if len(cells) > 6 else ""
            notes.append(f"{quantifier} steps than planned: {', '.join(cells[:6])}{more}.")
    return notes
