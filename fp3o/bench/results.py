"""Results of a benchmark: a JSON file, an HTML page, and tables for the terminal."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from fp3o.bench.measurement import Measurement
from fp3o.bench.topics import TOPICS
from fp3o.reports.data.files import writing
from fp3o.reports.pages.document import Chapter, html_document
from fp3o.reports.pages.markup import Html, html_table, tag
from fp3o.reports.phrasing import DASH
from fp3o.runs.provenance import device_name, package_versions, source_commit

TITLE = "Speed of fp3o"

COLUMNS = ("case", "ours", "peer", "ratio", "unit", "compared with", "note")

TEXT_COLUMNS = (0, 4, 5, 6)

EXPLANATION = (
    "Jobs that are compared ran in turn, chunk by chunk, and the fastest chunk of each counts. The "
    "ratio is the speed of ours divided by that of the peer: above 1, ours is faster. Compare "
    "ratios of one run, not numbers of two."
)

Results = Mapping[str, Sequence[Measurement]]
"""Measurements by topic."""


def machine_description() -> dict[str, str]:
    """Device, versions and command, as strings."""
    return {
        "device": device_name(),
        **package_versions(),
        "commit": source_commit() or "unknown",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def write_results(results: Results, machine: Mapping[str, str], folder: Path) -> list[Path]:
    """Write `bench.json` and `bench.html` into a folder."""
    records: dict[str, Any] = {
        "machine": dict(machine),
        "topics": {name: [row.as_record() for row in rows] for name, rows in results.items()},
    }
    texts = {"bench.json": json.dumps(records, indent=1), "bench.html": _page(results, machine)}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def _page(results: Results, machine: Mapping[str, str]) -> Html:
    chapters = [
        Chapter(
            TOPICS[name].title,
            [
                tag("p", _sentence(TOPICS[name].summary)),
                html_table(COLUMNS, [_cells(row) for row in rows], TEXT_COLUMNS),
            ],
        )
        for name, rows in results.items()
    ]
    about = html_table(("machine", ""), [[*item] for item in machine.items()], (0, 1))
    introduction = [tag("p", machine["device"], class_="lead"), tag("p", EXPLANATION)]
    return html_document(TITLE, introduction, [*chapters, Chapter("Machine", [about])])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def results_table(name: str, rows: Sequence[Measurement]) -> Table:
    """The measurements of a topic for the terminal."""
    title = f"{name}: {TOPICS[name].summary}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for k, column in enumerate(COLUMNS[:-1]):
        right = k not in TEXT_COLUMNS
        table.add_column(column, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        case, *others, note = map(escape, _cells(row))
        table.add_row(f"{case}\n[dim]{note}[/]" if note else case, *others)
    return table


def _cells(row: Measurement) -> list[str]:
    ours, theirs = map(_number, row.values)
    ratio = DASH if row.ratio is None else f"{row.ratio:.2f}"
    return [row.case, ours, theirs, ratio, row.unit, row.peer or DASH, row.note]


def _number(value: float | None) -> str:
    """Three digits: speeds are not known better."""
    if value is None:
        return DASH
    digits = float(f"{value:.3g}")
    return f"{digits:,.0f}" if digits >= 100 else f"{digits:g}"
