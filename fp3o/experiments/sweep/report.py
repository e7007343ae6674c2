"""The report of a sweep: verdict, best trials, figures; and the same for a terminal."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from fp3o.experiments.sweep.figures import sweep_figures
from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.result import SweepResult
from fp3o.experiments.sweep.settings import program_key
from fp3o.experiments.sweep.study import FAILED, FINISHED, PRUNED, TrialRecord
from fp3o.reports.data.measures import find_measure
from fp3o.reports.experiment_report import ExperimentReport, Failure, ResultTable
from fp3o.reports.pages.experiment_page import write_experiment_page
from fp3o.reports.phrasing import count_text, number_text, score_text
from fp3o.reports.stats.intervals import mean_interval

SHOWN = 10
"""Rows of the table of the best trials."""

OPTIMISTIC = (
    "The score of the best trial is the largest of many noisy numbers: it is expected to be lower "
    "in another run. Train `best.json` with other seeds before comparing it with anything."
)


def write_sweep_report(result: SweepResult, importances: Mapping[str, float]) -> Path:
    """Write `report.html`, `results.md`, `tables.tex` and the figures into the sweep's folder."""
    return write_experiment_page(sweep_report(result, importances), result.path)


def sweep_report(result: SweepResult, importances: Mapping[str, float]) -> ExperimentReport:
    """The content of the report."""
    settings, record = result.settings, SweepFolder(result.path).read()
    base, options = settings.base, settings.options
    space = ", ".join(f"`{name}={text}`" for name, text in record["search"].items())
    measure = find_measure(options.measure).title.lower()
    steps, aim = count_text(base.steps), "smallest" if options.minimise else "largest"
    return ExperimentReport(
        name="sweep",
        title=f"Sweep of {', '.join(settings.space)} on {base.task}",
        question=f"Which of {space} gives the {aim} {measure} after {steps} steps?",
        claim="",
        verdict=[verdict_text(result), *importance_text(importances)],
        command=str(record["command"]),
        scale=f"{settings.trials} trials, {base.seeds} seeds each, sampler {options.sampler}, "
        f"pruner {options.pruner}, {_programs(result)} compiled",
        tables=[best_table(result), states_table(result)],
        figures=sweep_figures(result, importances),
        notes=[OPTIMISTIC] if result.best else [],
        failures=[
            Failure(f"trial {row.number}: {_values(row)}", row.reason)
            for row in result.trials
            if row.state == FAILED
        ],
        missing=[f"trial {row.number}" for row in result.trials if row.state == "waiting"],
        machines=str(record["device"]),
    )


def verdict_text(result: SweepResult) -> str:
    """The result in one sentence."""
    counts = Counter(row.state for row in result.trials)
    parts = [f"{counts[state]} {state}" for state in (FINISHED, PRUNED, FAILED) if counts[state]]
    trials = f"{len(result.trials)} trials ({', '.join(parts)})"
    best, measure = result.best, find_measure(result.settings.options.measure)
    if best is None:
        return f"No trial is finished: {trials}."
    done = [row.score for row in result.trials if row.state == FINISHED and row.score is not None]
    middle = number_text(measure.scale * float(np.median(done)))
    return (
        f"Best of {trials}: {measure.title.lower()} {_score(best, result)} with "
        f"{_values(best)} (trial {best.number}); the median of the finished trials is "
        f"{middle}{measure.unit}."
    )


def importance_text(importances: Mapping[str, float]) -> list[str]:
    """Which setting matters most, as a list of at most one sentence."""
    if len(importances) < 2:
        return []
    name, share = max(importances.items(), key=lambda item: item[1])
    return [f"Most important setting: `{name}` ({100 * share:.0f} % of the importance)."]


def best_table(result: SweepResult) -> ResultTable:
    """The best finished trials."""
    measure = find_measure(result.settings.options.measure)
    names = [*result.settings.space]
    rows = [
        [str(row.number), _score(row, result), *(_value(row.params[name]) for name in names),
         count_text(row.steps), number_text(row.seconds)]
        for row in _ranked(result)[:SHOWN]
    ]  # fmt: skip
    seeds = result.settings.base.seeds
    spread = "mean ± half of the 95 % interval over its seeds" if seeds > 1 else "one seed"
    return ResultTable(
        "Best trials",
        ["trial", measure.title.lower(), *names, "steps", "seconds"],
        rows,
        f"Score: {result.settings.options.episodes} episodes per seed, {spread}. Seconds: time in "
        "a program, shared with the other trials in it.",
        text_columns=1,
    )


def states_table(result: SweepResult) -> ResultTable:
    """How trials ended, and what they cost."""
    rows = []
    for state in (FINISHED, PRUNED, FAILED):
        group = [row for row in result.trials if row.state == state]
        if group:
            steps = sum(row.steps for row in group) * result.settings.base.seeds
            rows.append([state, str(len(group)), count_text(steps)])
    return ResultTable("All trials", ["state", "trials", "steps of all seeds"], rows)


def trials_table(result: SweepResult) -> Table:
    """The best trials for a terminal."""
    content = best_table(result)
    table = Table(
        title=content.title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold"
    )
    for column in content.head:
        table.add_column(column, justify="right", no_wrap=True)
    for row in content.rows:
        table.add_row(*row)
    return table


def _ranked(result: SweepResult) -> list[TrialRecord]:
    done = [row for row in result.trials if row.state == FINISHED]
    sign = 1 if result.settings.options.minimise else -1
    return sorted(done, key=lambda row: sign * (row.score or 0.0))


def _score(row: TrialRecord, result: SweepResult) -> str:
    measure = find_measure(result.settings.options.measure)
    return score_text(mean_interval([measure.scale * x for x in row.scores]), measure.unit)


def _values(row: TrialRecord) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in row.params.items())


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _programs(result: SweepResult) -> str:
    keys = set()
    for row in result.trials:
        if row.state in (FINISHED, PRUNED):
            keys.add(program_key(result.settings.trial_config(row.params)))
    return f"{len(keys)} programs" if len(keys) != 1 else "one program"
