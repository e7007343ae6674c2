"""The page on reliability: its totals come from a file, and it describes every campaign."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from doc_pages import DOCS, ROOT

FOLDER = DOCS / "reliability"
PAGE = (DOCS / "reliability.md").read_text()


@pytest.fixture(scope="module")
def program() -> Any:
    """`docs/reliability/table.py`."""
    spec = importlib.util.spec_from_file_location("campaign_table", FOLDER / "table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_totals_are_those_of_the_file(program: Any) -> None:
    """`python docs/reliability/table.py` would not change the page."""
    campaign = json.loads((FOLDER / "campaign.json").read_text())
    assert PAGE.count(program.BEGIN) == PAGE.count(program.END) == 1
    assert program.page_with_totals(PAGE, campaign) == PAGE
    names = {record["name"] for record in campaign["records"]}
    assert names and all(f"| {name} |" in PAGE for name in names)


def test_parts_are_added_up(program: Any, tmp_path: Path) -> None:
    """Records of the same name in several files are one row; smaller campaigns are refused."""
    record = {"name": "kills", "size": "whole", "seed": 1, "tries": 1000, "results": {"killed": 9}}
    parts = [record, record | {"seed": 2, "results": {"killed": 1, "finished": 1}}]
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    for file, part in zip(files, parts, strict=True):
        file.write_text(json.dumps([part]))
    campaign = {"date": "", "machine": "", "commit": "", "records": program.merge_records(files)}
    row = "| kills | 2,000 | 1 finished<br>10 killed | 1<br>2 |"
    assert row in program.totals_text(campaign).splitlines()
    files[0].write_text(json.dumps([record | {"size": "small"}]))
    with pytest.raises(SystemExit, match="whole"):
        program.merge_records(files)


def test_every_campaign_is_described() -> None:
    """In the first column of a table below the totals."""
    described = PAGE.split("## Files")[1]
    cells = [name for row in re.findall(r"(?m)^\| (.*?) \|", described) for name in row.split(", ")]
    tests = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    takes = re.compile(r"\ndef test_(\w+)\([^)]*\bcampaign: Campaign")
    found = {name.replace("_", " ") for text in tests for name in takes.findall(text)}
    assert found and found <= {*cells}, found - {*cells}
