"""Former names no longer occur in code, documentation and messages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_pages import ROOT

FORMER_NAMES = """
    HostGame Sight Seeded Crew Desk Slate Patience
    Rates Blueprint Layered Timetable Residual Tally Played
    Runner Keeper Mirror Exhibit Contrast Skirmish Checkup Eyes
    GarbageError WorkersError HostPlayer
    batch_of adopt paper_time_limits
    Carry Plan Shown Dial Players jointly vouch artefact suffer obey diary outcome outcomes
    film films filming conduct carry_out carried_out exhibit laid_out
    in_turn try_on timetable retrace
    head_rate actor_memory critic_memory initial_memory final_view others_quantiles
    advantage_size env_garbage uncertified
    told cure filmed dearer foretell
"""
"""Words, case-sensitive, alone or as a part of a name, that have no other use here."""

FORMER_USES = (
    r"\bfp3o\.(film|catalogue|grouping|fitting|paths|spaces|lab|storage|learn|nets|plan)\b",
    r"\blegal\b",
    r"\b(sight|judge|Vectorised|Game)\(",
    r"--(recurrent|chunk|head-rate|entropy|huber|gain|std|clip|keep)\b(?!-)",
    r"\b(recurrent|chunk|live|sweeps)=",
)
"""Former uses of words that are also ordinary ones."""

FORMER_PHRASES = (
    "What one sees",
    "To do it again",
    "Graphics processors",
    "of one's own",
    "Bring your own",
)

FOLDERS = ("fp3o", "tests", "docs", "examples", "benchmarks")
ROOT_FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "mkdocs.yml")
SUFFIXES = (".py", ".pyi", ".md", ".toml", ".yml")

PATTERNS = {
    "names": rf"(?<![A-Za-z])({'|'.join(FORMER_NAMES.split())})(?![A-Za-z])",
    "uses": "|".join(FORMER_USES),
    "phrases": "|".join(map(re.escape, FORMER_PHRASES)),
}


def texts() -> Iterator[tuple[Path, str]]:
    """Every source file and page, except the changelog and this file, which name both forms."""
    files = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    for path in [*files, *(ROOT / name for name in ROOT_FILES)]:
        if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__):
            yield path, path.read_text()


@pytest.mark.parametrize("kind", PATTERNS)
def test_former_names_are_gone(kind: str) -> None:
    """No file uses what the lists above contain."""
    former = re.compile(PATTERNS[kind])
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in texts()
        for match in former.finditer(text)
    ]
    assert not found, "\n".join(found)
