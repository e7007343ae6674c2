"""Numbers and findings in plain words; a claim is made only where the intervals allow it."""

import math
from collections.abc import Sequence

from fp3o.reports.data.measures import WON
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import Section
from fp3o.reports.stats.intervals import Interval

TALKING = ("mpe/simple_reference", "mpe/simple_speaker_listener")
"""Tasks in which only another agent's words can tell an agent its goal."""


def count_text(count: float | int) -> str:
    """A large count in short: 1.5M, 41.6k, 950."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= 0.9995 * size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"


def number_text(value: float | int, spread: float = math.nan) -> str:
    """A number with the digits that its spread supports; three significant ones without it."""
    if not math.isfinite(value):
        return "–"
    known = math.isfinite(spread) and spread > 0
    scale = spread if known else abs(value) / 10
    digits = 2 if scale == 0 else 1 - math.floor(math.log10(scale))
    text = f"{value:.{min(max(digits, 0), 4)}f}"
    return text if known or "." not in text else text.rstrip("0").rstrip(".")


def short(text: str, size: int) -> str:
    """A text of at most this many letters."""
    return text if len(text) <= size else f"{text[: size - 1]}…"


def score_text(interval: Interval, unit: str = "") -> str:
    """`-5.21 ± 0.31`, with a unit `93.1 ± 4.2 %`; without an interval the mean alone."""
    if not interval.known:
        return number_text(interval.centre) + unit
    half = interval.half
    return f"{number_text(interval.centre, half)} ± {number_text(half, half)}{unit}"


def ends_text(interval: Interval) -> str:
    """`-5.21 [-5.52, -4.90]`; without an interval the number alone."""
    if not interval.known:
        return number_text(interval.centre)
    half = interval.half
    low, high = number_text(interval.low, half), number_text(interval.high, half)
    return f"{number_text(interval.centre, half)} [{low}, {high}]"


def run_text(section: Section | None, run: RunRecord) -> str:
    """What a run's last policy reached in this section; a dash where nothing is known."""
    score = section.score(run) if section else None
    return score_text(score.interval, section.measure.unit) if section and score else "–"


def reference_text(section: Section | None, name: str, exact: bool = False) -> str:
    """What a reference policy reached in this section, `exact`ly with its error."""
    item = section.reference(name) if section else None
    if not section or not item:
        return "–"
    error = 1.96 * item.stderr if exact else math.nan
    interval = Interval(item.value, item.value - error, item.value + error, 1)
    return score_text(interval, section.measure.unit)


def extra_text(run: RunRecord) -> str:
    """What the run's label says beyond algorithm and sharing."""
    return run.label.removeprefix(f"{run.algorithm} · {run.sharing}").removeprefix(" · ")


def reason_text(error: str) -> str:
    """What went wrong, in a line: the last one of an error says it."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason is known"


def speed_text(run: RunRecord) -> str:
    """Environment steps a second; a dash where unknown."""
    value = run.results.get("steps_per_second")
    return count_text(value) if isinstance(value, int | float) else "–"


def sharing_text(run: RunRecord) -> str:
    """The sharing in words: `partial sharing`, `no sharing`."""
    if run.sharing == "none":
        return "no sharing"
    return run.sharing if run.sharing.endswith("map") else f"{run.sharing} sharing"


def finding(section: Section) -> str:
    """The result of a task in one or two sentences."""
    first, *rest = section.order
    if not rest:
        return _sentence(section, first) + "."
    lead = f"Best of {len(section.runs)} runs: {_sentence(section, first)}."
    return f"{lead} {_standing(section.lead, first, rest)}"


def _sentence(section: Section, place: int) -> str:
    run, score = section.runs[place], section.last[place]
    seeds = f"{len(score.seeds)} seeds" if len(score.seeds) > 1 else "one seed"
    so_far = "" if score.final else f" so far ({score.source}, {count_text(run.step)} steps)"
    extra = f" and {words}" if (words := extra_text(run)) else ""
    who = f"{run.algorithm} with {sharing_text(run)}{extra}"
    told = f"{score_text(score.interval)} per agent"
    if section.lead is section:
        return f"{who} reached {told} ({seeds}){so_far}{_against(section, place)}"
    wins = f"wins {run_text(section.wins, run)} of its battles ({seeds})"
    return f"{who} {wins}{so_far}{_against_scripts(section.lead, place)}; its return is {told}"


def _against_scripts(wins: Section, place: int) -> str:
    """How the run's wins stand to those of the best scripted team, as far as intervals tell."""
    if not wins.references or not wins.last[place].range.known:
        return ""
    scripts = [item for item in wins.references if item.name not in ("random", "still")]
    best = (scripts or wins.references)[-1]
    value = reference_text(wins, best.name)
    value += "; other seeds may differ" if len(wins.last[place].seeds) == 1 else ""
    team = f"the best scripted team ({best.label}, " if scripts else f"{best.label} ("
    verb = {"above": "more than", "open": "not clearly more than", "below": "less than"}
    return f", {verb[_compare(wins, place, best.name)]} {team}{value})"


def _against(section: Section, place: int) -> str:
    """How the run stands to the references, as far as the intervals tell."""
    if not section.last[place].range.known:
        return "; a single seed without a known error says nothing about the reference policies"
    known = {reference.name: reference for reference in section.references}
    verdicts = {name: _compare(section, place, name) for name in known}
    words = ""
    if (name := "blind" if "blind" in known else "random") in known:
        label = f"{_article(known[name].label)} ({number_text(known[name].value)})"
        words += {
            "above": f", better than {label}",
            "open": f", not clearly better than {label}",
            "below": f", worse than {label}",
        }[verdicts[name]]
        talks = section.runs[place].settings.get("task") in TALKING
        if talks and name == "blind" and verdicts[name] == "above":
            words += ": the team communicates"
    if "planner" in known:
        value = number_text(known["planner"].value)
        words += {
            "above": f"; it is better than the planner ({value})",
            "open": f"; the planner ({value}) is not clearly better",
            "below": f"; the planner reaches {value}",
        }[verdicts["planner"]]
    one = len(section.last[place].seeds) == 1
    return words + (" (one policy; other seeds may differ)" if one and words else "")


def _article(label: str) -> str:
    return f"the {label}" if label.startswith("best") else label


def _compare(section: Section, place: int, name: str) -> str:
    """Above or below a reference if the intervals do not touch, else open."""
    ours = section.last[place].range
    reference = next(item for item in section.references if item.name == name)
    half = 1.96 * reference.stderr if math.isfinite(reference.stderr) else 0.0
    if ours.low > reference.value + half:
        return "above"
    return "below" if ours.high < reference.value - half else "open"


def _standing(section: Section, first: int, rest: Sequence[int]) -> str:
    """Whether the best run is ahead of the others."""
    top, of = section.last[first].interval, " of wins" if section.measure is WON else ""
    if not top.known:
        return "One seed each cannot rank the runs."
    near = []
    for place in rest:
        other = section.last[place].interval
        if not other.known or other.high >= top.low:
            near.append(section.runs[place].label)
    if not near:
        return f"Its 95 % interval{of} is clear of all others."
    names = ", ".join(near) if len(near) <= 4 else f"{len(near)} other runs"
    verb = "overlaps those of" if len(near) > 1 else "overlaps that of"
    return f"Its 95 % interval{of} {verb} {names}: the order among these is open."
