"""Comparisons of variants in words: a tally of the cells that count, its power, the verdict."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.judgement import Comparison, Judgement, judge, judge_areas, tally
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.experiments.framework.score_table import gradient_steps
from fp3o.experiments.framework.unlearned import not_won
from fp3o.reports.data.measures import WIN_RATE
from fp3o.reports.experiment_report import Finding
from fp3o.reports.phrasing import number_text

METHOD = " (95 % intervals of the differences, paired by seed)"
"""How cells are compared; stated once per page."""


def compare_variants(
    results: CellResults, comparison: Comparison, paper: PaperScores | None = None
) -> list[str]:
    """Result of comparing two variants, and whether it agrees with the paper."""
    judgements = judge(results, comparison, paper)
    counted = [item for item in judgements if item.counts]
    if not counted:
        return [_nothing_counts(results, judgements, comparison)]
    if all(item.too_small for item in counted):
        return [_too_small(counted, comparison)]
    first = (
        f"{_tally_text(judgements, comparison)}{METHOD}.{_kills_text(counted)}"
        f"{_power_text(counted)}{_excluded_text(judgements)}{_areas_text(results, comparison)}"
    )
    claim = claim_verdict(judgements, comparison, paper)
    return [first, *[claim] * bool(comparison.expected)]


def claim_verdict(
    judgements: Sequence[Judgement], comparison: Comparison, paper: PaperScores | None = None
) -> str:
    """What the paper's cells, as far as they count, say of its claim, in one sentence.

    It is a claim about all cells: one of the opposite, after Holm's correction, refutes it.
    """
    published = [item for item in judgements if item.published is not None]
    judgements = published or judgements
    counted = [item for item in judgements if item.counts]
    if not counted:
        return "The paper's claim is not tested: none of its cells counts."
    if comparison.expected == "equal":
        return _claim_of_equality(judgements)
    counts, at = tally(judgements), _steps_condition(comparison, counted)
    of = len(_published_differences(comparison, paper or {}))
    cells = f"{_cells(counts.cells)} that {'counts' if counts.cells == 1 else 'count'}"
    cells += f" (published: {of})" if of > counts.cells else ""
    if counts.corrected_worse:
        return (
            f"The paper's claim is refuted here: “{comparison.ours}” is lower in "
            f"{counts.corrected_worse} of {cells}{at}."
        )
    if counts.better == counts.cells:
        return f"The paper's claim holds in {_all(counts.cells)}{cells}{at}."
    if counts.corrected_better:
        return (
            f"The paper's claim holds in {counts.better} of {cells}{at}, and is neither confirmed "
            "nor refuted in the others."
        )
    return f"The paper's claim is neither confirmed nor refuted by the {cells}{at}."


def _claim_of_equality(judgements: Sequence[Judgement]) -> str:
    """Whether a claim of no difference holds, and how large a hidden difference could be."""
    counts = tally(judgements)
    if different := counts.corrected_better + counts.corrected_worse:
        return f"The paper's claim of no difference is refuted here, in {_cells(different)}."
    if counts.better or counts.worse:
        return "The paper's claim of no difference is neither confirmed nor refuted here."
    sizes = _sizes([item for item in judgements if item.counts], _detectable)
    return (
        "No difference is found, as the paper claims; one smaller than the smallest detectable "
        f"({sizes}) may exist."
    )


def _nothing_counts(
    results: CellResults, judgements: Sequence[Judgement], comparison: Comparison
) -> str:
    ours, theirs = comparison.ours, comparison.theirs
    if not judgements:
        return f"Whether “{ours}” is better than “{theirs}” is not known yet."
    if all(item.excluded == "equal in every bit" for item in judgements):
        failed = [failed_condition(item.ours) for item in judgements]
        iterations = sum(total for _, total in failed)
        often = f": the condition failed in {sum(count for count, _ in failed):,} of {iterations:,}"
        often = f"{often} logged iterations" if iterations else ""
        return (
            f"“{ours}” and “{theirs}” are equal in every bit in {_cells(len(judgements))}{often}. "
            "Nothing was compared."
        )
    reasons, areas = _excluded_text(judgements), _areas_text(results, comparison)
    return f"“{ours}” against “{theirs}”: no cell counts.{reasons}{areas}"


def _too_small(counted: Sequence[Judgement], comparison: Comparison) -> str:
    return (
        f"“{comparison.ours}” against “{comparison.theirs}”: too small to judge. In "
        f"{_cells(len(counted))} the interval contains 0 and its half width "
        f"({_sizes(counted, _half_width)}) exceeds the published difference "
        f"({_sizes(counted, _published)})."
    )


def _tally_text(judgements: Sequence[Judgement], comparison: Comparison) -> str:
    counts = tally(judgements)
    at = _steps_condition(comparison, [item for item in judgements if item.counts])
    corrected = f"; after Holm's correction {counts.corrected_better} and {counts.corrected_worse}"
    corrected = corrected if counts.better + counts.worse else ""
    return (
        f"“{comparison.ours}” is higher than “{comparison.theirs}” in {counts.better} of "
        f"{_cells(counts.cells)}{at}, lower in {counts.worse}{corrected}, and not told apart in "
        f"{counts.open}"
    )


def _steps_condition(comparison: Comparison, counted: Sequence[Judgement]) -> str:
    """The ratio of gradient steps, where the two variants take different numbers of them."""
    pairs = [(gradient_steps(item.ours), gradient_steps(item.theirs)) for item in counted]
    ratios = [one / other for one, other in pairs if one and other]
    if not ratios or all(0.95 < ratio < 1.05 for ratio in ratios):
        return ""
    times = _range(ratios)
    times = "twice" if times == "2" else f"{times} times"
    return f", at {times} the gradient steps of “{comparison.theirs}”"


def _power_text(counted: Sequence[Judgement]) -> str:
    """The power of the cells in which nothing was found, and where the paper's number is."""
    open_cells = [item for item in counted if item.sign == 0]
    if not open_cells:
        return ""
    text = f" There the smallest detectable difference is {_sizes(open_cells, _detectable)}"
    known = [item for item in open_cells if item.published is not None]
    if not known:
        return f"{text}."
    text += f" (published: {_sizes(known, _published)})"
    outside = sum(not item.contains(item.published or 0.0) for item in known)
    parts = [f"the published one is outside the interval in {outside} of {_cells(len(known))}"]
    if small := sum(item.too_small for item in known):
        parts.append(f"{small} {'is' if small == 1 else 'are'} too small to judge")
    return f"{text}; {', and '.join(parts)}."


def _detectable(item: Judgement) -> float:
    return item.detectable


def _published(item: Judgement) -> float:
    return abs(item.published or 0.0)


def _half_width(item: Judgement) -> float:
    return item.difference.half


def _sizes(items: Sequence[Judgement], size: Callable[[Judgement], float]) -> str:
    """The smallest and the largest size of each family of tasks: their scores differ in scale."""
    families = [*dict.fromkeys(item.ours.cell.task.split("/")[0] for item in items)]
    parts = []
    for family in families:
        group = [item for item in items if item.ours.cell.task.split("/")[0] == family]
        units = {item.ours.measure.unit for item in group}
        unit = units.pop() if len(units) == 1 else ""
        name = f" ({family})" if len(families) > 1 else ""
        parts.append(f"{_range([size(item) for item in group])}{unit}{name}")
    return ", ".join(parts)


def _excluded_text(judgements: Sequence[Judgement]) -> str:
    """Why some cells do not count."""
    reasons = Counter(item.excluded for item in judgements if item.excluded)
    parts = [f"{count} {reason}" for reason, count in reasons.items()]
    return f" Not counted: {', '.join(parts)}." if parts else ""


def _areas_text(results: CellResults, comparison: Comparison) -> str:
    """The same comparison by areas under the curve, for battles: their ends are often equal."""
    battles = [item for item in results if item.task_measure is WIN_RATE]
    counts = tally(judge_areas(battles, comparison))
    if not counts.cells:
        return ""
    return (
        f" By the area under the curve it is higher in {counts.better} of {_cells(counts.cells)} "
        f"and lower in {counts.worse} (Holm: {counts.corrected_better} and "
        f"{counts.corrected_worse})."
    )


def _kills_text(counted: Sequence[Judgement]) -> str:
    """The part of the comparison that is about kills."""
    battles = [item for item in counted if item.ours.judged_by]
    if not (total := len(battles)):
        return ""
    counts = tally(battles)
    return (
        f" {total} of these cells {'was' if total == 1 else 'were'} "
        f"{not_won([item.ours for item in battles])}, and judged by kills: higher in "
        f"{counts.better}, lower in {counts.worse}."
    )


def failed_condition(item: CellResult) -> tuple[int, int]:
    """In how many of the logged iterations, over all seeds, FP3O's condition failed."""
    value = item.run.series("condition_holds").value if item.run else np.empty(0)
    known = value[np.isfinite(value)]
    return int((known < 0.5).sum()), int(known.size)


def short_finding(
    results: CellResults,
    comparisons: Sequence[Comparison],
    paper: PaperScores | None,
    published: str,
) -> Finding:
    """The claim's comparison and its controls in short."""
    claim, *others = comparisons
    judgements = judge(results, claim, paper)
    lines = compare_variants(results, claim, paper)
    verdict = lines[-1].replace(METHOD, "")
    counted = [item for item in judgements if item.counts]
    if not claim.expected and not all(item.too_small for item in counted):
        verdict = f"{_short_tally(judgements, claim)}."
    controls = [_short_tally(judge(results, x), x) for x in others if not x.expected]
    if claim.theirs == "MAPPO" and others:
        verdict += _at_equal_steps(judge(results, others[0]), others[0])
    return Finding(
        published or _published_text(claim, paper or {}),
        _short_tally(judgements, claim),
        "; ".join(filter(None, controls)),
        verdict,
    )


def _at_equal_steps(judgements: Sequence[Judgement], comparison: Comparison) -> str:
    """The sentence that qualifies a verdict by its control."""
    counts = tally(judgements)
    if not counts.cells:
        return " At equal gradient steps no cell counts."
    return (
        f" At equal gradient steps “{comparison.ours}” is higher in {counts.better} of "
        f"{_cells(counts.cells)} and lower in {counts.worse}."
    )


def _short_tally(judgements: Sequence[Judgement], comparison: Comparison) -> str:
    """Differences with their intervals if they are few, otherwise counts."""
    counted = [item for item in judgements if item.counts]
    if not counted:
        return ""
    counts = tally(judgements)
    text = (
        f"{comparison.ours} against {comparison.theirs}: higher in {counts.better} of "
        f"{_cells(counts.cells)}, lower in {counts.worse} (Holm: {counts.corrected_better} and "
        f"{counts.corrected_worse})"
    )
    open_cells = [item for item in counted if item.sign == 0]
    return f"{text}, detectable {_sizes(open_cells, _detectable)}" if open_cells else text


def _published_text(comparison: Comparison, paper: PaperScores) -> str:
    """In how many of its cells the paper's mean is higher, and by how much."""
    differences = _published_differences(comparison, paper)
    if not differences:
        return ""
    higher = sum(difference > 0 for difference in differences)
    ends = f"{number_text(min(differences))} to {number_text(max(differences))}"
    return f"higher in {higher} of {_cells(len(differences))}, by {ends}"


def _published_differences(comparison: Comparison, paper: PaperScores) -> list[float]:
    """The paper's differences, in all cells that it has."""
    return [
        score.centre - paper[task, sharing, comparison.theirs].centre
        for (task, sharing, variant), score in paper.items()
        if variant == comparison.ours and (task, sharing, comparison.theirs) in paper
    ]


def _all(count: int) -> str:
    return "" if count == 1 else "all "


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _range(values: Sequence[float]) -> str:
    """The smallest and the largest number."""
    low, high = number_text(min(values)), number_text(max(values))
    return low if low == high else f"{low} to {high}"
