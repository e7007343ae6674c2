"""Code blocks, commands and anchors of the documentation pages."""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *DOCS.rglob("*.md")]
)
SITE = "https://fp3o.readthedocs.io/en/latest/"
SOURCE = "https://github.com/fp3o/fp3o/blob/main/"
RAW = "https://raw.githubusercontent.com/fp3o/fp3o/main/"


class Block(NamedTuple):
    """A fenced code block of a page."""

    page: Path
    line: int
    language: str
    code: str
    reason: str | None
    """Why the block is not run; None if it is."""
    title: str | None
    """Name of the file that the block shows."""

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def page_id(page: Path) -> str:
    """Path of a page relative to the repository, for test ids and messages."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """All fenced code blocks of a page, in order."""
    found, lines = [], iter(enumerate(page.read_text().splitlines(), 1))
    previous = ""
    for number, text in lines:
        if fence := re.match(r' *```(\w*)(?: title="(.*?)")?', text):
            code = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                code.append(inner)
            marker = re.fullmatch(r"<!-- not run:(.*)-->", previous.strip())
            reason = marker[1].strip() if marker else None
            source = re.sub(r'--8<-- "(.*)"', _included, textwrap.dedent("\n".join(code)))
            found.append(Block(page, number, fence[1], source, reason, fence[2]))
            previous = ""
        elif text.strip():
            previous = text
    return found


def _included(quoted: re.Match[str]) -> str:
    return (ROOT / quoted[1]).read_text()


def commands(block: Block) -> list[str]:
    """The lines of a `sh` block, with continued lines joined."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and line[0] != "#"]


def prose(page: Path) -> str:
    """The text of a page without its code blocks."""
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text())


def anchors(page: Path) -> set[str]:
    """Anchors of a page: its headings, and the names documented by mkdocstrings."""
    text = prose(page)
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    plain = (re.sub(r"[^\w\s-]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", h)) for h in headings)
    made = {re.sub(r"[-\s]+", "-", heading.strip().lower()) for heading in plain}
    return made | {*re.findall(r"(?m)^::: (\S+)$", text)}


def links(page: Path) -> list[tuple[Path, str]]:
    """Files of the repository that a page links to, each with an anchor or ''."""
    text, found = prose(page), []
    inline = re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text)
    for target, anchor in [*inline, *re.findall(r"(?m)^\[.*?\]: ([^#\s]*)#?(\S*)$", text)]:
        if target.startswith(SITE):
            found.append((DOCS / target.removeprefix(SITE).replace(".html", ".md"), anchor))
        elif target.startswith((SOURCE, RAW)):
            path = target.removeprefix(SOURCE).removeprefix(RAW)
            found.append((ROOT / path, anchor))
        elif "://" not in target:
            found.append((page.parent / target if target else page, anchor))
    return found
