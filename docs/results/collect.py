"""The pages of results: every page is made again from the runs in `runs/`.

    python docs/results/collect.py                     # make all pages again
    python docs/results/collect.py split fair          # make these
    python docs/results/collect.py --add FOLDER...     # first pack the finished runs in them
    python docs/results/collect.py --baselines         # first evaluate baselines that runs lack
    python docs/results/collect.py --reports FOLDER    # also write the interactive reports

A run is one JSON document (`fp3o.experiments.framework.run_data`): settings, final evaluation,
evaluations of every seed. Cells of several experiments with the same settings are one run. Folders
are searched for run directories; those that differ in their seeds alone are packed together.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from overview import index_page, write_readme
from stored_runs import RUNS, add_baselines, add_runs, find_run, unpack_cells

from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework.collect import experiment_report, read_cells
from fp3o.experiments.framework.grid import Cell, CellResult, Scale
from fp3o.experiments.framework.score_table import area_under_curve
from fp3o.experiments.framework.session import short_results
from fp3o.reports.experiment_report import ExperimentReport
from fp3o.reports.figures.canvas import figure_style
from fp3o.reports.pages.experiment_page import experiment_page
from fp3o.reports.pages.latex import latex_tables
from fp3o.reports.pages.markdown import markdown_page
from fp3o.reports.phrasing import count_text

HERE = Path(__file__).parent

POLICIES = HERE / "policies"

FIGURE_DPI = 110
"""Resolution of figures: enough for a page, small in the repository."""

SCALES: Mapping[str, Scale] = {
    "mamujoco-table": "gpu", "smac-table": "gpu", "mpe-table": "gpu", "coppo": "gpu",
    "a2po": "gpu", "convergence": "gpu", "split": "gpu", "dependent-step": "gpu",
    "approximation": "gpu", "stability": "gpu", "instability-order": "laptop", "fair": "gpu",
    "failed-condition": "laptop", "sharing-spectrum": "laptop", "agents": "gpu",
}  # fmt: skip
"""The experiments, and the scale at which each is published."""

EARLIER = ("matching-degree", "happo-kl", "compute")
"""Experiments whose runs are of an earlier version and were not kept: their pages stay."""

MINUTES_PER_MILLION = {
    "smac": 1 / 72, "mpe": 1 / 40, "mamujoco/HalfCheetah-6x1": 1 / 7,
    "mamujoco/Walker2d-2x3": 1 / 35, "mamujoco/ManyagentSwimmer-8x2": 1 / 40,
    "mamujoco/Ant-2x4": 1 / 40, "mamujoco": 1 / 5,
}  # fmt: skip
"""Minutes of one H200 with 16 cores per million steps of a seed, with as many programs side by
side as it bears: measured, ten of Ant and eight of ManyagentSwimmer together; estimated for Reacher
and Hopper, which MuJoCo simulates on the cores."""


class Page(NamedTuple):
    """An experiment as it is published."""

    report: ExperimentReport
    cells: Sequence[Cell]
    runs: Mapping[str, str]
    """Label of a cell -> its document."""
    seeds: Sequence[Mapping[str, Any]]
    """Raw numbers of every cell, seed by seed."""

    @property
    def missing(self) -> list[Cell]:
        """The cells without a run."""
        return [cell for cell in self.cells if cell.label not in self.runs]


def make_page(name: str, out: Path) -> Page:
    """An experiment from the stored runs; `out` is an empty folder for their directories."""
    scale = SCALES[name]
    experiment = find_experiment(name)
    cells = [*experiment.cells(scale)]
    names = unpack_cells(cells, out)
    command = f"fp3o experiment {name} --scale {scale}"
    report = experiment_report(experiment, cells, scale, out, command)
    report = replace(report, notes=[*report.notes, *_origin_notes(names)])
    results = read_cells(cells, out)
    seeds = [_raw_numbers(item, names[item.cell.label]) for item in results if item.run]
    return Page(report, cells, names, seeds)


def _origin_notes(names: Mapping[str, str]) -> list[str]:
    """Which runs are known from earlier pages only."""
    origins: dict[str, list[str]] = {}
    for label, document in names.items():
        origin = json.loads((RUNS / f"{document}.json").read_text()).get("origin")
        if origin:
            origins.setdefault(origin, []).append(label)
    return [f"{', '.join(labels)}: {origin}." for origin, labels in origins.items()]


def _raw_numbers(item: CellResult, document: str) -> dict[str, Any]:
    """Final score and area under the curve of every seed, and where the curves are."""
    assert item.run
    areas = area_under_curve(item)
    cell = item.cell
    return {
        "task": cell.task, "sharing": cell.sharing, "variant": cell.variant,
        **({"detail": cell.detail} if cell.detail else {}),
        "run": f"runs/{document}.json", "steps": item.run.step, "measure": item.measure.name,
        "scores": {str(seed): float(f"{x:.6g}") for seed, x in item.by_seed.items()},
        "areas": {str(seed): float(f"{x:.6g}") for seed, x in areas.items()},
    }  # fmt: skip


def cost_text(cells: Sequence[Cell]) -> str:
    """Time that the cells would take on the machine of the others, and on how many steps."""
    minutes, steps = 0.0, 0
    for cell in cells:
        if cell.job == "train":
            count = cell.config.steps * cell.config.seeds
            family = cell.task.split("/")[0].removesuffix("v2")
            rate = MINUTES_PER_MILLION.get(cell.task, MINUTES_PER_MILLION[family])
            minutes, steps = minutes + rate * count / 1e6, steps + count
    time = f"about {count_text(minutes)} minutes" if minutes > 1.5 else "about a minute"
    return f"{count_text(steps)} steps, {time}" if steps else time


def write_page(name: str, page: Page, shared: Mapping[str, Sequence[str]]) -> None:
    """The Markdown page of an experiment, its figures and its raw numbers."""
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    # The page lists what is missing by task, with its cost.
    report = replace(page.report, missing=[])
    text = markdown_page(report).replace("](figures/", f"]({name}/")
    head, _, rest = text.partition("\n\n")
    data = f"[Numbers of every seed]({name}/seeds.json), [LaTeX]({name}/tables.tex)."
    parts = [head, data, rest.strip(), *_policies(page), *_same_runs(page, shared)]
    parts += _missing_text(page.missing)
    (HERE / f"{name}.md").write_text("\n\n".join(parts) + "\n")
    with figure_style():
        for figure in report.figures:
            path = target / f"{figure.name}.png"
            figure.figure.savefig(path, dpi=FIGURE_DPI, facecolor="white")
    (target / "tables.tex").write_text(latex_tables(report))
    lines = ",\n".join(json.dumps(row) for row in page.seeds)
    (target / "seeds.json").write_text(f"[\n{lines}\n]\n")
    summary = {
        **short_results(page.report, page.cells),
        "question": report.question,
        "claim": report.claim,
        "figure": report.figures[0].name if report.figures else "",
        "missing": len(page.missing),
        "cost": cost_text(page.missing) if page.missing else "",
    }
    (target / "summary.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def _policies(page: Page) -> list[str]:
    """The kept policies of the runs on a page; a video of an episode where there is one."""
    index = json.loads((POLICIES / "index.json").read_text())
    blocks, others = [], []
    for label, run in page.runs.items():
        if run in index:
            entry, place = index[run], f"policies/{run}"
            score = f"{entry['score']:g}" + " %" * (entry["measure"] == "won")
            text = (
                f"{label}, seed {entry['seed']}, after {count_text(entry['step'])} steps ({score} "
                f'in the final evaluation): `fp3o.Policy.load("docs/results/{place}")`'
            )
            if (POLICIES / run / "episode.gif").exists():
                blocks.append(f"![An episode of {label}]({place}/episode.gif)\n\n{text}")
            else:
                others.append(f"- {text}")
    blocks += ["\n".join(others)] if others else []
    return ["## Policies", *blocks] if blocks else []


def _same_runs(page: Page, shared: Mapping[str, Sequence[str]]) -> list[str]:
    """Which runs of a page are those of others, too."""
    own = page.report.name
    others: dict[str, list[str]] = {}
    for label, run in page.runs.items():
        for place in shared[run]:
            if not place.startswith(f"{own}:"):
                others.setdefault(place.split(":")[0], []).append(label)
    lines = [
        f"- [{name}]({name}.md): {', '.join(sorted({*labels}))}" for name, labels in others.items()
    ]
    return ["## The same runs on other pages", "\n".join(lines)] if lines else []


def _missing_text(cells: Sequence[Cell]) -> list[str]:
    """What was not run, and what it would cost, by task."""
    if not cells:
        return []
    lines = []
    for task in dict.fromkeys(cell.task for cell in cells):
        group = [cell for cell in cells if cell.task == task]
        labels = ", ".join(f"{cell.variant} ({cell.sharing})" for cell in group)
        lines.append(f"- {task}, {cost_text(group)}: {labels}")
    title = f"## Not run: {cost_text(cells)} of an H200 with 16 cores"
    return [title, "\n".join(lines)]


def make_pages(names: Sequence[str], reports: Path | None = None) -> None:
    """Write some pages, the index and the results in the README."""
    places: dict[str, list[str]] = {}
    for name in SCALES:
        for cell in find_experiment(name).cells(SCALES[name]):
            places.setdefault(find_run(cell).stem, []).append(f"{name}:{cell.label}")
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            page = make_page(name, Path(temporary))
            write_page(name, page, places)
            print(f"{name}: {len(page.runs)} of {len(page.cells)} cells", flush=True)
            if reports:
                reports.mkdir(parents=True, exist_ok=True)
                (reports / f"{name}.html").write_text(experiment_page(page.report))
    published = [name for name in all_experiments() if (HERE / name / "summary.json").exists()]
    (HERE / "index.md").write_text(index_page(published))
    write_readme()
    if unused := {path.stem for path in RUNS.glob("*.json")} - {*places}:
        print(f"in no experiment: {', '.join(sorted(unused))}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make the pages of results from the stored runs.")
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT", help="by default, all")
    parser.add_argument("--add", nargs="*", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--baselines", action="store_true", help="evaluate those that runs lack")
    parser.add_argument("--reports", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    add_runs(arguments.add)
    if arguments.baselines:
        add_baselines()
    make_pages(arguments.names or [*SCALES], arguments.reports)


if __name__ == "__main__":
    main()
