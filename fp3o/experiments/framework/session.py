"""An experiment from its name to its pages, as the command line asks for it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.table import Table

from fp3o.experiments import EXPERIMENTS, find
from fp3o.experiments.framework.collect import exhibit, found
from fp3o.experiments.framework.grid import SCALES, Cell, CellResults, Scale
from fp3o.experiments.framework.run_grid import run_grid, shortened
from fp3o.policy import Policy
from fp3o.reports.experiment_report import ExperimentReport
from fp3o.reports.marl_eval import write_marl_eval
from fp3o.reports.pages.experiment_page import write_exhibit
from fp3o.runs.progress import Display, make_display
from fp3o.runs.video import render

SUMMARY = "summary.json"
"""What a folder's experiment says in short."""


@dataclass
class ExperimentOptions:
    """Options of `fp3o experiment`."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Which experiment; `list` names them all."""
    scale: Scale = "laptop"
    """Size of the experiment: tasks, steps and batches."""
    out: str | None = None
    """Directory of its cells and results; none: experiments/NAME-SCALE. Cells that are finished
    there are not run again."""
    seeds: int | None = None
    """Seeds per cell; none: by the scale."""
    steps: int | None = None
    """Steps per cell; none: by the scale."""
    part: str = ""
    """Only the cells whose name contains this."""
    show: bool = False
    """Train nothing: report the cells that are finished."""
    on: Literal["here", "ray"] = "here"
    """Where cells run: one after another in this process, or on a Ray cluster."""
    address: str | None = None
    """Address of the Ray cluster; none: the one known here, or a new one on this machine."""
    cpus: float = 1.0
    """CPU cores per cell on Ray."""
    gpus: float = 0.0
    """GPUs per cell on Ray; a fraction lets several cells share one."""
    retries: int = 3
    """How often Ray runs a cell again whose node has failed."""

    @property
    def command(self) -> str:
        """How anybody does it again; every cell says its own steps and seeds."""
        return f"fp3o experiment {self.name} --scale {self.scale}"


def run_experiment(order: ExperimentOptions) -> int:
    """Do what is missing, then write the pages about what is there; the exit status."""
    experiment = find(order.name)
    folder = Path(order.out or f"experiments/{order.name}-{order.scale}")
    every = laid_out(order)
    exact = [cell for cell in every if order.part == cell.label]
    chosen = exact or [cell for cell in every if order.part in cell.label]
    if not chosen:
        names = ", ".join(cell.label for cell in every)
        raise ValueError(f"no cell of {order.name} has {order.part!r} in its name: {names}")
    screen = make_display()
    if not order.show and not carried_out(order, chosen, folder, screen):
        screen.say(f"stopped: the same command goes on from here ({folder})")
        return 130
    if order.scale != "smoke":
        film(found(every, folder), screen)
    with screen.waiting("drawing"):
        told = exhibit(experiment, every, order.scale, folder, order.command)
        page = write_exhibit(told, folder)
        (folder / SUMMARY).write_text(json.dumps(summary(told, every), indent=2) + "\n")
        if told.runs:
            write_marl_eval(told.runs, folder / "marl_eval.json")
    for sentence in told.verdict:
        screen.say(sentence)
    for failure in told.failures:
        screen.say(f"failed   {failure.label}: {failure.error.splitlines()[-1]}")
    screen.say(f"report   {page}")
    screen.say(f"tables   {folder / 'results.md'}, {folder / 'tables.tex'}")
    return 1 if told.failures else 0


def carried_out(order: ExperimentOptions, cells: Sequence[Cell], folder: Path, screen: Display) -> bool:
    """Do what is missing, here or elsewhere; False: somebody asked to stop."""
    try:
        if order.on == "here":
            return run_grid(cells, folder, screen)
        from fp3o.experiments.framework.ray_backend import Cluster, conduct_on

        cluster = Cluster(order.address, order.cpus, order.gpus, order.retries)
        return conduct_on(cluster, cells, folder, screen)
    finally:
        screen.close()


def film(findings: CellResults, screen: Display) -> None:
    """An episode of the best team of every task, kept beside its run: the report shows it."""
    for task in dict.fromkeys(item.cell.task for item in findings):
        own = [item for item in findings if item.cell.task == task and item.run]
        own = [item for item in own if (item.path / "policy").exists()]
        if not own or not own[0].cell.config.task_info.renderable(own[0].cell.config.variant):
            continue
        best = max(own, key=lambda item: float(np.mean(item.seeds)))
        path = best.path / "films" / "episode.gif"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            with screen.waiting(f"filming {best.cell.label}"):
                render(Policy.load(best.path), path, episodes=1, seconds=4)


def summary(told: ExperimentReport, every: Sequence[Cell]) -> dict[str, Any]:
    """What was run, at what scale, and what it says: for a list of results."""
    undone = len(told.missing) + len(told.failures)
    return {
        "name": told.name,
        "title": told.title,
        "scale": told.scale,
        "cells": len(every),
        "done": len(every) - undone,
        "failed": len(told.failures),
        "seeds": sorted({len(run.seeds) for run in told.runs}),
        "machines": told.machines,
        "verdict": [*told.verdict],
    }


def laid_out(order: ExperimentOptions) -> list[Cell]:
    """The cells of an experiment, with the seeds and steps that were asked for."""
    told = {name: getattr(order, name) for name in ("seeds", "steps")}
    given = {name: value for name, value in told.items() if value is not None}
    return shortened([*find(order.name).cells(order.scale)], given)


def overview() -> Table:
    """All experiments, and how many cells each has at every scale."""
    table = Table(title="experiments (fp3o experiment NAME --scale SCALE)", title_justify="left",
                  title_style="bold", box=None)  # fmt: skip
    for column in ("name", *SCALES, "question"):
        table.add_column(column, justify="right" if column in SCALES else "left", no_wrap=False)
    for name, experiment in EXPERIMENTS.items():
        counts = [str(len([*experiment.cells(scale)])) for scale in SCALES]
        table.add_row(f"[cyan]{name}[/]", *counts, experiment.question)
    return table
