"""What README and discussions say of the results is what the pages of results say."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

RESULTS = ROOT / "docs" / "results"

DISCUSSIONS = sorted((ROOT / "docs" / "discussion").glob("*.md"))

NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+ ± \d+(?:\.\d+)?")


@pytest.fixture
def overview(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that writes the index and the results in the README."""
    monkeypatch.syspath_prepend(str(RESULTS))
    sys.modules.pop("overview", None)
    import overview  # pyright: ignore

    return overview


def test_the_readme_has_the_scores_and_verdicts_of_the_pages(overview: ModuleType) -> None:
    assert overview.readme_block() in (ROOT / "README.md").read_text()


def test_the_index_has_the_verdicts_of_the_pages(overview: ModuleType) -> None:
    """The experiments in the order in which it lists them."""
    text = (RESULTS / "index.md").read_text()
    names = re.findall(r"^### \[.*\]\((.*)\.md\)$", text, re.MULTILINE)
    assert {*names} == {path.parent.name for path in RESULTS.glob("*/summary.json")}
    assert overview.index_page(names) == text


def test_the_cells_that_matter(overview: ModuleType) -> None:
    """Differences of common seeds; what both win is marked, and so are missing runs and steps."""

    def cell(measure: str, *scores: float) -> dict[str, Any]:
        return {"measure": measure, "scores": dict(enumerate(scores)), "steps": 5_000_000}

    cells = {"a": cell("won", 99.0, 100.0, 99.5), "b": cell("won", 99.0, 99.0, 99.2)}
    text = overview._difference_text(cells, "a", "b")
    assert text.startswith("+0.4 ± ") and text.endswith(" % (ceiling)")
    cells["b"] = cell("won", 99.0, 10.0, 99.2)
    assert "ceiling" not in overview._difference_text(cells, "a", "b")
    returns = {"a": cell("return", 120.0, 130.0), "b": cell("return", 110.0, 110.0, 0.0)}
    assert overview._difference_text(returns, "a", "b") == "+15 ± 64"
    assert overview._difference_text(returns, "a", "c") == "not run"
    assert overview._steps_text(cells.values(), 10_000_000) == "5M of 10M"
    assert overview._steps_text(cells.values(), 5_000_000) == "5M"
    cells["b"]["steps"] = 10_000_000
    assert overview._steps_text(cells.values(), 10_000_000) == "5M and 10M of 10M"
    assert overview._steps_text([], 10_000_000) == "–"


@pytest.mark.parametrize("page", DISCUSSIONS, ids=lambda path: path.stem)
def test_every_interval_of_a_discussion_is_on_a_page(page: Path) -> None:
    pages = "\n".join(path.read_text() for path in RESULTS.glob("*.md"))
    known = {number.lstrip("+") for number in NUMBER.findall(pages.replace("**", ""))}
    found = {number.lstrip("+") for number in NUMBER.findall(page.read_text())}
    missing = {x for x in found if x not in known and f"-{x}" not in known}
    assert found and not missing


def test_the_medians_of_battles_are_those_of_the_runs() -> None:
    """The table of the discussion, cell by cell."""
    cells = json.loads((RESULTS / "smac-table" / "seeds.json").read_text())
    medians = {
        (cell["task"].split("/")[1], cell["sharing"], cell["variant"]): np.median(
            [*cell["scores"].values()]
        )
        for cell in cells
    }
    text = (ROOT / "docs" / "discussion" / "smac.md").read_text()
    row = re.compile(r"^\| `([\w/]+)` \| (\w+) \| ([\d.]+).*\| ([\d.]+).*\| ([\d.]+).*\|$", re.M)
    rows = row.findall(text)
    assert len(rows) == 24
    for name, sharing, *numbers in rows:
        for variant, number in zip(("FP3O", "MAPPO", "HAPPO"), numbers, strict=True):
            median = medians[name.split("/")[-1], sharing, variant]
            assert float(number) == pytest.approx(median, abs=0.051)
