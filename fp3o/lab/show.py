"""What most experiments show: scores beside the paper's, differences seed by seed, a verdict."""

import json
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from fp3o.lab.draw import curves, dots, in_words
from fp3o.lab.grid import Findings, Found, Shown
from fp3o.lab.overall import overall
from fp3o.lab.published import Papers, Published
from fp3o.reports.exhibit import Grid
from fp3o.reports.measures import WON
from fp3o.reports.statistics import Interval, mean_interval, smac_win_rate
from fp3o.reports.words import count_text, number_text, score_text


class Contrast(NamedTuple):
    """A claim about two variants, to be looked at in every task and sharing."""

    ours: str
    theirs: str
    expected: Literal["better", "equal", "worse", ""] = "better"
    """What the paper says `ours` is; empty: it says nothing."""


class Verdict(NamedTuple):
    """In how many cells a variant was better, worse, and not told apart."""

    better: int
    worse: int
    open: int


def scores(
    contrast: Contrast | None = None,
    papers: Papers | None = None,
    base: str = "",
    said: Callable[[Findings], Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Callable[[Findings], Shown]:
    """How an experiment about scores is shown: one table, dots, curves, and the contrast."""

    def show(findings: Findings) -> Shown:
        trained = [item for item in findings if item.run]
        if not trained:
            return Shown(["Nothing is finished yet."])
        verdict = [*judged(trained, contrast)] if contrast else []
        verdict += said(trained) if said else []
        rival = base or (contrast.theirs if contrast else "")
        table = score_table(trained, papers or {}, rival)
        together, profiles = overall(trained, rival)
        pictures = [dots(trained, papers or {}), *profiles, *curves(trained)]
        return Shown(verdict, [table, *together], pictures, [*caveats(trained), *notes])

    return show


# Tables -----------------------------------------------------------------------------------------


def score_table(findings: Findings, papers: Papers, base: str) -> Grid:
    """A line a cell: ours, the paper's, the difference to a base, what it took."""
    wins = any(item.measure is WON for item in findings)
    more = any(item.cell.more for item in findings)
    head = [
        "task",
        "sharing",
        "variant",
        *[""] * more,
        "steps",
        "ours",
        *["median of last ten"] * wins,
    ]
    head += ["the paper's", *[f"difference to {base}"] * bool(base), "gradient steps", "minutes"]
    rows = []
    for item in findings:
        row = [*item.place, *[item.cell.more] * more, steps(item), bold(item)]
        row += [*[last_ten(item)] * wins, published(papers.get(item.place), item.measure.unit)]
        row += [difference(item, findings, base)] * bool(base)
        rows.append([*row, f"{gradient_steps(item):,}", f"{minutes(item):.1f}"])
    return Grid("Scores", head, rows, CAPTION + (WINS_CAPTION if wins else ""), words=3 + more)


CAPTION = (
    "Ours: the last policy of every seed, mean ± half of the 95 % interval over seeds (Student's "
    "t). The paper's: as printed, with its standard deviation. Differences are paired by seed. "
    "Gradient steps are those of a seed's policies, of all turns together; minutes those of all "
    "seeds together, evaluations included."
)
WINS_CAPTION = (
    " Wins in percent. Median of last ten: per seed the median of its last ten evaluations, then "
    "the median over seeds, with the standard deviation over all of these evaluations. The "
    "paper's win rates are of StarCraft II, ours of a simulator."
)


def steps(item: Found) -> str:
    """Environment steps of a seed."""
    return count_text(item.run.step) if item.run else "–"


def bold(item: Found) -> str:
    """The score, its centre in bold."""
    text = score_text(mean_interval(item.seeds), item.measure.unit)
    centre, mark, rest = text.partition(" ±")
    return f"**{centre}**{mark}{rest}"


def last_ten(item: Found) -> str:
    """The median of the last ten evaluations' win rates."""
    if item.run is None or item.measure is not WON:
        return "–"
    value = 100 * item.run.series("eval_won").value
    if not value.size:
        return "–"
    found = smac_win_rate(value)
    return f"{found.median:.1f} ({found.pooled_deviation:.1f}) %"


def published(known: Published | None, unit: str = "") -> str:
    """A number of the paper."""
    return f"{known.centre:g} ± {known.deviation:g}{unit}" if known else "–"


def difference(item: Found, findings: Findings, base: str) -> str:
    """How much more a cell reaches than the base under the same task and sharing."""
    other = rival(item, findings, base)
    if other is None or other is item:
        return "–"
    interval = paired(item, other)
    text = score_text(interval, item.measure.unit)
    return text if text.startswith(("-", "–")) else f"+{text}"


def rival(item: Found, findings: Findings, variant: str) -> Found | None:
    """The cell of another variant in the same place."""
    place = item.cell.task, item.cell.sharing, variant, item.cell.more
    return next((x for x in findings if (*x.place, x.cell.more) == place), None)


def paired(ours: Found, theirs: Found) -> Interval:
    """The difference seed by seed; seeds that only one of them has are left out."""
    size = min(len(ours.seeds), len(theirs.seeds))
    return mean_interval(ours.seeds[:size] - theirs.seeds[:size])


def gradient_steps(item: Found) -> int:
    """Steps of the policies' optimisers in a seed's whole training."""
    return int(np.nansum(item.run.series("actor_steps").value[0])) if item.run else 0


def minutes(item: Found) -> float:
    """Of training, all processes of the run together."""
    total, last = 0.0, 0.0
    path = item.path / "timing.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        seconds = json.loads(line)["seconds"]
        if seconds < last:  # the run was stopped here and resumed
            total += last
        last = seconds
    return (total + last) / 60


# Words ------------------------------------------------------------------------------------------


def judged(findings: Findings, contrast: Contrast) -> Sequence[str]:
    """Two sentences: what was found, and whether that is what the paper says."""
    found = tally(findings, contrast.ours, contrast.theirs)
    total = sum(found)
    if not total:
        return ["The cells that would answer are not finished."]
    first = (
        f"“{contrast.ours}” is better than “{contrast.theirs}” in {found.better} of {total} "
        f"{'cell' if total == 1 else 'cells'}, worse in {found.worse}, and not told apart in "
        f"{found.open} (95 % intervals of the differences, paired by seed)."
    )
    words = [first, answer(found, contrast.expected)]
    if contrast.expected == "equal":
        pairs = [(x, rival(x, findings, contrast.theirs)) for x in findings
                 if x.cell.variant == contrast.ours]  # fmt: skip
        widths = [paired(x, other).half for x, other in pairs if other]
        if np.isfinite(widths).any():
            low, high = (number_text(float(f(widths))) for f in (np.nanmin, np.nanmax))
            words.append(f"Differences of up to {low} to {high} would not be seen in them.")
    return words


def tally(findings: Findings, ours: str, theirs: str) -> Verdict:
    """How a variant did against another one, cell by cell."""
    counts = [0, 0, 0]
    for item in findings:
        other = rival(item, findings, theirs)
        if item.cell.variant != ours or other is None:
            continue
        interval = paired(item, other)
        known = interval.known
        counts[0 if known and interval.low > 0 else 1 if known and interval.high < 0 else 2] += 1
    return Verdict(*counts)


def answer(found: Verdict, expected: str) -> str:
    """Whether the paper's claim holds in these cells; without a claim, who is ahead."""
    total = sum(found)
    if not expected:
        words = "ahead" if found.better > found.worse else "behind"
        return "Neither is ahead." if found.better == found.worse else f"The first one is {words}."
    if expected == "equal":
        holds, fails = found.open > total / 2, found.better + found.worse > total / 2
    else:
        good, bad = (found.better, found.worse)[:: 1 if expected == "better" else -1]
        holds, fails = good > total / 2 and not bad, bad > good
    if holds:
        return "What the paper says holds here."
    if fails:
        return "What the paper says does not hold here."
    return "What the paper says is neither confirmed nor refuted here."


def caveats(findings: Findings) -> list[str]:
    """What a reader must know before trusting a number."""
    notes = []
    runs = [item.run for item in findings if item.run]
    few = min(len(run.seeds) for run in runs)
    if few < 5:
        notes.append(f"Some cells have only {few} seeds: their intervals are wide or missing.")
    short = [
        f"{item.cell.label} ({count_text(item.run.step)} of {count_text(item.cell.plan.steps)})"
        for item in findings
        if item.run and item.run.step < item.cell.plan.steps
    ]
    if short:
        more = f" and {len(short) - 6} more" if len(short) > 6 else ""
        notes.append(f"Fewer steps than planned: {', '.join(short[:6])}{more}.")
    return notes + unlearned(findings)


def unlearned(findings: Findings) -> list[str]:
    """Where no variant does better than the best team that knows nothing."""
    notes = []
    for place in dict.fromkeys((item.cell.task, item.cell.sharing) for item in findings):
        own = [item for item in findings if (item.cell.task, item.cell.sharing) == place]
        known = own[0].run.results.get("references", {}) if own[0].run else {}
        floor = known.get("blind", known.get("random"))
        # Twice the luck of the draw above it is not yet above it.
        best = max(mean_interval(item.seeds).centre for item in own)
        if not floor or best > own[0].measure.of(floor) + 2 * abs(floor.get("stderr") or 0.0):
            continue
        words = "the best team that does not talk" if "blind" in known else "a random team"
        notes.append(
            f"{place[0]} with {in_words(place[1])} is not learned at this scale: no variant does "
            f"better than {words} ({number_text(own[0].measure.of(floor))}). Its differences are "
            "those of early learning."
        )
    return notes
