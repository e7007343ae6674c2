"""Summary of experiments about scores: table, figures, comparisons of variants, verdict."""

import operator
from collections.abc import Callable, Sequence

from fp3o.experiments.framework.cell_differences import (
    FP3O_AGAINST_MAPPO,
    CellDifference,
    Comparison,
    compare_cells,
)
from fp3o.experiments.framework.comparison_table import comparison_table
from fp3o.experiments.framework.exclusions import aggregate_exclusions
from fp3o.experiments.framework.grid import NOTHING_FINISHED, CellResults, Summary
from fp3o.experiments.framework.key_results import key_result
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.score_table import (
    battle_table,
    planned_steps,
    policy_table,
    published_steps,
    score_table,
    steps_text,
)
from fp3o.experiments.framework.unlearned import doubtful_notes, judge_by_kills, unlearned_notes
from fp3o.experiments.framework.verdicts import METHOD, compare_variants
from fp3o.reports.experiment_report import ResultTable
from fp3o.reports.phrasing import count_text, sharing_title

__all__ = ["FP3O_AGAINST_MAPPO", "Comparison", "run_caveats", "score_summary"]


def score_summary(
    *comparisons: Comparison,
    paper: PaperScores | None = None,
    published: str = "",
    base: str = "",
    verdict: Callable[[CellResults], Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Callable[[CellResults], Summary]:
    """Summary function of an experiment about scores: tables, dots, curves, comparisons.

    Args:
        comparisons: the first is the claim's, those without a claim of the paper are its controls.
        paper: scores of the paper, by cell.
        published: the paper's result in a few words, if it has no scores.
        base: the variant of the aggregates' probability of improvement; by default the second of
            the first comparison.
        verdict: more sentences of the verdict.
        notes: caveats.
    """

    def summarise(results: CellResults) -> Summary:
        from fp3o.experiments.framework.aggregate import aggregate_results  # imports matplotlib
        from fp3o.experiments.framework.plots import curve_figures, difference_dots, score_dots

        trained = [item for item in results if item.run]
        if not trained:
            return NOTHING_FINISHED
        judged = judge_by_kills(trained)
        more = verdict(trained) if verdict else ()
        groups = [compare_cells(judged, pair, paper) for pair in comparisons]
        reference = base or next((pair.theirs for pair in comparisons), "")
        aggregates, profiles = aggregate_results(trained, reference)
        tables = [*comparison_table(groups), *score_tables(trained, judged, paper), *aggregates]
        dots = [*difference_dots(groups), score_dots(trained, paper or {})]
        remarks = [*_remarks(trained, judged, groups, paper, bool(aggregates)), *notes]
        short = key_result(judged, comparisons, paper, published, more) if comparisons else None
        lines = [*_verdict(judged, comparisons, paper), *more]
        return Summary(lines, tables, [*dots, *profiles, *curve_figures(judged)], remarks, short)

    return summarise


def _verdict(
    results: CellResults, comparisons: Sequence[Comparison], paper: PaperScores | None
) -> list[str]:
    """All comparisons in words; the first says how cells are compared."""
    lines = [line for pair in comparisons for line in compare_variants(results, pair, paper)]
    return [line.replace(METHOD, "") if k else line for k, line in enumerate(lines)]


def score_tables(
    results: CellResults, judged: CellResults, paper: PaperScores | None = None
) -> list[ResultTable]:
    """Scores, what happened in battles, and how far the policies moved."""
    scores = score_table(judged, paper or {})
    return [scores, *battle_table(results), *policy_table(results)]


def _remarks(
    trained: CellResults,
    judged: CellResults,
    groups: Sequence[Sequence[CellDifference]],
    paper: PaperScores | None,
    aggregated: bool,
) -> list[str]:
    """What a reader has to know of the cells."""
    left_out = _aggregate_notes(judged) if aggregated else []
    unlearned = [*unlearned_notes(judged), *doubtful_notes(judged)]
    steps = [*run_caveats(trained), *_fewer_than_paper(trained, paper)]
    return [*steps, *unlearned, *left_out, *_common_seeds(groups)]


def _common_seeds(groups: Sequence[Sequence[CellDifference]]) -> list[str]:
    """The comparisons of variants with different numbers of seeds."""
    differing = [
        f"{item.ours.cell.variant} and {item.theirs.cell.variant} on {item.ours.cell.task} with "
        f"{sharing_title(item.ours.cell.sharing)} ({item.difference.size})"
        for group in groups
        for item in group
        if item.ours.seeds.size != item.theirs.seeds.size
    ]
    return [f"Compared in the seeds in common: {', '.join(differing)}."] if differing else []


def _fewer_than_paper(results: CellResults, paper: PaperScores | None) -> list[str]:
    """The tasks whose published scores are of more steps than are planned here."""
    fewer = []
    for item in results:
        if item.key in (paper or {}):
            ours, published = planned_steps(item), published_steps(item)
            if ours < published:
                steps = f"{count_text(ours)} of {count_text(published)}"
                fewer.append(f"{item.cell.task} ({steps})")
    texts = ", ".join(dict.fromkeys(fewer))
    return [f"Fewer steps are planned than in the paper: {texts}."] if fewer else []


def _aggregate_notes(results: CellResults) -> list[str]:
    """Which tasks are left out of the aggregates, and why."""
    excluded = aggregate_exclusions(results)
    reasons = dict.fromkeys(excluded.values())
    return [
        f"Left out of all tasks together, {reason}: "
        + ", ".join(
            f"{task} with {sharing_title(sharing)}"
            for (task, sharing), why in excluded.items()
            if why == reason
        )
        + "."
        for reason in reasons
    ]


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
