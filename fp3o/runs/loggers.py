"""Loggers of metrics besides `metrics.jsonl`: TensorBoard, Weights & Biases, MLflow."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.errors import MissingExtraError, SettingError, UserError, nearest, printable
from fp3o.options import parse_options, write_options
from fp3o.runs.directory import RunDirectory
from fp3o.runs.logger import LoggedRun, Logger, LoggerOptions
from fp3o.runs.mlflow_logger import MLflow, MLflowOptions
from fp3o.runs.tensorboard import TensorBoard
from fp3o.runs.wandb_logger import WandB, WandBOptions, check_wandb_login

RECORD = "loggers.json"
"""File of a run that has its loggers, and the ids of their runs at services."""

Loggers = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
"""`"wandb"`, `["tensorboard", "wandb:project=marl"]` or `{"wandb": {"project": "marl"}}`."""


class LoggerKind(NamedTuple):
    """A kind of logger: how it is opened, its options, and what it requires."""

    make: Callable[[LoggedRun, Any], Logger]
    options: type[LoggerOptions] = LoggerOptions
    package: str | None = None
    """Optional package, which is also the name of the extra."""
    check: Callable[[], None] = lambda: None
    """Raises before training where nobody is logged in."""
    hint: str = "check that the run directory is writable"
    """What helps where it cannot be opened."""


LOGGERS: Mapping[str, LoggerKind] = {
    "tensorboard": LoggerKind(lambda run, _: TensorBoard(run)),
    "wandb": LoggerKind(
        WandB,
        WandBOptions,
        "wandb",
        check_wandb_login,
        "log in with `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline",
    ),
    "mlflow": LoggerKind(
        MLflow,
        MLflowOptions,
        "mlflow",
        hint="start its server, or set MLFLOW_TRACKING_URI to one that runs or to a folder",
    ),
}
"""Loggers by name."""


class LoggerError(UserError, RuntimeError):
    """A logger that cannot be opened."""

    def __init__(self, name: str, error: Exception):
        hint = LOGGERS[name].hint
        super().__init__(
            f"the logger {name!r} cannot be opened: {_reason(error)}. {hint[0].upper()}{hint[1:]}, "
            "or choose another with --loggers (none: metrics.jsonl only)"
        )


class FaultTolerantLogger:
    """A logger whose failure does not end a run: it is reported once and left out afterwards.

    `metrics.jsonl` has every row all the same.
    """

    def __init__(self, name: str, logger: Logger):
        self._name, self._logger = name, logger
        self._failed = False

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write one row per seed."""
        self._try(lambda: self._logger.write(rows))

    def video(self, path: Path, seed: int, step: int) -> None:
        """Add a video of a seed's policy."""
        self._try(lambda: self._logger.video(path, seed, step))

    def close(self) -> None:
        """Flush and close."""
        self._try(self._logger.close)

    def _try(self, action: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            action()
        except Exception as error:
            self._failed = True
            warnings.warn(
                f"the logger {self._name!r} failed and is not used any more: {_reason(error)}; "
                "metrics.jsonl has all metrics",
                RuntimeWarning,
                stacklevel=3,
            )


def _reason(error: Exception) -> str:
    """An error, mostly of another package, in one line."""
    if isinstance(error, UserError):
        return str(error)
    lines = str(error).strip().splitlines()
    return printable(f"{type(error).__name__}: {lines[0] if lines else 'no message'}", 300)


def read_loggers(loggers: Loggers) -> dict[str, LoggerOptions]:
    """Loggers by name with their options; unknown names and options are rejected."""
    if isinstance(loggers, Mapping):
        given = [(name, dict(options)) for name, options in loggers.items()]
    else:
        given = [parse_options(x) for x in ([loggers] if isinstance(loggers, str) else loggers)]
    found: dict[str, LoggerOptions] = {}
    for name, options in given:
        if name not in LOGGERS and name != "none":
            raise SettingError(f"unknown logger {name!r}: {nearest(name, [*LOGGERS, 'none'])}")
        if name in found:
            raise SettingError(f"the logger {name!r} is given twice")
        if name != "none":
            found[name] = LOGGERS[name].options.read(name, options)
    return found


def check_loggers(loggers: Loggers) -> None:
    """Reject a logger that is unknown, has wrong options or whose package is not installed."""
    for name in read_loggers(loggers):
        package = LOGGERS[name].package
        if package is not None and find_spec(package) is None:
            raise MissingExtraError(package, package)


def check_logins(loggers: Loggers) -> None:
    """Reject loggers of services at which nobody is logged in, before anything is written."""
    for name in read_loggers(loggers):
        try:
            LOGGERS[name].check()
        except Exception as error:
            raise LoggerError(name, error) from error


def open_loggers(loggers: Loggers, directory: RunDirectory, run: LoggedRun) -> list[Logger]:
    """Open the loggers of a run; their runs at services are recorded in its directory."""
    chosen, record, opened = read_loggers(loggers), _read_record(directory), []
    ids = {name: dict(record["ids"].get(name) or {}) for name in chosen}
    for name, options in chosen.items():
        try:
            logger = LOGGERS[name].make(run._replace(ids=ids[name]), options)
        except Exception as error:
            raise LoggerError(name, error) from error
        opened.append(FaultTolerantLogger(name, logger))
    if known := {name: runs for name, runs in ids.items() if runs}:
        names = [write_options(name, options.changes) for name, options in chosen.items()]
        directory.write_json(RECORD, {"loggers": names, "ids": {**record["ids"], **known}})
    return opened


def left_out_loggers(directory: RunDirectory, loggers: Loggers) -> list[str]:
    """A sentence per service that a run was logged at and that nobody has named now.

    Files of a run do not choose its loggers: what they say is only shown.
    """
    named, record = read_loggers(loggers), _read_record(directory)
    left_out = [text for text in record["loggers"] if parse_options(text)[0] not in named]
    return [
        f"this run was logged by {printable(text)}: to continue there, name it with --loggers"
        for text in left_out
        if parse_options(text)[0] in record["ids"]
    ]


def _read_record(directory: RunDirectory) -> dict[str, Any]:
    """The loggers of a run and the ids of their runs by seed."""
    if not (directory.path / RECORD).exists():
        return {"loggers": [], "ids": {}}
    record = directory.read_json(RECORD)
    names, ids = record.get("loggers"), record.get("ids")
    valid = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not valid or not isinstance(ids, dict) or not all(isinstance(x, dict) for x in ids.values()):
        raise UserError(
            f"{directory.path / RECORD} is damaged: delete it to start new runs at the services of "
            "the loggers"
        )
    return {"loggers": names, "ids": ids}
