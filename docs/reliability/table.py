"""Write the totals of the last whole campaign into the page on reliability.

    python docs/reliability/table.py campaign.json

The arguments are files that `CAMPAIGN_TOTALS` names, of one campaign or of its parts on this
machine. They replace `campaign.json` beside this file, from which the table is made; without
arguments the table alone is written again. `--machine TEXT` describes the machine.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE, TOTALS = HERE.parent / "reliability.md", HERE / "campaign.json"
BEGIN = (
    "<!-- totals: written by docs/reliability/table.py from docs/reliability/campaign.json -->\n"
)
END = "<!-- end of totals -->\n"
HEAD = "| campaign | tries | results | seeds |\n|---|---:|---|---|\n"


def merge_records(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The records of all files; only whole campaigns are published."""
    records = [record for path in files for record in json.loads(path.read_text())]
    if not records or any(record["size"] != "whole" for record in records):
        raise SystemExit("only totals of whole campaigns are published: make campaign")
    return records


def table_row(name: str, records: Sequence[Mapping[str, Any]]) -> str:
    """The sums over the parts of a campaign."""
    results = Counter[str]()
    for record in records:
        results.update(record["results"])
    tries = sum(record["tries"] for record in records)
    single = all(number == 1 for number in results.values())  # descriptions, not counts
    texts = (text if single else f"{number:,} {text}" for text, number in sorted(results.items()))
    seeds = dict.fromkeys(str(record["seed"]) for record in records)
    return f"| {name} | {tries:,} | {'<br>'.join(texts)} | {'<br>'.join(seeds)} |\n"


def totals_text(campaign: Mapping[str, Any]) -> str:
    """Date, machine and table."""
    names = dict.fromkeys(record["name"] for record in campaign["records"])
    rows = [
        table_row(name, [record for record in campaign["records"] if record["name"] == name])
        for name in names
    ]
    intro = f"{campaign['date']}, {campaign['machine']}, commit `{campaign['commit']}`:"
    return f"\n{intro}\n\n{HEAD}{''.join(rows)}\n"


def page_with_totals(page: str, campaign: Mapping[str, Any]) -> str:
    """The page with the text between its two markers replaced."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + totals_text(campaign) + END + rest.partition(END)[2]


def main() -> None:
    """Replace the totals if files are given, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--machine", default=f"{os.cpu_count()} {platform.machine()} cores")
    options = parser.parse_args()
    if options.files:
        commit = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
        campaign = {
            "date": datetime.date.today().isoformat(),
            "machine": options.machine,
            "commit": subprocess.check_output(commit, text=True).strip(),
            "records": merge_records(options.files),
        }
        TOTALS.write_text(json.dumps(campaign, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page_with_totals(PAGE.read_text(), json.loads(TOTALS.read_text())))


if __name__ == "__main__":
    main()
