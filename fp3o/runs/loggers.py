"""Loggers of metrics besides `metrics.jsonl`: TensorBoard, Weights & Biases, MLflow."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fp3o.errors import MissingExtraError, SettingError, UserError, nearest, printable


@runtime_checkable
class Logger(Protocol):
    """Interface of a logger, which receives the rows of every logged iteration."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write one row per seed."""
        ...

    def close(self) -> None:
        """Flush and close."""
        ...


class TensorBoard:
    """One event file per seed, so that TensorBoard draws one curve for each."""

    def __init__(self, path: Path, settings: Mapping[str, Any], first_step: int):
        from tensorboardX import SummaryWriter

        # Hides the rows written after the checkpoint: training writes them again.
        purge = first_step or None
        self._writers = {
            seed: SummaryWriter(str(path / "tensorboard" / f"seed-{seed}"), purge_step=purge)
            for seed in range(settings["seed"], settings["seed"] + settings["seeds"])
        }

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the values of each seed."""
        for row in rows:
            for name, value in _scalars(row):
                self._writers[row["seed"]].add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Close every file."""
        for writer in self._writers.values():
            writer.close()


class WandB:
    """A Weights & Biases run; seeds are prefixes."""

    def __init__(self, path: Path, settings: Mapping[str, Any], first_step: int):
        import wandb  # pyright: ignore[reportMissingImports]

        self._run = wandb.init(
            project="fp3o", name=path.name, id=path.name, dir=str(path), config=dict(settings),
            resume="allow",
        )  # fmt: skip

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Log all seeds at one step."""
        self._run.log(dict(_prefixed(rows)), step=rows[0]["step"])

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


class MLflow:
    """An MLflow run; seeds are prefixes."""

    def __init__(self, path: Path, settings: Mapping[str, Any], first_step: int):
        import mlflow  # pyright: ignore[reportMissingImports]

        self._mlflow = mlflow
        mlflow.set_experiment("fp3o")
        mlflow.start_run(run_name=path.name)
        mlflow.log_params({name: str(value) for name, value in settings.items()})

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Log all seeds at one step."""
        self._mlflow.log_metrics(dict(_prefixed(rows)), step=rows[0]["step"])

    def close(self) -> None:
        """Finish the run."""
        self._mlflow.end_run()


LOGGERS: Mapping[str, Callable[[Path, Mapping[str, Any], int], Logger]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
}
"""Loggers by name."""

OPTIONAL_LOGGERS = ("wandb", "mlflow")
"""Loggers whose package, of the same name, is an optional dependency."""


class LoggerError(UserError, RuntimeError):
    """A logger that cannot be opened."""

    def __init__(self, name: str, error: Exception):
        hint = OPENING_HINTS.get(name, "check that the run directory is writable")
        super().__init__(
            f"the logger {name!r} cannot be opened: {_reason(error)}. {hint}, or choose another "
            "with --loggers (none: metrics.jsonl only)"
        )


OPENING_HINTS = {
    "wandb": "log in with `wandb login`, or set WANDB_MODE=offline",
    "mlflow": "start its server, or set MLFLOW_TRACKING_URI to one that runs or to a folder",
}
"""What usually helps."""


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
    """An error of another package in one line."""
    lines = str(error).strip().splitlines()
    return printable(f"{type(error).__name__}: {lines[0] if lines else 'no message'}", 300)


def check_loggers(names: Iterable[str]) -> None:
    """Reject a logger that is unknown or whose package is not installed."""
    for name in names:
        if name not in LOGGERS and name != "none":
            raise SettingError(f"unknown logger {name!r}: {nearest(name, [*LOGGERS, 'none'])}")
        if name in OPTIONAL_LOGGERS and find_spec(name) is None:
            raise MissingExtraError(name, name)


def open_loggers(
    names: Iterable[str], path: Path, settings: Mapping[str, Any], first_step: int
) -> list[Logger]:
    """Open loggers by name for a run that continues from `first_step`."""
    opened = []
    for name in names:
        if name != "none":
            try:
                logger = LOGGERS[name](path, settings, first_step)
            except Exception as error:
                raise LoggerError(name, error) from error
            opened.append(FaultTolerantLogger(name, logger))
    return opened


def _scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The values of a row under flat names: `kl/1/0` is stage 1, agent 0."""
    for name, value in row.items():
        if name not in ("iteration", "step", "seed"):
            yield from _leaves(name, value)


def _prefixed(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """The values of all seeds, named `seed-K/...`."""
    for row in rows:
        for name, value in _scalars(row):
            yield f"seed-{row['seed']}/{name}", value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, list):
        for i, part in enumerate(value):
            yield from _leaves(f"{name}/{i}", part)
    elif value is not None:
        yield name, float(value)
