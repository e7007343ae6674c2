"""A run directory as data: settings, metrics over training, final evaluation."""

import itertools
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fp3o.errors import UserError, printable
from fp3o.reports.data.files import (
    ReportError,
    check_content,
    read_lines,
    read_object,
    run_file,
)
from fp3o.reports.data.schema import CONFIG, LARGEST_VALUE, METRICS_LINE, RESULTS, fields
from fp3o.spec import FORMAT

MetricLines = Mapping[int, Mapping[int, Mapping[str, Any]]]
"""Seed -> iteration -> line of `metrics.jsonl`."""


MOST_NAME = 100
"""Characters of the longest name of a task, an algorithm or a sharing that is shown."""

_Record = TypeVar("_Record", bound="RunRecord")


class Series(NamedTuple):
    """A metric over training: environment steps (t) and values (seeds, t, ...); NaN if missing."""

    step: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class RunRecord:
    """A training run as recorded in its directory."""

    path: Path
    metadata: Mapping[str, Any]
    """`config.json`: settings, versions, device, command."""
    metrics: MetricLines
    results: Mapping[str, Any]
    """`results.json`; empty while the run is unfinished."""
    label: str = ""
    """Distinguishes the run from the others of a report."""

    @classmethod
    def read(cls: type[_Record], path: str | os.PathLike[str]) -> _Record:
        """Read a run directory, finished or not."""
        path = Path(path)
        if (config := run_file(path, "config.json")) is None:
            raise MissingRunError(path)
        metadata = read_object(config, fields({}))
        if metadata.get("format") != FORMAT:
            raise ReportError(_other_format(config, metadata))
        check_content(config, metadata, CONFIG)
        seeds = _known_seeds(metadata["settings"])
        metrics, results = run_file(path, "metrics.jsonl"), run_file(path, "results.json")
        lines = _read_metrics(metrics, seeds) if metrics else {}
        return cls(path, metadata, lines, _read_results(results, seeds) if results else {})

    def __fspath__(self) -> str:
        """The run directory: a run can be given wherever a path can."""
        return str(self.path)

    @property
    def finished(self) -> bool:
        """Whether training reached its last step and the policies were evaluated."""
        return bool(self.results)

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings in one flat mapping."""
        return self.metadata.get("settings", {})

    @property
    def task(self) -> str:
        """Name of the task, with its variant unless that is the default."""
        variant = self.settings.get("variant")
        suffix = "" if variant in (None, "", "default") else f" ({variant})"
        return _name(str(self.settings.get("task", "?")) + suffix)

    @property
    def algorithm_row(self) -> Mapping[str, Any]:
        """The algorithm as recorded at the start: name, changes, title, colour, gated, fields."""
        return self.metadata.get("algorithm") or {}

    @property
    def algorithm_title(self) -> str:
        """Title of the algorithm without changed fields."""
        name = str(self.settings.get("algorithm", "?"))
        return _name(self.algorithm_row.get("title") or self.algorithm_row.get("name") or name)

    @property
    def algorithm(self) -> str:
        """Title of the algorithm, with changed fields in brackets."""
        changes = str(self.algorithm_row.get("changes") or "").replace(",", ", ")
        return _name(f"{self.algorithm_title} ({changes})" if changes else self.algorithm_title)

    @property
    def colour(self) -> tuple[str, str] | None:
        """Colours of the algorithm on light and dark pages, `#rrggbb`; None if it has none."""
        pair = [str(colour).lower() for colour in self.algorithm_row.get("colour") or ()]
        valid = len(pair) == 2 and all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in pair)
        return (pair[0], pair[1]) if valid else None

    @property
    def gated(self) -> bool:
        """Whether some stage of the algorithm runs only if the condition holds."""
        return bool(self.algorithm_row.get("gated"))

    @property
    def sharing(self) -> str:
        """Title of the sharing scheme, or a short form of its map."""
        value = self.settings.get("sharing", "?")
        if isinstance(value, str):
            return _name(self.metadata.get("sharing_title") or value.replace("_", " "))
        flat = isinstance(value, list) and all(isinstance(group, int) for group in value)
        return f"map {'-'.join(map(str, value))}" if flat and len(value) <= 8 else "custom map"

    @property
    def num_agents(self) -> int:
        """Number of agents of the task."""
        return int(self.metadata.get("agents", 1))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have logged a metric or a result."""
        rows = self.results.get("last", [])
        return tuple(sorted({*self.metrics, *(int(row["seed"]) for row in rows)}))

    @property
    def step(self) -> int:
        """Environment steps per seed so far."""
        lines = (line for seed in self.metrics.values() for line in seed.values())
        logged = max((int(line["step"]) for line in lines), default=0)
        return max(logged, int(self.results.get("steps") or 0))

    def series(self, name: str, stage: int | None = None) -> Series:
        """A metric over training; for metrics with one entry per stage, that of one `stage`."""
        return _series(self.metrics, name, stage)


class MissingRunError(UserError, FileNotFoundError):
    """A path that is not a run directory."""

    def __init__(self, path: Path):
        super().__init__(_not_a_run(path))


def _not_a_run(path: Path) -> str:
    if not path.exists():
        return f"there is no directory {path}"
    levels = itertools.chain(path.glob("*/config.json"), path.glob("*/*/config.json"))
    inside = [str(config.parent) for config in itertools.islice(levels, 5)]
    hint = f". Run directories inside it: {', '.join(sorted(inside))}" if inside else ""
    around = [place for place in path.parents if (place / "config.json").exists()]
    hint = f". It is inside the run {around[0]}" if around else hint
    return (
        f"{path} is not a run directory: `fp3o train` creates one, with config.json and "
        f"metrics.jsonl{hint}"
    )


def _other_format(path: Path, metadata: Mapping[str, Any]) -> str:
    versions = metadata.get("versions")
    version = versions.get("fp3o") if isinstance(versions, dict) else None
    return (
        f"{path} has format {printable(repr(metadata.get('format')), 40)}, this version of fp3o "
        f"reads format {FORMAT}; use the version that wrote the run, "
        f"{printable(str(version or 'an earlier or later one'), 40)}"
    )


def _known_seeds(settings: Mapping[str, Any]) -> range | None:
    """The seeds of a run; None if its settings do not say."""
    first = settings.get("seed", 0)
    return range(first, first + settings["seeds"]) if "seeds" in settings else None


def _read_results(path: Path, seeds: range | None) -> dict[str, Any]:
    results = read_object(path, RESULTS)
    for name in ("last", "best"):
        for k, row in enumerate(results.get(name, [])):
            if seeds is not None and row["seed"] not in seeds:
                raise ReportError(
                    f"{path} is damaged: {name}[{k}].seed is {row['seed']}, the seeds of the run "
                    f"are {seeds.start} to {seeds.stop - 1}"
                )
    return results


def _read_metrics(path: Path, seeds: range | None) -> dict[int, dict[int, dict[str, Any]]]:
    """Lines by seed and iteration; a later line replaces an earlier one (a resumed run)."""
    metrics: dict[int, dict[int, dict[str, Any]]] = {}
    for number, line in read_lines(path, METRICS_LINE):
        if line is None or (seeds is not None and line["seed"] not in seeds):
            warnings.warn(f"{path}, line {number} cannot be read: skipped", stacklevel=2)
        else:
            metrics.setdefault(line["seed"], {})[line["iteration"]] = line
    return metrics


def _series(metrics: MetricLines, name: str, stage: int | None) -> Series:
    steps: dict[int, int] = {}
    rows: dict[tuple[int, int], list[float]] = {}
    for seed, lines in metrics.items():
        for iteration, line in lines.items():
            if (value := _numbers(line.get(name), stage)) is not None:
                steps[iteration] = int(line["step"])
                rows[seed, iteration] = value
    # A line of another length than most (another number of agents) counts as missing.
    lengths = Counter(map(len, rows.values())).most_common(1)
    width = lengths[0][0] if lengths else 1
    table = np.full((len(metrics), len(steps), width), np.nan)
    for k, seed in enumerate(sorted(metrics)):
        for column, iteration in enumerate(sorted(steps)):
            if len(row := rows.get((seed, iteration), ())) == width:
                table[k, column] = row
    step = np.array([steps[iteration] for iteration in sorted(steps)], float)
    return Series(step, table if width > 1 else table[..., 0])


def _numbers(value: Any, stage: int | None) -> list[float] | None:
    """The numbers of one stage as a list; None if there are none."""
    if stage is not None and isinstance(value, list):
        value = value[stage] if -len(value) <= stage < len(value) else None
    numbers = [_number(item) for item in (value if isinstance(value, list) else [value])]
    return numbers if any(map(math.isfinite, numbers)) else None


def _number(value: Any) -> float:
    known = isinstance(value, int | float) and abs(value) <= LARGEST_VALUE
    return float(value) if known else math.nan


def _name(value: Any) -> str:
    """A name from a file as it is shown: one line of limited length."""
    return printable(str(value), MOST_NAME)
