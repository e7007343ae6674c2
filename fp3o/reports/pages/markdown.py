"""An experiment as a Markdown page for a documentation site, without HTML."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from fp3o.reports.experiment_report import ExperimentReport, ResultTable
from fp3o.reports.pages.inline import format_inline, inline_spans
from fp3o.reports.phrasing import reason_text, visible

_SPECIAL = re.compile(r"[\\`*|~]|\[|\]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that Markdown may read as markup; an underscore inside a name is not one."""


def markdown_page(report: ExperimentReport) -> str:
    """The complete page."""
    blocks = [
        f"# {inline_markdown(report.title)}",
        *_introduction(report),
        *_list("Caveats", report.notes),
        *(block for table in report.tables for block in _table(table)),
        *_figures(report),
        *_command(report),
        *_failures(report),
        *_list("Not run or unfinished", report.missing),
    ]
    return "\n\n".join(blocks) + "\n"


def escape_markdown(text: str) -> str:
    """Text that Markdown shows literally."""
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(lambda char: f"\\{char[0]}", text)


def inline_markdown(text: str) -> str:
    """One line in which bold and code are kept and everything else is literal."""
    return format_inline(" ".join(text.split()), _STYLES)


_STYLES = {
    "plain": escape_markdown,
    "bold": lambda text: f"**{escape_markdown(text)}**",
    # In a table, a bar ends a cell even inside code.
    "code": lambda text: f"`{visible(text)}`" if "|" not in text else escape_markdown(text),
}


def _introduction(report: ExperimentReport) -> Iterator[str]:
    yield f"**Question.** {inline_markdown(report.question)}"
    if report.claim:
        yield f"**Claim of the paper.** {inline_markdown(report.claim)}"
    if report.verdict:
        yield f"**Result of these runs.** {' '.join(map(inline_markdown, report.verdict))}"
    if report.failures or report.missing:
        counts = f"{len(report.failures)} cells failed, {len(report.missing)} are unfinished"
        yield f"**Incomplete.** {counts}; they are listed at the end."


def _list(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return [f"## {title}", "\n".join(f"- {inline_markdown(line)}" for line in lines)]


def _failures(report: ExperimentReport) -> list[str]:
    lines = [
        f"- **{escape_markdown(failed.label)}**: {escape_markdown(reason_text(failed.error))}"
        for failed in report.failures
    ]
    return ["## Failed", "\n".join(lines)] if lines else []


def _table(table: ResultTable) -> Iterator[str]:
    if table.title:
        yield f"## {inline_markdown(table.title)}"
    marks = ["---" if k < table.text_columns else "---:" for k in range(len(table.head))]
    rows = [[inline_markdown(cell) for cell in row] for row in (table.head, *table.rows)]
    yield "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:]))
    if table.caption:
        yield inline_markdown(table.caption)


def _figures(report: ExperimentReport) -> Iterator[str]:
    """The figures, with their captions as alternative text and below."""
    for figure in report.figures:
        plain = " ".join("".join(text for _, text in inline_spans(figure.caption)).split())
        yield f"![{escape_markdown(plain)}](figures/{quote(figure.name)}.png)"
        yield inline_markdown(figure.caption)


def _command(report: ExperimentReport) -> Iterator[str]:
    """The command that reproduces the experiment, and the machines it ran on."""
    yield "## Reproduce"
    yield f"```sh\n{visible(' '.join(report.command.split()))}\n```"
    lines = {"Scale": report.scale, "Machines": report.machines}
    items = [f"- {name}: {inline_markdown(text)}" for name, text in lines.items() if text]
    if items:
        yield "\n".join(items)
