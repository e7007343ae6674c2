"""What most experiments show: scores beside the paper's, differences seed by seed, a verdict."""

import operator
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from fp3o.experiments.framework.aggregate import overall
from fp3o.experiments.framework.grid import CellResults, Summary
from fp3o.experiments.framework.paper_results import Papers
from fp3o.experiments.framework.plots import curves, dots, in_words
from fp3o.experiments.framework.score_table import paired, planned, rival, score_table, steps
from fp3o.reports.phrasing import count_text, number_text
from fp3o.reports.stats.intervals import Interval, mean_interval


class Comparison(NamedTuple):
    """A claim about two variants, to be looked at in every task and sharing."""

    ours: str
    theirs: str
    expected: Literal["better", "equal", ""] = "better"
    """What the paper says `ours` is; empty: it says nothing."""


HOW = " (95 % intervals of the differences, paired by seed)"
"""How cells are compared; said once on a page."""


class Verdict(NamedTuple):
    """In how many cells a variant was better, worse, and not told apart."""

    better: int
    worse: int
    open: int


def scores(
    *contrasts: Comparison,
    papers: Papers | None = None,
    base: str = "",
    said: Callable[[CellResults], Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Callable[[CellResults], Summary]:
    """How an experiment about scores is shown: one table, dots, curves, and the contrasts."""

    def show(findings: CellResults) -> Summary:
        trained = [item for item in findings if item.run]
        if not trained:
            return Summary(["Nothing is finished yet."])
        verdict = [words for contrast in contrasts for words in judged(trained, contrast)]
        verdict = [words.replace(HOW, "") if k else words for k, words in enumerate(verdict)]
        verdict += said(trained) if said else []
        rival = base or (contrasts[0].theirs if contrasts else "")
        table = score_table(trained, papers or {}, rival)
        together, profiles = overall(trained, rival)
        pictures = [dots(trained, papers or {}), *profiles, *curves(trained)]
        return Summary(
            verdict, [table, *together], pictures, [*caveats(trained), *unlearned(trained), *notes]
        )

    return show


def judged(findings: CellResults, contrast: Comparison) -> Sequence[str]:
    """What was found about two variants, and whether that is what the paper says."""
    found = tally(findings, contrast.ours, contrast.theirs)
    total = sum(found)
    if not total:
        return [f"Whether “{contrast.ours}” is better than “{contrast.theirs}” is not known yet."]
    first = (
        f"“{contrast.ours}” is better than “{contrast.theirs}” in {found.better} of {total} "
        f"{'cell' if total == 1 else 'cells'}, worse in {found.worse}, and not told apart in "
        f"{found.open}{HOW}."
    )
    if contrast.expected == "equal":
        return [first, *alike(findings, contrast, found)]
    return [first, *[answer(found)] * bool(contrast.expected)]


def tally(findings: CellResults, ours: str, theirs: str) -> Verdict:
    """How a variant did against another one, cell by cell; those without intervals do not count."""
    known = [x for x in differences(findings, ours, theirs) if x.known]
    better, worse = sum(x.low > 0 for x in known), sum(x.high < 0 for x in known)
    return Verdict(better, worse, len(known) - better - worse)


def differences(findings: CellResults, ours: str, theirs: str) -> list[Interval]:
    """The differences of two variants, place by place, where something was learned."""
    lost = unlearned_places(findings)
    found = []
    for item in findings:
        other = rival(item, findings, theirs)
        if item.cell.variant == ours and other and (item.cell.task, item.cell.sharing) not in lost:
            found.append(paired(item, other))
    return found


def answer(found: Verdict) -> str:
    """Whether `better` holds: most cells must say so, and none the opposite; likewise `not`."""
    total = sum(found)
    if found.better > total / 2 and not found.worse:
        return "What the paper says holds here."
    if found.worse > total / 2 and not found.better:
        return "What the paper says does not hold here: it is the other way round."
    return "What the paper says is neither confirmed nor refuted here."


def alike(findings: CellResults, contrast: Comparison, found: Verdict) -> list[str]:
    """Whether a claim that there is no difference stands, and what could hide behind it."""
    if found.better or found.worse:
        return ["That there is no difference, as the paper says, does not hold everywhere here."]
    widths = [x.half for x in differences(findings, contrast.ours, contrast.theirs) if x.known]
    low, high = number_text(min(widths)), number_text(max(widths))
    ends = low if low == high else f"{low} to {high}"
    return [
        "No difference is seen, as the paper says; one of less than the intervals' half widths "
        f"({ends}) could not be."
    ]


def caveats(findings: CellResults) -> list[str]:
    """What a reader must know before trusting a number."""
    notes = []
    runs = [item.run for item in findings if item.run]
    few = min(len(run.seeds) for run in runs)
    if few < 5:
        notes.append(f"Some cells have only {few} seeds: their intervals are wide or missing.")
    for words, wrong in (("Fewer", operator.lt), ("More", operator.gt)):
        cells = [
            f"{item.cell.label} ({steps(item)}, planned {count_text(planned(item))})"
            for item in findings
            if item.run and wrong(item.run.step, planned(item))
        ]
        if cells:
            more = f" and {len(cells) - 6} more" if len(cells) > 6 else ""
            notes.append(f"{words} steps than planned: {', '.join(cells[:6])}{more}.")
    return notes


def unlearned(findings: CellResults) -> list[str]:
    """Words about the places where nothing was learned."""
    return [
        f"{task} with {in_words(sharing)} is not learned at this scale: no variant does better "
        f"than {words}. It is left out of the verdict."
        for (task, sharing), words in unlearned_places(findings).items()
    ]


def unlearned_places(findings: CellResults) -> dict[tuple[str, str], str]:
    """Where no variant does better than the best team that knows nothing, and what that reaches."""
    found = {}
    for place in dict.fromkeys((item.cell.task, item.cell.sharing) for item in findings):
        own = [item for item in findings if (item.cell.task, item.cell.sharing) == place]
        known = own[0].run.results.get("references", {}) if own[0].run else {}
        floor = known.get("blind", known.get("random"))
        # Twice the luck of the draw above it is not yet above it.
        best = max(mean_interval(item.seeds).centre for item in own)
        if floor and best <= own[0].measure.of(floor) + 2 * abs(floor.get("stderr") or 0.0):
            words = "the best team that does not talk" if "blind" in known else "a random team"
            value = number_text(own[0].measure.of(floor))
            found[place] = f"{words} ({value}{own[0].measure.unit})"
    return found
