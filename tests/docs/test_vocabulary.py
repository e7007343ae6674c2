"""The former names of things are gone from code, documentation and messages."""

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
    batch_of adopt register_own paper_time_limits host_probe_env
    Carry Plan Shown Dial Players jointly vouch artefact suffer obey diary outcome outcomes
    film films filming conduct carry_out carried_out exhibit laid_out
    in_turn try_on timetable retrace
    head_rate actor_memory critic_memory initial_memory final_view others_quantiles
    advantage_size env_garbage uncertified
    told cure filmed legal dearer foretell
""".split()
"""Whole words, case-sensitive, that have no other use here."""

FORMER_CALLS = r"""
    fp3o\.(film|artefact|catalogue|grouping|fitting|paths|spaces|lab|storage|learn|nets|plan)\b
    \.sight\(
    \b(sight|judge|Vectorised|Game)\(
    --(recurrent|chunk|head-rate|entropy|huber|gain|std|clip|keep)\b(?!-)
    \b(recurrent|chunk|live|sweeps|uncertified)=
""".split()
"""Regular expressions for names that are also ordinary words."""

FORMER_TITLES = r"""
    What one sees
    To do it again
    Graphics processors
    of one's own
    Bring your own
""".strip().splitlines()
"""Phrases."""

FOLDERS = ("fp3o", "docs", "examples", "benchmarks")
SUFFIXES = (".py", ".pyi", ".md", ".toml", ".yml")


def texts() -> Iterator[tuple[Path, str]]:
    """Every source file and page, except the changelog, which names both forms."""
    files = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    for path in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "mkdocs.yml"]:
        if path.suffix in SUFFIXES and path.is_file():
            yield path, path.read_text()


@pytest.mark.parametrize("kind", ["names", "calls", "titles"])
def test_former_names_are_gone(kind: str) -> None:
    """No file uses a name of the list."""
    patterns = {
        "names": [rf"\b{name}\b" for name in FORMER_NAMES],
        "calls": FORMER_CALLS,
        "titles": [re.escape(title.strip()) for title in FORMER_TITLES],
    }[kind]
    former = re.compile("|".join(patterns))
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in texts()
        for match in former.finditer(text)
    ]
    assert not found, "\n".join(found)
