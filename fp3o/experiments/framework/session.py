"""Running an experiment: its cells, summary and pages, as on the command line."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from fp3o.errors import SettingError
from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework.collect import experiment_report, read_cells
from fp3o.experiments.framework.grid import SCALES, Cell, CellResult, CellResults, slug
from fp3o.experiments.framework.options import ExperimentOptions
from fp3o.experiments.framework.run_grid import run_grid, with_length
from fp3o.policy import Policy
from fp3o.reports.experiment_report import ExperimentReport
from fp3o.reports.marl_eval import write_marl_eval
from fp3o.reports.pages.experiment_page import write_experiment_page
from fp3o.reports.phrasing import reason_text
from fp3o.runs.progress import Display, make_display
from fp3o.runs.video import render

SUMMARY_FILE = "summary.json"
"""Short results of an experiment, in its folder."""


def run_experiment(options: ExperimentOptions) -> int:
    """Run the unfinished cells, then write the pages; returns the exit status."""
    cells = experiment_cells(options)
    chosen = select_cells(cells, options)
    folder = Path(options.out or f"experiments/{_folder_name(options.name)}-{options.scale}")
    display = make_display()
    if not options.show and not _run_cells(options, chosen, folder, display):
        display.say(f"stopped: the same command continues from here ({folder})")
        return 130
    if options.scale != "smoke":
        render_best(read_cells(cells, folder), display)
    experiment = find_experiment(options.name)
    with display.waiting("writing the pages"):
        report = experiment_report(experiment, cells, options.scale, folder, options.command)
        page = write_experiment_page(report, folder)
        content = json.dumps(short_results(report, cells), indent=2)
        (folder / SUMMARY_FILE).write_text(content + "\n")
        if report.runs:
            write_marl_eval(report.runs, folder / "marl_eval.json")
    for sentence in report.verdict:
        display.say(sentence)
    for failure in report.failures:
        display.say(f"failed   {failure.label}: {reason_text(failure.error)}")
    display.say(f"report   {page}")
    display.say(f"tables   {folder / 'results.md'}, {folder / 'tables.tex'}")
    display.say(f"data     {folder / SUMMARY_FILE}, {folder / 'marl_eval.json'}")
    return 1 if report.failures else 0


def experiment_cells(options: ExperimentOptions) -> list[Cell]:
    """The cells of an experiment, with the requested seeds and steps."""
    length = {"seeds": options.seeds, "steps": options.steps}
    changes = {name: value for name, value in length.items() if value is not None}
    return with_length([*find_experiment(options.name).cells(options.scale)], changes)


def select_cells(cells: Sequence[Cell], options: ExperimentOptions) -> list[Cell]:
    """The cells named by `part`: the one with that label, or all that contain it."""
    exact = [cell for cell in cells if options.part == cell.label]
    chosen = exact or [cell for cell in cells if options.part in cell.label]
    if not chosen:
        labels = ", ".join(cell.label for cell in cells)
        raise SettingError(
            f"no cell of {options.name} has {options.part!r} in its label; the cells are {labels}"
        )
    return chosen


def _folder_name(name: str) -> str:
    """The name of a built-in experiment as it is, an import path as a file name."""
    return slug(name) if ":" in name else name


def _run_cells(
    options: ExperimentOptions, cells: Sequence[Cell], folder: Path, display: Display
) -> bool:
    """Run the unfinished cells here or on Ray; False if they were stopped."""
    try:
        if options.on == "here":
            return run_grid(cells, folder, display)
        from fp3o.experiments.framework.ray_backend import run_grid_on_ray

        return run_grid_on_ray(options, cells, folder, display)
    finally:
        display.close()


def render_best(results: CellResults, display: Display) -> None:
    """Render an episode of the best policy per task into its run, where the report finds it."""
    for task in dict.fromkeys(item.cell.task for item in results):
        group = [item for item in results if item.cell.task == task and item.seeds.size]
        group = [item for item in group if (item.path / "policy").exists()]
        if not group or not _renderable(group[0].cell):
            continue
        best = max(group, key=lambda item: float(np.mean(item.seeds)))
        path = best.path / "videos" / "episode.gif"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            with display.waiting(f"rendering {best.cell.label}"):
                render(_policy(best), path, episodes=1, seconds=4)


def _policy(item: CellResult) -> Policy:
    """The best policy of a cell; the task and the network that the grid names are trusted."""
    policy, config = Policy.load(item.path), item.cell.config
    task = config.task_info.spec(config.variant).name
    ours = policy.card.spec.name == task and policy.card.network_class in (
        None,
        config.learner.network,
    )
    return Policy(policy.card, policy.weights, trusted=ours)


def _renderable(cell: Cell) -> bool:
    return cell.config.task_info.renderable(cell.config.variant)


def short_results(report: ExperimentReport, cells: Sequence[Cell]) -> dict[str, Any]:
    """Scale, number of finished cells and verdict, for a list of experiments."""
    unfinished = len(report.missing) + len(report.failures)
    return {
        "name": report.name,
        "title": report.title,
        "scale": report.scale,
        "cells": len(cells),
        "done": len(cells) - unfinished,
        "failed": len(report.failures),
        "seeds": sorted({len(run.seeds) for run in report.runs}),
        "machines": report.machines,
        "verdict": [*report.verdict],
        "key_result": asdict(report.key_result) if report.key_result else None,
    }


def experiments_table() -> Table:
    """All experiments, with their number of cells per scale."""
    table = Table(
        title="experiments (fp3o experiment NAME --scale SCALE)",
        title_justify="left",
        title_style="bold",
        box=None,
    )
    for column in ("name", *SCALES, "question"):
        table.add_column(column, justify="right" if column in SCALES else "left", no_wrap=False)
    for name, experiment in all_experiments().items():
        counts = [str(len([*experiment.cells(scale)])) for scale in SCALES]
        table.add_row(f"[cyan]{name}[/]", *counts, experiment.question)
    return table
