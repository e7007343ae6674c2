"""Options of `fp3o sweep`: those of the search, and the settings of `fp3o train`."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from fp3o.cli.train_options import TrainSettings
from fp3o.experiments.framework.options import WhereOptions
from fp3o.experiments.sweep.settings import SearchOptions

SearchArgument = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUES ...")]


@dataclass(kw_only=True)
class SweepOptions:
    """Options of `sweep`."""

    search: SearchArgument = ()
    """Searched settings, as in actor_lr=1e-4..1e-2:log clip_range=0.05..0.4 epochs=5..20:5
    algorithm=fp3o,mappo."""
    how: SearchOptions = field(default_factory=SearchOptions)
    out: str | None = None
    """Folder of the sweep; an existing one is continued. By default, a new one under sweeps/, or
    the newest one if it is unfinished and has the same settings."""
    where: WhereOptions = field(default_factory=WhereOptions)
    preset: str | None = None
    """Named settings of the task (see `fp3o list`); by default, its first preset."""
    config: str | None = None
    """Settings file: JSON, TOML, YAML or a run's config.json."""
    trust: bool = False
    """Import the custom task, network, sharing or algorithm that the settings file names."""
    quiet: bool = False
    """Print errors only."""
    settings: TrainSettings


@dataclass
class ResumeSweepOptions:
    """Options of `sweep --resume`."""

    resume: str
    """Folder of the sweep to continue."""
    trials: int | None = None
    """Number of trials, if there should be more."""
    where: WhereOptions = field(default_factory=WhereOptions)
    trust: bool = False
    """Import the custom task, network, sharing or algorithm that the sweep names."""
    quiet: bool = False
    """Print errors only."""
