"""One HTML file about one or several runs: nothing to install, nothing to fetch."""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fp3o.reports.data.record import RunRecord, differences
from fp3o.reports.data.scores import Section, overall
from fp3o.reports.pages.css import CSS
from fp3o.reports.pages.curves import Keep, learning_curves, script
from fp3o.reports.pages.markup import Html, details, join, table, tag
from fp3o.reports.pages.results import MOST, how_it_learned, results, slug
from fp3o.reports.pages.videos import watch
from fp3o.reports.phrasing import count_text, ends_text, finding, number_text

ROOM = {True: 8_000_000, False: 4_000_000}
"""Bytes of films in a page about a few runs, and about many."""

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; "
    "base-uri 'none'; form-action 'none'; script-src 'sha256-{}'"
)
"""What a browser may do for the page: fetch nothing, run our script and no other."""


class Chapter(NamedTuple):
    """A part of a page with a heading; without content it is left out."""

    title: str
    content: Sequence[str]


def page(runs: Sequence[RunRecord], parts: Sequence[Section], keep: Keep | None) -> Html:
    """The whole document about some runs."""
    beginning = [*_leads(parts), *caveats(runs, parts)]
    named = with_names(parts)
    reached = [
        Chapter("Results" if len(parts) == 1 else part.task, results(part, name, keep))
        for name, part in named
    ]
    chapters = [
        *reached,
        Chapter("All tasks together", _overall(parts)),
        Chapter("Learning curves", learning_curves(named, keep)),
        *insight(named, keep),
        Chapter("Settings", settings(runs)),
        Chapter("To do it again", origins(runs)),
    ]
    return document(headline(parts), beginning, chapters)


def document(title: str, beginning: Sequence[str], parts: Sequence[Chapter]) -> Html:
    """A whole page: title, what is to be known first, and chapters."""
    there = [chapter for chapter in parts if chapter.content]
    body = [tag("h1", title), *beginning, *_contents(there)]
    for place, chapter in enumerate(there):
        body += [tag("h2", chapter.title, id=f"part{place}"), *chapter.content]
    program = script()
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    head = join(
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(digest)}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", Html(CSS)),
    )
    inside = join(tag("head", head), tag("body", tag("main", *body), tag("script", Html(program))))
    return join(Html("<!doctype html>\n"), tag("html", inside, lang="en"), Html("\n"))


def _contents(parts: Sequence[Chapter]) -> list[Html]:
    """Links to the chapters."""
    links = [tag("a", chapter.title, href=f"#part{k}") for k, chapter in enumerate(parts)]
    return [tag("nav", *links, aria_label="Contents")] if len(links) > 2 else []


def with_names(parts: Sequence[Section]) -> list[tuple[str, Section]]:
    """Tasks and what names of their figures begin with: the task, where there are several."""
    alone = len(parts) == 1
    return [("" if alone else f"{slug(part.task)}_", part) for part in parts]


def insight(parts: Sequence[tuple[str, Section]], keep: Keep | None) -> list[Chapter]:
    """What goes on in single runs: diagnostics and films."""
    runs = [run for _, part in parts for run in part.runs]
    return [
        Chapter("How it learned", how_it_learned(parts, keep)),
        Chapter("Watch", watch(runs, ROOM[len(runs) <= MOST])),
    ]


def headline(parts: Sequence[Section]) -> str:
    """What the report is about."""
    runs = [run for part in parts for run in part.runs]
    if len(runs) == 1:
        return f"{runs[0].label} on {parts[0].task}"
    tasks = parts[0].task if len(parts) == 1 else f"{len(parts)} tasks"
    return f"{len(runs)} runs on {tasks}"


def _leads(parts: Sequence[Section]) -> list[Html]:
    if len(parts) == 1:
        return [tag("p", finding(parts[0]), class_="lead")]
    return [tag("p", tag("b", part.task), ": ", finding(part)) for part in parts]


def caveats(runs: Sequence[RunRecord], parts: Sequence[Section]) -> list[Html]:
    """What a reader must know before trusting a number."""
    notes = []
    shown = {run.path for part in parts for run in part.runs}
    if underway := [run for run in runs if not run.finished and run.path in shown]:
        states = (f"{run.label} at {count_text(run.step)} steps" for run in underway)
        notes.append(f"Unfinished, shown as far as it got: {'; '.join(states)}.")
    if empty := [str(run.path) for run in runs if run.path not in shown]:
        notes.append(f"Nothing measured yet, left out: {', '.join(empty)}.")
    if any(len(score.seeds) == 1 for part in parts for score in part.last):
        notes.append("A single seed has no interval: how other seeds would do is not known.")
    wins = any(part.wins is not None for part in parts)
    won = "Wins: share of the battles that the last policy won. " if wins else ""
    small = (
        "Returns are per agent: the mean over agents, summed over an episode. ± is half the width "
        "of the 95 % Student-t interval over seeds. “Last” is the policy at the end of training, "
        "“best” the best policy seen in training, judged again on fresh episodes."
    ) + "".join(sorted({_evaluation(run) for run in runs}))
    told = tag("p", won, small, class_="small")
    return [*(tag("p", note, class_="note") for note in notes), told]


def _evaluation(run: RunRecord) -> str:
    """How the final numbers were taken."""
    told = run.results.get("evaluation") or {}
    actions = ", deterministic actions" if told.get("deterministic") else ""
    return f" Final evaluation: {told['episodes']} episodes a seed{actions}." if told else ""


def _overall(parts: Sequence[Section]) -> list[Html]:
    rows = [[label, ends_text(interval)] for label, interval in overall(parts)]
    if not rows:
        return []
    small = "Returns scaled task by task: 0 is random actions, 1 is the planner."
    head = ["run", "interquartile mean over tasks and seeds, stratified bootstrap"]
    return [table(head, rows), tag("p", small, class_="small")]


def settings(runs: Sequence[RunRecord]) -> list[Html]:
    """Where the settings of the runs differ, and what they share."""
    different, found = differences(runs), []
    if different:
        usual = {key: Counter(repr(run.settings.get(key)) for run in runs) for key in different}
        rows = []
        for run in runs:
            cells = []
            for key in different:
                value, counts = run.settings.get(key), usual[key]
                rare = counts[repr(value)] < max(counts.values())
                cells.append(tag("mark", _value(value)) if rare else _value(value))
            rows.append([run.label, *cells])
        every = range(len(different) + 1)
        found += [tag("h3", "Where the runs differ"), table(["run", *different], rows, words=every)]
    same = [[key, _value(value)] for key, value in runs[0].settings.items() if key not in different]
    title = "All settings" if len(runs) == 1 else "Settings that all runs share"
    return [*found, details(title, table(["setting", "value"], same, words=(0, 1)))]


def _value(value: object) -> str:
    """As one writes it on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def origins(runs: Sequence[RunRecord]) -> list[Html]:
    """Each run's command and what it ran on; of many runs behind one heading."""
    several = len({run.task for run in runs}) > 1
    found = [_origin(run, several, opened=len(runs) == 1) for run in runs]
    return found if len(runs) <= MOST else [details(f"All {len(runs)} runs", *found)]


def _origin(run: RunRecord, with_task: bool, opened: bool) -> Html:
    config, title = run.config, run.label + (f" on {run.task}" if with_task else "")
    versions = ", ".join(f"{k} {v}" for k, v in (config.get("versions") or {}).items())
    seconds = (run.results.get("seconds") or {}).items()
    rows = {
        "folder": str(run.path),
        "begun": str(config.get("created", "?")),
        "commit": str(config.get("commit") or "unknown"),
        "versions": versions,
        "device": str(config.get("device", "?")),
        "seconds": ", ".join(
            f"{k} {number_text(v)}" for k, v in seconds if isinstance(v, int | float)
        ),
    }
    command = tag("pre", str(config.get("command", "?")))
    lines = [[name, value] for name, value in rows.items() if value]
    return details(title, command, table(["", ""], lines, words=(0, 1)), opened=opened)
