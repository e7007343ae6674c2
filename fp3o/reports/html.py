"""One HTML file about one or several runs: nothing to install, nothing to fetch, no scripts."""

from collections import Counter
from collections.abc import Sequence

from fp3o.reports.markup import Html, details, join, table, tag
from fp3o.reports.read import Run, differences
from fp3o.reports.results import Keep, results
from fp3o.reports.scores import Section, overall
from fp3o.reports.style import CSS
from fp3o.reports.words import count_text, ends_text, finding, number_text


def page(runs: Sequence[Run], parts: Sequence[Section], keep: Keep) -> Html:
    """The whole document."""
    title = headline(parts)
    body = [tag("h1", title), *_leads(parts), *_notes(runs, parts)]
    for part in parts:
        body += results(part, len(parts) == 1, keep)
    body += [*_overall(parts), *_settings(runs), *_reproduction(runs)]
    head = join(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(CSS)),
    )
    inside = join(tag("head", head), tag("body", tag("main", *body)))
    return join(Html("<!doctype html>\n"), tag("html", inside, lang="en"), Html("\n"))


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


def _notes(runs: Sequence[Run], parts: Sequence[Section]) -> list[Html]:
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


def _evaluation(run: Run) -> str:
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
    return [tag("h2", "All tasks together"), table(head, rows), tag("p", small, class_="small")]


def _settings(runs: Sequence[Run]) -> list[Html]:
    different = differences(runs)
    found = [tag("h2", "Settings")]
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
        found += [
            tag("h3", "Where the runs differ"),
            table(["run", *different], rows, words=range(99)),
        ]
    same = [[key, _value(value)] for key, value in runs[0].settings.items() if key not in different]
    title = "All settings" if len(runs) == 1 else "Settings that all runs share"
    return [*found, details(title, table(["setting", "value"], same, words=(0, 1)))]


def _value(value: object) -> str:
    """As one writes it on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _reproduction(runs: Sequence[Run]) -> list[Html]:
    found = [tag("h2", "To do it again")]
    for run in runs:
        config = run.config
        versions = ", ".join(f"{k} {v}" for k, v in (config.get("versions") or {}).items())
        seconds = (run.results.get("seconds") or {}).items()
        seconds = [f"{k} {number_text(v)}" for k, v in seconds if isinstance(v, int | float)]
        rows = [
            ["folder", str(run.path)],
            ["begun", str(config.get("created", "?"))],
            ["commit", str(config.get("commit") or "unknown")],
            ["versions", versions],
            ["device", str(config.get("device", "?"))],
            ["seconds", ", ".join(seconds)],
        ]
        command = tag("pre", str(config.get("command", "?")))
        lines = [[name, value] for name, value in rows if value]
        found.append(
            details(run.label, command, table(["", ""], lines, words=(0, 1)), opened=len(runs) == 1)
        )
    return found
