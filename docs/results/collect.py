"""Take finished experiments into the pages of results, and list what there is.

    python docs/results/collect.py experiments/*-laptop

Of every folder that `fp3o experiment` has written: its page, its figures and its report. The list,
`index.md`, is made anew from the `summary.json` of all experiments taken in so far.
"""

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
INDEX = """# What has been run

Written by `python docs/results/collect.py DIR...` from the folders of `fp3o experiment`; nothing
here is typed. Scales are explained [here](../experiments.md#scales). A verdict is about these runs
and no more.

| experiment | scale | cells | seeds | on | what it says |
|---|---|---|---|---|---|
"""


def take(folder: Path) -> None:
    """One experiment's page, figures and report."""
    told = json.loads((folder / "summary.json").read_text())
    name = told["name"]
    page = (folder / "results.md").read_text().replace("](figures/", f"]({name}/")
    link = f"\n[The whole report]({name}/report.html): curves to hover, settings, every run.\n"
    head, _, rest = page.partition("\n\n")
    (HERE / f"{name}.md").write_text(f"{head}\n{link}\n{rest}")
    into = HERE / name
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    shown = {line.split(f"]({name}/")[1].split(")")[0] for line in page.splitlines()
             if f"]({name}/" in line}  # fmt: skip
    for figure in shown:
        shutil.copy(folder / "figures" / figure, into / figure)
    shutil.copy(folder / "report.html", into / "report.html")
    (into / "summary.json").write_text(json.dumps(told, indent=2) + "\n")


def listed() -> str:
    """The table of all experiments taken in."""
    rows = []
    for path in sorted(HERE.glob("*/summary.json")):
        told = json.loads(path.read_text())
        seeds = ", ".join(map(str, told["seeds"])) or "–"
        cells = f"{told['done']} of {told['cells']}"
        words = " ".join(told["verdict"])
        link = f"[{told['name']}]({told['name']}.md)"
        rows.append(
            f"| {link} | {told['scale']} | {cells} | {seeds} | {told['machines']} | {words} |"
        )
    return INDEX + "\n".join(rows) + "\n"


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        take(folder)
    (HERE / "index.md").write_text(listed())
