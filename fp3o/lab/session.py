"""An experiment from its name to its pages, as the command line asks for it."""

from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from fp3o.experiments import EXPERIMENTS, find
from fp3o.lab.conduct import conduct, exhibit, shortened
from fp3o.lab.grid import SCALES, Cell, Scale
from fp3o.progress import display
from fp3o.reports.exhibits import write_exhibit


class Order(NamedTuple):
    """What somebody asks for; the names are those of the command line."""

    name: str
    scale: Scale = "laptop"
    out: str | None = None
    seeds: int | None = None
    steps: int | None = None
    part: str = ""
    on: str = "here"
    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    retries: int = 3
    command: str = ""


def perform(order: Order) -> int:
    """Do what is missing, then write the pages about what is there; the exit status."""
    experiment = find(order.name)
    folder = Path(order.out or f"experiments/{order.name}-{order.scale}")
    every = laid_out(order)
    chosen = [cell for cell in every if order.part in cell.label]
    if not chosen:
        names = ", ".join(cell.label for cell in every)
        raise ValueError(f"no cell of {order.name} has {order.part!r} in its name: {names}")
    screen = display()
    try:
        if order.on == "ray":
            from fp3o.lab.cluster import Cluster, conduct_on

            cluster = Cluster(order.address, order.cpus, order.gpus, order.retries)
            whole = conduct_on(cluster, chosen, folder, screen)
        else:
            whole = conduct(chosen, folder, screen)
    finally:
        screen.close()
    if not whole:
        screen.say(f"stopped: the same command goes on from here ({folder})")
        return 130
    with screen.waiting("drawing"):
        told = exhibit(experiment, every, order.scale, folder, order.command)
        page = write_exhibit(told, folder)
    for sentence in told.verdict:
        screen.say(sentence)
    for failure in told.failures:
        screen.say(f"failed   {failure.label}: {failure.error.splitlines()[-1]}")
    screen.say(f"report   {page}")
    screen.say(f"tables   {folder / 'results.md'}, {folder / 'tables.tex'}")
    return 1 if told.failures else 0


def laid_out(order: Order) -> list[Cell]:
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
