"""Interface and options of loggers.

At a service that tracks experiments, a run is a group with one run per seed, or one run with all of
them.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from fp3o.errors import SettingError, nearest
from fp3o.options import show, to_type
from fp3o.reports.data.metrics import flat_metrics

_Options = TypeVar("_Options", bound="LoggerOptions")


@runtime_checkable
class Logger(Protocol):
    """Interface of a logger, which receives the rows of every logged iteration."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write one row per seed."""
        ...

    def video(self, path: Path, seed: int, step: int) -> None:
        """Add a video of a seed's policy, a GIF file."""
        ...

    def close(self) -> None:
        """Flush and close."""
        ...


class LoggedRun(NamedTuple):
    """What a logger knows of a run."""

    path: Path
    settings: Mapping[str, Any]
    agents: tuple[str, ...] = ()
    """Names of the agents."""
    first_step: int = 0
    """Step from which on rows follow; 0 for a new run."""
    ids: dict[str, str] = {}  # noqa: RUF012
    """Ids of its runs at a service by seed, or under `all`: read, and completed."""

    video_name = "video/policy"
    """Name of the videos."""

    @property
    def seeds(self) -> range:
        """All seeds."""
        return range(self.settings["seed"], self.settings["seed"] + self.settings["seeds"])

    def flat(self, row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """The metrics of a row by their readable names."""
        return flat_metrics(row, self.agents)


@dataclass(frozen=True)
class LoggerOptions:
    """Options of a logger; this one has none."""

    @classmethod
    def read(cls: type[_Options], logger: str, options: Mapping[str, Any]) -> _Options:
        """The options of a logger, with checked names and types."""
        hints = {field.name: field.type for field in dataclasses.fields(cls)}
        for name in options:
            if name not in hints:
                known = nearest(name, hints) if hints else "it has none"
                raise SettingError(f"unknown option {name!r} of the logger {logger!r}: {known}")
        values = {
            name: _words(f"{logger}:{name}", value)
            if name == "tags"
            else to_type(f"{logger}:{name}", hints[name], _as_text(value))
            for name, value in options.items()
        }
        return cls(**values)

    @property
    def changes(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        pairs = ((field, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {field.name: value for field, value in pairs if value != field.default}


@dataclass(frozen=True)
class TrackerOptions(LoggerOptions):
    """Options of both services."""

    group: str | None = None
    """Name of the group of runs; by default, that of the run directory."""
    tags: tuple[str, ...] = ()
    seeds: Literal["separate", "together"] = "separate"
    """One run per seed in a group, or one run with all seeds."""


def _as_text(value: Any) -> Any:
    """A number as text: a project may be called 7."""
    return str(value) if type(value) in (int, float) else value


def _words(name: str, value: Any) -> tuple[str, ...]:
    """Tags: a list, or words separated by commas."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        words = [words]
    if not all(isinstance(word, str | int | float) for word in words):
        raise SettingError(f"{name} must be words separated by commas, got {show(value)}")
    return tuple(text for word in words if (text := str(word).strip()))


class TrackedPart(NamedTuple):
    """The part of a run that is one run at a service."""

    key: str
    """Its key among the ids."""
    suffix: str
    settings: dict[str, Any]
    seeds: Sequence[int]

    def values(self, run: LoggedRun, rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
        """The metrics of its seeds; several seeds are prefixes."""
        return {
            (f"seed-{row['seed']}/{name}" if self.key == "all" else name): value
            for row in rows
            if row["seed"] in self.seeds
            for name, value in run.flat(row)
        }


def tracked_parts(run: LoggedRun, options: TrackerOptions) -> list[TrackedPart]:
    """The parts of a run: one per seed, or the whole."""
    settings = dict(run.settings)
    if options.seeds == "together":
        return [TrackedPart("all", "", settings, run.seeds)]
    return [
        TrackedPart(str(seed), f" seed-{seed}", {**settings, "seed": seed, "seeds": 1}, (seed,))
        for seed in run.seeds
    ]
