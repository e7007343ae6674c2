"""Where metrics go besides `metrics.jsonl`: TensorBoard always, W&B and MLflow when asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fp3o.errors import MissingExtraError, nearest


@runtime_checkable
class Logger(Protocol):
    """Something that takes the rows of a logged iteration."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take one row a seed."""
        ...

    def close(self) -> None:
        """Flush and let go."""
        ...


class TensorBoard:
    """One event file a seed, so that TensorBoard draws a curve for each."""

    def __init__(self, path: Path, settings: Mapping[str, Any], first_step: int):
        from tensorboardX import SummaryWriter

        # What was written after the checkpoint is hidden: it will be written again.
        purge = first_step or None
        self._writers = {
            seed: SummaryWriter(str(path / "tensorboard" / f"seed-{seed}"), purge_step=purge)
            for seed in range(settings["seed"], settings["seed"] + settings["seeds"])
        }

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the numbers of each seed."""
        for row in rows:
            for name, value in scalars(row):
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
        self._run.log(dict(by_seed(rows)), step=rows[0]["step"])

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
        self._mlflow.log_metrics(dict(by_seed(rows)), step=rows[0]["step"])

    def close(self) -> None:
        """Finish the run."""
        self._mlflow.end_run()


LOGGERS: Mapping[str, Callable[[Path, Mapping[str, Any], int], Logger]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
}
"""Loggers by name."""

EXTRAS = ("wandb", "mlflow")
"""Loggers whose package, of the same name, is optional."""


def check_loggers(names: Iterable[str]) -> None:
    """Refuse a logger that does not exist or lacks its package, before anything is written."""
    for name in names:
        if name not in LOGGERS and name != "none":
            raise ValueError(f"unknown logger {name!r}: {nearest(name, [*LOGGERS, 'none'])}")
        if name in EXTRAS and find_spec(name) is None:
            raise MissingExtraError(name, name)


def open_loggers(
    names: Iterable[str], path: Path, settings: Mapping[str, Any], first_step: int
) -> list[Logger]:
    """The loggers of these names for a run that goes on from `first_step`."""
    return [LOGGERS[name](path, settings, first_step) for name in names if name != "none"]


def scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of a row under flat names: `kl/1/0` is stage 1, agent 0."""
    for name, value in row.items():
        if name not in ("iteration", "step", "seed"):
            yield from _leaves(name, value)


def by_seed(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """The numbers of all seeds, the seed in front."""
    for row in rows:
        for name, value in scalars(row):
            yield f"seed-{row['seed']}/{name}", value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, list):
        for i, part in enumerate(value):
            yield from _leaves(f"{name}/{i}", part)
    elif value is not None:
        yield name, float(value)
