"""Numbers and findings as text; only claims that the intervals support are made."""

import math
import unicodedata
from collections.abc import Sequence

from fp3o.reports.data.measures import WIN_RATE
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import BaselineScore, TaskScores
from fp3o.reports.stats.intervals import Interval

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories of characters that cannot be seen but may act."""

DASH = "–"
"""Placeholder for an unknown number."""


def count_text(count: float | int) -> str:
    """A count in short form: 1.5M, 41.6k, 950."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= 0.9995 * size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"


def number_text(value: float | int, spread: float = math.nan) -> str:
    """A number with the digits that its spread supports; without a spread, three digits."""
    if not math.isfinite(value):
        return DASH
    known = math.isfinite(spread) and spread > 0
    scale = spread if known else abs(value) / 10
    digits = 2 if scale == 0 else 1 - math.floor(math.log10(scale))
    text = f"{value:.{min(max(digits, 0), 4)}f}"
    return text if known or "." not in text else text.rstrip("0").rstrip(".")


def short(text: str, size: int) -> str:
    """A text of at most `size` characters."""
    return text if len(text) <= size else f"{text[: size - 1]}…"


def visible(text: str) -> str:
    """A text without control characters and marks of the direction of writing: as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode()
        if unicodedata.category(char) in _UNSEEN and char not in "\n\t"
        else char
        for char in text
    )


def score_text(interval: Interval, unit: str = "") -> str:
    """`-5.21 ± 0.31`, with a unit `93.1 ± 4.2 %`; without an interval the mean alone."""
    if not math.isfinite(interval.centre):
        return DASH
    if not interval.known:
        return number_text(interval.centre) + unit
    half = interval.half
    return f"{number_text(interval.centre, half)} ± {number_text(half, half)}{unit}"


def with_sign(text: str) -> str:
    """A difference with its sign."""
    return text if text.startswith(("-", DASH)) else f"+{text}"


def interval_text(interval: Interval) -> str:
    """`-5.21 [-5.52, -4.90]`; without an interval the number alone."""
    if not interval.known:
        return number_text(interval.centre)
    half = interval.half
    low, high = number_text(interval.low, half), number_text(interval.high, half)
    return f"{number_text(interval.centre, half)} [{low}, {high}]"


def run_text(scores: TaskScores | None, run: RunRecord) -> str:
    """Score of a run's last policy; a dash if it has none."""
    score = scores.score(run) if scores else None
    return score_text(score.interval, scores.measure.unit) if scores and score else DASH


def baseline_text(scores: TaskScores | None, name: str, with_error: bool = False) -> str:
    """Score of a baseline, optionally with its error; a dash if it has none."""
    item = scores.baseline(name) if scores else None
    if not scores or not item:
        return DASH
    error = 1.96 * item.stderr if with_error else math.nan
    interval = Interval(item.value, item.value - error, item.value + error, 1)
    return score_text(interval, scores.measure.unit)


def extra_text(run: RunRecord) -> str:
    """The part of a run's label after algorithm and sharing."""
    return run.label.removeprefix(f"{run.algorithm} · {run.sharing}").removeprefix(" · ")


def reason_text(error: str) -> str:
    """The last line of an error, which states the reason."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return short(visible(lines[-1]), 500) if lines else "unknown reason"


def speed_text(run: RunRecord) -> str:
    """Environment steps per second; a dash if unknown."""
    value = run.results.get("steps_per_second")
    return count_text(value) if isinstance(value, int | float) else DASH


def sharing_text(run: RunRecord) -> str:
    """The sharing as a phrase: `partial sharing`, `no sharing`."""
    return sharing_title(run.sharing)


def sharing_title(name: str) -> str:
    """A sharing by its name as a phrase; maps, layers and phrases stay as they are."""
    if name == "none":
        return "no sharing"
    phrase = name.replace("_", " ")
    return phrase if phrase.endswith(("map", "sharing", "layers")) else f"{phrase} sharing"


def finding(scores: TaskScores) -> str:
    """The result of a task in one or two sentences."""
    first, *rest = scores.order
    if not rest:
        return _best_run(scores, first) + "."
    lead = f"Best of {len(scores.runs)} runs: {_best_run(scores, first)}."
    return f"{lead} {_against_runs(scores.ranking, first, rest)}"


def _best_run(scores: TaskScores, index: int) -> str:
    run, score = scores.runs[index], scores.last[index]
    seeds = f"{len(score.seeds)} seeds" if len(score.seeds) > 1 else "one seed"
    so_far = "" if score.final else f" so far ({score.source}, {count_text(run.step)} steps)"
    extra = f" and {text}" if (text := extra_text(run)) else ""
    subject = f"{run.algorithm} with {sharing_text(run)}{extra}"
    returns = f"{score_text(score.interval)} per agent"
    against = _against_baselines(scores.ranking, index)
    if scores.ranking is scores:
        return f"{subject} reached {returns} ({seeds}){so_far}{against}"
    wins = f"wins {run_text(scores.wins, run)} of its battles ({seeds})"
    return f"{subject} {wins}{so_far}{against}; its return is {returns}"


def _against_baselines(scores: TaskScores, index: int) -> str:
    """The baselines next to a run's score: the highest it exceeds, the lowest it falls short of."""
    if not scores.baselines:
        return ""
    if not scores.last[index].evidence.known:
        return "; a single seed without a known error cannot be compared with the baselines"
    groups: dict[str, list[BaselineScore]] = {"above": [], "open": [], "below": []}
    for baseline in scores.baselines:
        groups[_position(scores, index, baseline)].append(baseline)
    unit = scores.measure.unit
    parts = [
        f"{relation} {_named(chosen, unit)}"
        for relation, chosen in (
            ("better than", groups["above"][-1:]),
            ("not clearly different from", groups["open"]),
            ("worse than", groups["below"][:1]),
        )
        if chosen
    ]
    single = len(scores.last[index].seeds) == 1
    caveat = " (one policy; other seeds may differ)" if single else ""
    return ", " + ", ".join(parts) + caveat


def _named(baselines: Sequence[BaselineScore], unit: str) -> str:
    names = [f"“{item.title}” ({number_text(item.value)}{unit})" for item in baselines]
    if len(names) == 1:
        return f"the baseline {names[0]}"
    return f"the baselines {', '.join(names[:-1])} and {names[-1]}"


def _position(scores: TaskScores, index: int, baseline: BaselineScore) -> str:
    """Above or below a baseline if the intervals do not overlap, else open."""
    ours = scores.last[index].evidence
    half = 1.96 * baseline.stderr if math.isfinite(baseline.stderr) else 0.0
    if ours.low > baseline.value + half:
        return "above"
    return "below" if ours.high < baseline.value - half else "open"


def _against_runs(scores: TaskScores, first: int, rest: Sequence[int]) -> str:
    """Whether the best run's interval overlaps those of the others."""
    top, of = scores.last[first].interval, " of wins" if scores.measure is WIN_RATE else ""
    if not top.known:
        return "Single seeds cannot rank the runs."
    near = []
    for index in rest:
        other = scores.last[index].interval
        if not other.known or other.high >= top.low:
            near.append(scores.runs[index].label)
    if not near:
        return f"Its 95 % interval{of} lies above all others."
    names = ", ".join(near) if len(near) <= 4 else f"{len(near)} other runs"
    verb = "overlaps those of" if len(near) > 1 else "overlaps that of"
    return f"Its 95 % interval{of} {verb} {names}: their order is open."
