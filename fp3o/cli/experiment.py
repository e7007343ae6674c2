"""TODO."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console

from fp3o.cli.options import Count, Name, ask


@dataclass
class Experiment:
    """Options of `experiment`."""

    name: Name
    """Which one; `list` names them all."""
    scale: Literal["paper", "gpu", "laptop", "smoke"] = "laptop"
    """How large: tasks, steps and batches."""
    out: str | None = None
    """Directory of its cells and results; none: experiments/NAME-SCALE. What is finished there is
    not done again."""
    seeds: "Count | None" = None
    """Seeds of each cell; none: as the scale says."""
    steps: "Count | None" = None
    """Steps of each cell; none: as the scale says."""
    part: str = ""
    """Only the cells whose name contains this."""
    show: bool = False
    """Train nothing: show what is there."""
    on: Literal["here", "ray"] = "here"
    """Where cells are run: one after the other in this process, or on a Ray cluster."""
    address: str | None = None
    """Of the Ray cluster; none: the one that is known here, or a new one on this machine."""
    cpus: float = 1.0
    """Cores of a cell on Ray."""
    gpus: float = 0.0
    """Graphics processors of a cell on Ray; a fraction lets several share one."""
    retries: int = 3
    """How often Ray tries a cell again whose node has died."""


def experiment(argv: Sequence[str]) -> int:
    """A table or figure of the paper again, or one beyond it: train what is missing, show it."""
    options = ask(Experiment, argv, "experiment", experiment)
    from fp3o.experiments.framework.session import Order, overview, run_experiment

    if options.name == "list":
        Console().print(overview())
        return 0
    return run_experiment(Order(**vars(options)))
