"""An exhibit as a page of Markdown for a documentation site: no HTML in it."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from fp3o.reports.experiment_report import ExperimentReport, ResultTable
from fp3o.reports.pages.inline import pieces, rendered
from fp3o.reports.phrasing import reason_text

_SIGNS = re.compile(r"[\\`*|]|\[|\]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown might read as markup; an underscore inside a name is none."""


def markdown(exhibit: ExperimentReport) -> str:
    """The whole page."""
    blocks = [
        f"# {words(exhibit.title)}",
        *_lead(exhibit),
        *_list("Before trusting a number", exhibit.notes),
        *(block for grid in exhibit.tables for block in _table(grid)),
        *_pictures(exhibit),
        *_again(exhibit),
        *_failures(exhibit),
        *_list("Not run or not finished", exhibit.missing),
    ]
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Text that comes out as it is."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SIGNS.sub(lambda sign: f"\\{sign[0]}", text)


def words(text: str) -> str:
    """A line: bold and code stay, everything else is plain text."""
    return rendered(" ".join(text.split()), STYLES)


STYLES = {
    "plain": escaped,
    "bold": lambda text: f"**{escaped(text)}**",
    # In a table a bar ends a cell even inside code.
    "code": lambda text: f"`{text}`" if "|" not in text else escaped(text),
}


def _lead(exhibit: ExperimentReport) -> Iterator[str]:
    yield f"**Question.** {words(exhibit.question)}"
    if exhibit.claim:
        yield f"**What the paper says.** {words(exhibit.claim)}"
    if exhibit.verdict:
        yield f"**What these runs say.** {' '.join(map(words, exhibit.verdict))}"
    if exhibit.failures or exhibit.missing:
        counts = f"{len(exhibit.failures)} failed, {len(exhibit.missing)} not finished"
        yield f"**Incomplete.** Of the cells, {counts}; they are named at the end."


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {words(line)}" for line in lines)] if lines else []


def _failures(exhibit: ExperimentReport) -> list[str]:
    lines = [
        f"- **{escaped(failed.label)}**: {escaped(reason_text(failed.error))}"
        for failed in exhibit.failures
    ]
    return ["## Failed", "\n".join(lines)] if lines else []


def _table(grid: ResultTable) -> Iterator[str]:
    if grid.title:
        yield f"## {words(grid.title)}"
    marks = ["---" if k < grid.words else "---:" for k in range(len(grid.head))]
    rows = [[words(cell) for cell in row] for row in (grid.head, *grid.rows)]
    yield "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:]))
    if grid.caption:
        yield words(grid.caption)


def _pictures(exhibit: ExperimentReport) -> Iterator[str]:
    """The figures; a site shows the first text only where a picture cannot be seen."""
    for picture in exhibit.pictures:
        plain = " ".join("".join(text for _, text in pieces(picture.caption)).split())
        yield f"![{escaped(plain)}](figures/{quote(picture.name)}.png)"
        yield words(picture.caption)


def _again(exhibit: ExperimentReport) -> Iterator[str]:
    """How to do it again, and what it was done on."""
    yield "## To do it again"
    yield f"```sh\n{exhibit.command}\n```"
    told = {"Scale": exhibit.scale, "Machines": exhibit.machines, **exhibit.facts}
    lines = [f"- {words(name)}: {words(text)}" for name, text in told.items() if text]
    if lines:
        yield "\n".join(lines)
