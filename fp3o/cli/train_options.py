"""Options of `fp3o train`: the fields of `RunConfig`, `Config` and `Hyperparameters`."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from fp3o.cli.options import Constructors, constructor
from fp3o.cli.placement import PlacementOptions
from fp3o.envs.registry import DEFAULT_TASK
from fp3o.learning.value_schedules import FORMS, ValueSchedule
from fp3o.networks.conv_layers import parse_conv, write_conv
from fp3o.options import show
from fp3o.runs.run_config import SETTING_TYPES, RunConfig
from fp3o.runs.settings import SCALAR_TYPES, SHARING_TYPES
from fp3o.sharing.schemes import parse_sharing

StartArgument = Annotated[
    str | None, tyro.conf.arg(name="from", aliases=("--start-from",), metavar="POLICY")
]

StartAgentsArgument = Annotated[
    str | None,
    tyro.conf.arg(name="from-agents", aliases=("--start-agents",), metavar="AGENTS"),
]

StartCriticArgument = Annotated[
    bool, tyro.conf.arg(name="from-critic", aliases=("--start-critic",))
]

FrozenArgument = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="AGENTS=POLICY")
]

TaskArgument = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]


@dataclass(frozen=True)
class TrainSettings(RunConfig):
    """Task, length of training, evaluation and logging."""

    task: TaskArgument = DEFAULT_TASK
    """Name of the task (see `fp3o list`); must come first."""

    start_from: StartArgument = None
    """Policy folder or run directory whose policy the agents start from; of a run, the best one of
    all seeds. By default, random weights."""
    start_agents: StartAgentsArgument = None
    """Agent of that policy from which each agent starts, by index or name, as in 0,0,1; by default,
    the one of the same name or index."""
    start_critic: StartCriticArgument = False
    """Also start from the critic and the value normaliser in the run's newest checkpoint, with the
    last policy in place of the best one."""
    frozen: FrozenArgument = ()
    """Agents that play with the policy of another folder or run and are never updated, as in
    1,2=runs/partner; 1=runs/partner:agents=0 names the agent of that policy. May be repeated."""

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
    """Loggers in addition to metrics.jsonl: tensorboard, wandb, mlflow, or none; with options, as
    in wandb:project=marl,entity=lab,tags=a,b,seeds=together or mlflow:experiment=marl."""
    quiet: bool = False
    """Print errors only."""
    placement: PlacementOptions = field(default_factory=PlacementOptions)


def setting_constructors() -> Constructors:
    """Parsers of the setting types that tyro does not know."""
    sharing = constructor("SHARING", _optional(parse_sharing), _sharing_text)
    number = constructor("FLOAT|SCHEDULE", _optional(_scalar), _scalar_text)
    return {
        **dict.fromkeys(SHARING_TYPES, sharing),
        SETTING_TYPES["algorithm"]: constructor("ALGORITHM", str),
        **dict.fromkeys(SCALAR_TYPES, number),
        SETTING_TYPES["conv"]: constructor("CONV", parse_conv, write_conv),
    }


def _optional(read: Any) -> Any:
    return lambda text: None if text == "None" else read(text)


def _scalar(text: str) -> float:
    """A number, or a schedule."""
    if ":" in text:
        return ValueSchedule(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{show(text)} is no number; a schedule is written as {FORMS}") from None


def _scalar_text(value: Any) -> str:
    return value.text if isinstance(value, ValueSchedule) else str(value)


def _sharing_text(value: Any) -> str:
    """A sharing as it is written on the command line."""
    if value is None or isinstance(value, str):
        return str(value)
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    return json.dumps(value, separators=(",", ":"))
