"""The HTML page about one or more runs."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fp3o.reports.data.labels import differing_settings
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import TaskScores, iqm_over_tasks
from fp3o.reports.pages.curves import SaveFigure, curves_section
from fp3o.reports.pages.document import Chapter, html_document
from fp3o.reports.pages.markup import Html, details, html_table, tag
from fp3o.reports.pages.other_metrics import other_metrics_section
from fp3o.reports.pages.results import MOST_RUNS, diagnostics_section, file_name, task_results
from fp3o.reports.pages.videos import videos_section
from fp3o.reports.phrasing import count_text, finding, interval_text, number_text, short

VIDEO_BYTES = {True: 8_000_000, False: 4_000_000}
"""Maximum total size of videos on a page, in bytes: for few runs, and for many."""

MOST_AGENTS = 20
"""Agents whose start is shown."""

MOST_TEXT = 500
"""Characters of the longest value of a setting that is shown."""


def run_page(
    runs: Sequence[RunRecord], tasks: Sequence[TaskScores], save: SaveFigure | None
) -> Html:
    """The complete page about some runs; `save` writes figures to files."""
    named = with_prefixes(tasks)
    results = [
        Chapter("Results" if len(tasks) == 1 else task.task, task_results(task, prefix, save))
        for prefix, task in named
    ]
    chapters = [
        *results,
        Chapter("All tasks together", _all_tasks(tasks)),
        Chapter("Learning curves", curves_section(named, save)),
        *detail_chapters(named, save),
        Chapter("Settings", settings_section(runs)),
        Chapter("Reproduce", provenance_section(runs)),
    ]
    return html_document(_title(tasks), [*_findings(tasks), *score_notes(runs, tasks)], chapters)


def with_prefixes(tasks: Sequence[TaskScores]) -> list[tuple[str, TaskScores]]:
    """Tasks with a prefix for the names of their figures, empty if there is one task."""
    alone = len(tasks) == 1
    return [("" if alone else f"{file_name(task.task)}_", task) for task in tasks]


def detail_chapters(
    tasks: Sequence[tuple[str, TaskScores]], save: SaveFigure | None
) -> list[Chapter]:
    """Custom metrics, and diagnostics and videos of single runs."""
    runs = [run for _, task in tasks for run in task.runs]
    return [
        Chapter("Other metrics", other_metrics_section(tasks, save)),
        Chapter("Diagnostics", diagnostics_section(tasks, save)),
        Chapter("Videos", videos_section(runs, VIDEO_BYTES[len(runs) <= MOST_RUNS])),
    ]


def _title(tasks: Sequence[TaskScores]) -> str:
    runs = [run for task in tasks for run in task.runs]
    if len(runs) == 1:
        return f"{runs[0].label} on {tasks[0].task}"
    names = tasks[0].task if len(tasks) == 1 else f"{len(tasks)} tasks"
    return f"{len(runs)} runs on {names}"


def _findings(tasks: Sequence[TaskScores]) -> list[Html]:
    if len(tasks) == 1:
        return [tag("p", finding(tasks[0]), class_="lead")]
    return [tag("p", tag("b", task.task), ": ", finding(task)) for task in tasks]


def score_notes(runs: Sequence[RunRecord], tasks: Sequence[TaskScores]) -> list[Html]:
    """Caveats, and the definitions of the numbers."""
    notes = []
    shown = {run.path for task in tasks for run in task.runs}
    if unfinished := [run for run in runs if not run.finished and run.path in shown]:
        states = (f"{run.label} at {count_text(run.step)} steps" for run in unfinished)
        notes.append(f"Unfinished runs: {'; '.join(states)}.")
    if empty := [str(run.path) for run in runs if run.path not in shown]:
        notes.append(f"Left out, no return has been logged yet: {', '.join(empty)}.")
    if any(len(score.seeds) == 1 for task in tasks for score in task.last):
        notes.append("A single seed has no interval: the variation over seeds is unknown.")
    wins = any(task.wins is not None for task in tasks)
    text = "Wins: share of battles won by the last policy. " if wins else ""
    text += (
        "Returns are per agent: the mean over agents, summed over an episode. ± is half the width "
        "of the 95 % Student-t interval over seeds. “Last” is the policy at the end of training, "
        "“best” the best policy during training, evaluated again on fresh episodes."
    )
    text += "".join(sorted({_evaluation_text(run) for run in runs}))
    return [*(tag("p", note, class_="note") for note in notes), tag("p", text, class_="small")]


def _evaluation_text(run: RunRecord) -> str:
    """How the final evaluation was done."""
    evaluation = run.results.get("evaluation") or {}
    if not evaluation:
        return ""
    actions = ", deterministic actions" if evaluation.get("deterministic") else ""
    return f" Final evaluation: {evaluation['episodes']} episodes per seed{actions}."


def _all_tasks(tasks: Sequence[TaskScores]) -> list[Html]:
    rows = [[label, interval_text(interval)] for label, interval in iqm_over_tasks(tasks)]
    if not rows:
        return []
    caption = "Returns normalised per task: 0 is the lowest baseline, 1 the highest."
    head = ["run", "interquartile mean over tasks and seeds, stratified bootstrap"]
    return [html_table(head, rows), tag("p", caption, class_="small")]


def settings_section(runs: Sequence[RunRecord]) -> list[Html]:
    """Settings in which the runs differ, then those they share."""
    different, content = differing_settings(runs), []
    if different:
        counts = {key: Counter(repr(run.settings.get(key)) for run in runs) for key in different}
        rows = []
        for run in runs:
            cells = []
            for key in different:
                value, usual = run.settings.get(key), max(counts[key].values())
                rare = counts[key][repr(value)] < usual
                cells.append(tag("mark", _setting_text(value)) if rare else _setting_text(value))
            rows.append([run.label, *cells])
        columns = range(len(different) + 1)
        content += [tag("h3", "Different settings")]
        content += [
            html_table(["run", *(short(x, 80) for x in different)], rows, text_columns=columns)
        ]
    same = [
        [short(key, 80), _setting_text(value)]
        for key, value in runs[0].settings.items()
        if key not in different
    ]
    title = "All settings" if len(runs) == 1 else "Settings shared by all runs"
    return [*content, details(title, html_table(["setting", "value"], same, text_columns=(0, 1)))]


def _setting_text(value: object) -> str:
    """A value as written on the command line."""
    text = str(value)
    return text.lower() if value is None or isinstance(value, bool) else short(text, MOST_TEXT)


def provenance_section(runs: Sequence[RunRecord]) -> list[Html]:
    """Command, versions and device per run; many runs are collapsed behind one heading."""
    several = len({run.task for run in runs}) > 1
    content = [_provenance(run, several, opened=len(runs) == 1) for run in runs]
    return content if len(runs) <= MOST_RUNS else [details(f"All {len(runs)} runs", *content)]


def _source_text(source: Mapping[str, Any]) -> str:
    """A saved policy from which agents start, and which of them."""
    agents = ", ".join(" from ".join(map(str, pair)) for pair in source["agents"][:MOST_AGENTS])
    frozen = " and frozen" if source.get("frozen") else ""
    critic = ", with its critic" if source.get("critic") else ""
    step = f" at step {count_text(source['step'])}" if source.get("step") is not None else ""
    checksum = short(str(source.get("sha256", "?")), 12)
    return f"{source['path']}{step}{critic} (agents {agents}{frozen}; sha256 {checksum})"


def _provenance(run: RunRecord, with_task: bool, opened: bool) -> Html:
    metadata, title = run.metadata, run.label + (f" on {run.task}" if with_task else "")
    pairs = itertools.islice((metadata.get("versions") or {}).items(), 50)
    versions = ", ".join(f"{short(k, 40)} {short(v, 40)}" for k, v in pairs)
    seconds = itertools.islice((run.results.get("seconds") or {}).items(), 50)
    rows = {
        "folder": str(run.path),
        "starts from": "; ".join(_source_text(x) for x in metadata.get("sources") or ()),
        "started": str(metadata.get("created", "?")),
        "commit": str(metadata.get("commit") or "unknown"),
        "versions": versions,
        "device": str(metadata.get("device", "?")),
        "seconds": ", ".join(
            f"{short(k, 40)} {number_text(v)}" for k, v in seconds if isinstance(v, int | float)
        ),
    }
    command = tag("pre", short(str(metadata.get("command", "?")), 10 * MOST_TEXT))
    lines = [[name, short(value, 10 * MOST_TEXT)] for name, value in rows.items() if value]
    return details(title, command, html_table(["", ""], lines, text_columns=(0, 1)), opened=opened)
