"""Options of `fp3o train`: the fields of `RunConfig`, `Config` and `Hyperparameters`."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from fp3o.cli.options import Constructors, constructor
from fp3o.cli.placement import PlacementOptions
from fp3o.envs.registry import DEFAULT_TASK
from fp3o.runs.run_config import SETTING_TYPES, RunConfig
from fp3o.runs.settings import SHARING_TYPES
from fp3o.sharing.schemes import parse_sharing

TaskArgument = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]


@dataclass(frozen=True)
class TrainSettings(RunConfig):
    """Task, length of training, evaluation and logging."""

    task: TaskArgument = DEFAULT_TASK
    """Name of the task (see `fp3o list`); must come first."""

    @property
    def config(self) -> RunConfig:
        """The same settings as a `RunConfig`."""
        return RunConfig(**vars(self))


@dataclass
class TrainOptions:
    """Options of `train`."""

    settings: TrainSettings
    out: str | None = None
    """Run directory; by default, a new one under runs/."""
    preset: str | None = None
    """Named settings of the task (see `fp3o list`); by default, its first preset."""
    config: str | None = None
    """Settings file: JSON, TOML, YAML or a run's config.json."""
    trust: bool = False
    """Import the custom task, network, sharing or algorithm that the settings file names."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Loggers in addition to metrics.jsonl: tensorboard, wandb, mlflow, or none."""
    quiet: bool = False
    """Print errors only."""
    placement: PlacementOptions = field(default_factory=PlacementOptions)


def setting_constructors() -> Constructors:
    """Parsers of the setting types that tyro does not know."""
    sharing = constructor("SHARING", _optional(parse_sharing), _sharing_text)
    number = constructor("FLOAT", _optional(float))
    return {
        **dict.fromkeys(SHARING_TYPES, sharing),
        SETTING_TYPES["algorithm"]: constructor("ALGORITHM", str),
        SETTING_TYPES["actor_lr"]: number,
        SETTING_TYPES["value_clip"]: number,
    }


def _optional(read: Any) -> Any:
    return lambda text: None if text == "None" else read(text)


def _sharing_text(value: Any) -> str:
    """A sharing as it is written on the command line."""
    if value is None or isinstance(value, str):
        return str(value)
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    return json.dumps(value, separators=(",", ":"))
