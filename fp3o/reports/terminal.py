"""Table of final results for a terminal."""

import io
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fp3o.reports.data.labels import read_runs
from fp3o.reports.data.scores import TaskScores, scores_by_task
from fp3o.reports.phrasing import (
    DASH,
    baseline_text,
    count_text,
    run_text,
    score_text,
    speed_text,
)


def summary_table(paths: Sequence[str | Path]) -> Table:
    """Final results of one or more runs and of the baselines."""
    tasks = scores_by_task(read_runs(paths))
    wins = any(scores.wins for scores in tasks)
    what = "Wins and return" if wins else "Return"
    table = Table(
        title=f"{what} per agent, mean ± 95 % interval over seeds", box=box.SIMPLE_HEAD,
        title_justify="left", title_style="bold",
    )  # fmt: skip
    table.add_column("run", no_wrap=True)
    for name in ("seeds", "steps", *["wins"] * wins, "last policy", "best policy", "steps/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for scores in tasks:
        if len(tasks) > 1:
            table.add_row(Text(scores.task, style="bold"))
        _add_rows(table, scores, wins)
        table.add_section()
    return table


def _add_rows(table: Table, scores: TaskScores, wins: bool) -> None:
    """One row per run and per baseline of a task."""
    for run, last, best in zip(scores.runs, scores.last, scores.best, strict=True):
        note = "" if last.final else f" ({last.source})"
        best_text = DASH if best is None else score_text(best.interval)
        table.add_row(
            Text(run.label), str(len(last.seeds)), count_text(run.step),
            *[run_text(scores.wins, run)] * wins,
            score_text(last.interval) + note, best_text, speed_text(run),
        )  # fmt: skip
    for baseline in scores.baselines:
        won = [baseline_text(scores.wins, baseline.name)] * wins
        value = baseline_text(scores, baseline.name)
        table.add_row(Text(baseline.title), "", "", *won, value, "", "", style="dim")


def summary_text(paths: Sequence[str | Path]) -> str:
    """The table as plain text, for logs and files."""
    stream = io.StringIO()
    console = Console(file=stream, width=120, color_system=None, legacy_windows=False)
    console.print(summary_table(paths))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).strip("\n") + "\n"
