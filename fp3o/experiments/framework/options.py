"""Options of `fp3o experiment`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from fp3o.experiments.framework.grid import Scale


@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """Where the cells of a grid run, and with what resources."""

    on: Literal["here", "ray"] = "here"
    """Where to run the cells: one after another in this process, or on a Ray cluster."""
    address: str | None = None
    """Address of the Ray cluster; by default, the one Ray finds, or a new one on this machine."""
    cpus: float = 1.0
    """CPU cores per cell on Ray."""
    gpus: float = 0.0
    """GPUs per cell on Ray; a fraction lets several cells share one."""
    retries: int = 3
    """Number of times that Ray restarts a cell whose node has failed."""


@dataclass(frozen=True)
class ExperimentOptions(WhereOptions):
    """Options of an experiment: name, size, and where it runs."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Name of the experiment (`list` shows all), or a custom one, my_module:EXPERIMENT."""
    scale: Scale = "laptop"
    """Size of the experiment: tasks, steps and batches."""
    out: str | None = None
    """Output directory; by default, experiments/NAME-SCALE. Finished cells in it are
    not run again."""
    seeds: int | None = None
    """Seeds per cell; by default, as many as the scale says."""
    steps: int | None = None
    """Environment steps per seed; by default, as many as the scale says."""
    part: str = ""
    """Run only the cells whose label contains this text."""
    show: bool = False
    """Train nothing; only report the finished cells."""

    @property
    def command(self) -> str:
        """Command that reproduces the experiment; each cell states its own steps and seeds."""
        return f"fp3o experiment {self.name} --scale {self.scale}"
