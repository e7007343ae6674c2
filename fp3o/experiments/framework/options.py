"""Options of `fp3o experiment`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from fp3o.experiments.framework.grid import Scale


@dataclass(frozen=True)
class ExperimentOptions:
    """Options of an experiment: what is run, how large, and where."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Which experiment; `list` shows all. A custom one: my_module:EXPERIMENT."""
    scale: Scale = "laptop"
    """Size of the experiment: tasks, steps and batches."""
    out: str | None = None
    """Directory of its cells and results; none: experiments/NAME-SCALE. Finished cells there are
    not run again."""
    seeds: int | None = None
    """Seeds per cell; none: by the scale."""
    steps: int | None = None
    """Steps per cell; none: by the scale."""
    part: str = ""
    """Only the cells whose label contains this."""
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
    """How often Ray restarts a cell whose node has failed."""

    @property
    def command(self) -> str:
        """Command that reproduces the experiment; each cell states its own steps and seeds."""
        return f"fp3o experiment {self.name} --scale {self.scale}"
