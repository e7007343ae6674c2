"""Copy finished experiments into the pages of results, and write their index.

    python docs/results/collect.py experiments/*-laptop

Copies the page, the figures and the report of every folder written by `fp3o experiment`, and packs
its runs without their weights: settings, results, and the rows of metrics with evaluations. The
index, `index.md`, is written from the `summary.json` of all experiments copied so far.
"""

import io
import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

RUNS = "runs.tar.xz"
FINISHED = ("results.json", "cell_timing.json")
KEPT = (*FINISHED, "config.json", "timing.jsonl")
"""Files of a run that are packed unchanged."""

INDEX = """# Results

Written by `python docs/results/collect.py DIR...` from the folders of `fp3o experiment`. Wording
of pages from earlier versions was updated since, their numbers and figures were not. Scales are
explained [here](../experiments.md#scales). A verdict holds for these runs only.

Runs beside the experiments: [HalfCheetah at equal gradient steps](halfcheetah-controls.md),
[HalfCheetah without sharing](halfcheetah-sharing.md) and
[environments of other libraries, images and mixed actions](other-environments.md).

| experiment | scale | cells | seeds | machines | verdict |
|---|---|---|---|---|---|
"""


def add_experiment(folder: Path) -> None:
    """Copy the page, figures and report of an experiment."""
    summary = json.loads((folder / "summary.json").read_text())
    name = summary["name"]
    page = (folder / "results.md").read_text().replace("](figures/", f"]({name}/")
    link = (
        f"\n[Full report]({name}/report.html): interactive curves, settings, every run. "
        f"[Data]({name}/{RUNS}): all runs without their weights; unpack them into a folder, and "
        f"`fp3o experiment {name} --scale {summary['scale']} --show --out FOLDER` writes this page "
        "again.\n"
    )
    head, _, rest = page.partition("\n\n")
    (HERE / f"{name}.md").write_text(f"{head}\n{link}\n{rest}")
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    lines = [line for line in page.splitlines() if f"]({name}/" in line]
    for figure in {line.split(f"]({name}/")[1].split(")")[0] for line in lines}:
        shutil.copy(folder / "figures" / figure, target / figure)
    shutil.copy(folder / "report.html", target / "report.html")
    pack_runs(folder, target / RUNS)
    (target / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")


def pack_runs(folder: Path, target: Path) -> None:
    """Write the finished runs of an experiment into an archive, without their weights."""
    finished = {path.parent for name in FINISHED for path in folder.glob(f"*/{name}")}
    with tarfile.open(target, "w:xz") as archive:
        for run in sorted(finished):
            metrics = run / "metrics.jsonl"
            rows = map(json.loads, metrics.read_text().splitlines() if metrics.exists() else [])
            curves = [_evaluation_row(row) for row in rows if "eval_return" in row]
            texts = {name: (run / name).read_text() for name in KEPT if (run / name).exists()}
            texts["metrics.jsonl"] = "".join(json.dumps(row) + "\n" for row in curves)
            for name, text in texts.items():
                entry = tarfile.TarInfo(f"{run.name}/{name}")
                entry.size = len(data := text.encode())
                archive.addfile(entry, io.BytesIO(data))


def _evaluation_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of metrics without lists, in seven digits."""
    numbers = {name: x for name, x in row.items() if not isinstance(x, list | dict)}
    return {name: float(f"{x:.7g}") if isinstance(x, float) else x for name, x in numbers.items()}


def index_page() -> str:
    """The table of all experiments copied so far."""
    rows = []
    for path in sorted(HERE.glob("*/summary.json")):
        summary = json.loads(path.read_text())
        seeds = ", ".join(map(str, summary["seeds"])) or "–"
        cells = f"{summary['done']} of {summary['cells']}"
        link = f"[{summary['name']}]({summary['name']}.md)"
        texts = link, summary["scale"], cells, seeds, summary["machines"]
        rows.append(f"| {' | '.join(texts)} | {' '.join(summary['verdict'])} |")
    return INDEX + "\n".join(rows) + "\n"


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        add_experiment(folder)
    (HERE / "index.md").write_text(index_page())
