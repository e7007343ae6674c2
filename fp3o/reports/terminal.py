"""The final table for a terminal."""

import io
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fp3o.reports.data.record import read_runs
from fp3o.reports.data.scores import sections
from fp3o.reports.phrasing import count_text, reference_text, run_text, score_text, speed_text


def summary_table(paths: Sequence[str | Path]) -> Table:
    """The final table of one or several runs for a terminal, with the reference policies."""
    parts = sections(read_runs(paths))
    wins = any(part.wins for part in parts)
    what = "Wins, and return" if wins else "Return"
    table = Table(
        title=f"{what} per agent, mean ± 95 % interval over seeds", box=box.SIMPLE_HEAD,
        title_justify="left", title_style="bold",
    )  # fmt: skip
    table.add_column("run", no_wrap=True)
    for name in ("seeds", "steps", *["wins"] * wins, "last policy", "best policy", "steps/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in parts:
        if len(parts) > 1:
            table.add_row(Text(part.task, style="bold"))
        for run, end, top in zip(part.runs, part.last, part.best, strict=True):
            note = "" if end.final else f" ({end.source})"
            found = "–" if top is None else score_text(top.interval)
            table.add_row(
                Text(run.label), str(len(end.seeds)), count_text(run.step),
                *[run_text(part.wins, run)] * wins,
                score_text(end.interval) + note, found, speed_text(run),
            )  # fmt: skip
        for reference in part.references:
            won = [reference_text(part.wins, reference.name)] * wins
            value = reference_text(part, reference.name)
            table.add_row(Text(reference.label), "", "", *won, value, "", "", style="dim")
        table.add_section()
    return table


def summary_text(paths: Sequence[str | Path]) -> str:
    """The final table as plain text, for logs and files."""
    stream = io.StringIO()
    console = Console(file=stream, width=120, color_system=None, legacy_windows=False)
    console.print(summary_table(paths))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).strip("\n") + "\n"
