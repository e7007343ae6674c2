"""A run directory as data: its settings, what was measured, how it ended."""

import itertools
import json
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT = 2
"""The version of run directories that is understood here."""

NAMES = {
    "fp3o": "FP3O", "mappo": "MAPPO", "ippo": "IPPO", "happo": "HAPPO", "a2po": "A2PO",
    "coppo": "CoPPO",
}  # fmt: skip
"""How the algorithms are written; also their order in tables and figures."""

SHARINGS = ("full", "partial", "none", "by_type")
"""The order of sharings in tables and figures."""


class Series(NamedTuple):
    """A metric over training: environment steps (t) and values (seeds, t, ...); NaN: missing."""

    step: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class RunRecord:
    """One training run as it lies on the disk."""

    path: Path
    config: Mapping[str, Any]
    """`config.json`."""
    records: Mapping[int, Mapping[int, Mapping[str, Any]]]
    """seed -> iteration -> line of `metrics.jsonl`."""
    results: Mapping[str, Any]
    """`results.json`; empty while the run is unfinished."""
    label: str = ""
    """A name that tells it from the other runs of a report."""

    @property
    def finished(self) -> bool:
        """Whether the run came to its end and was judged."""
        return bool(self.results)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting, flat."""
        return self.config.get("settings", {})

    @property
    def task(self) -> str:
        """The task, with its variant if that is not the only one."""
        variant = self.settings.get("variant")
        plain = variant in (None, "", "default")
        return str(self.settings.get("task", "?")) + ("" if plain else f" ({variant})")

    @property
    def family(self) -> str:
        """The row of the table that the algorithm is, or was made from."""
        value = self.settings.get("algorithm", "?")
        name = value.get("name", "custom") if isinstance(value, Mapping) else value
        return str(name).partition(":")[0]

    @property
    def algorithm(self) -> str:
        """The algorithm as people write it; changed fields in brackets."""
        value = self.settings.get("algorithm", "?")
        changes = "" if isinstance(value, Mapping) else str(value).partition(":")[2]
        name = NAMES.get(self.family, self.family)
        return f"{name} ({changes.replace(',', ', ')})" if changes else name

    @property
    def sharing(self) -> str:
        """The sharing's name, or a short form of its map."""
        value = self.settings.get("sharing", "?")
        if isinstance(value, str):
            return value.replace("_", " ")
        flat = isinstance(value, list) and all(isinstance(group, int) for group in value)
        return f"map {'-'.join(map(str, value))}" if flat and len(value) <= 8 else "custom map"

    @property
    def pipelines(self) -> bool:
        """Whether the algorithm has FP3O's two steps with a gate between them."""
        value = self.settings.get("algorithm")
        schedule = value.get("schedule") if isinstance(value, Mapping) else None
        return self.family == "fp3o" or schedule == "pipelines"

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that have left a trace."""
        finals = self.results.get("last", [])
        return tuple(sorted({*self.records, *(int(row["seed"]) for row in finals)}))

    @property
    def step(self) -> int:
        """Environment steps done by each seed so far."""
        lines = (line for seed in self.records.values() for line in seed.values())
        done = max((int(line["step"]) for line in lines), default=0)
        return max(done, int(self.results.get("steps") or 0))

    def series(self, name: str, stage: int | None = None) -> Series:
        """A metric over training; of one `stage` where the metric has one row a stage."""
        return _series(self.records, name, stage)


def read_runs(paths: Sequence[str | Path]) -> list[RunRecord]:
    """All runs, in the order of tables and figures, each with a label of its own."""
    if not paths:
        raise ValueError("no run was given: name one or several run directories")
    unique = {Path(path).resolve(): Path(path) for path in paths}
    return arranged([read_run(path) for path in unique.values()])


def arranged(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Runs in the order of tables and figures, each with a label of its own."""
    return _labelled(sorted(runs, key=_order))


def read_run(path: str | Path) -> RunRecord:
    """One run directory."""
    path = Path(path)
    if not (path / "config.json").is_file():
        raise FileNotFoundError(_no_run(path))
    config = _json(path / "config.json")
    if config.get("format") != FORMAT or not isinstance(config.get("settings"), dict):
        raise ValueError(
            f"{path / 'config.json'} has format {config.get('format')!r}; this version of fp3o "
            f"reads format {FORMAT}: use the version that wrote the run, "
            f"{config.get('versions', {}).get('fp3o', 'a newer one')}"
        )
    results = _json(path / "results.json") if (path / "results.json").is_file() else {}
    return RunRecord(path, config, _records(path / "metrics.jsonl"), results)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it does not hold names and values")
    return content


def _no_run(path: Path) -> str:
    if not path.exists():
        return f"there is no directory {path}"
    levels = itertools.chain(path.glob("*/config.json"), path.glob("*/*/config.json"))
    inside = [str(found.parent) for found in itertools.islice(levels, 5)]
    hint = f". Run directories inside it: {', '.join(sorted(inside))}" if inside else ""
    return (
        f"{path} is no run directory: one is made by `fp3o train` and holds config.json and "
        f"metrics.jsonl{hint}"
    )


def _records(path: Path) -> dict[int, dict[int, dict[str, Any]]]:
    """The lines by seed and iteration; of two for the same place (a resumed run) the later one."""
    lines = path.read_bytes().splitlines() if path.is_file() else []
    records: dict[int, dict[int, dict[str, Any]]] = {}
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            place = int(line["seed"]), int(line["iteration"]), int(line["step"])
        except (ValueError, TypeError, KeyError):
            # The last line of a run that is being written may be torn: nothing is wrong then.
            if text.strip() and number < len(lines):
                warnings.warn(f"{path}, line {number} cannot be read: left out", stacklevel=2)
            continue
        records.setdefault(place[0], {})[place[1]] = line
    return records


def _series(
    records: Mapping[int, Mapping[int, Mapping[str, Any]]], name: str, stage: int | None
) -> Series:
    steps: dict[int, int] = {}
    rows: dict[tuple[int, int], list[float]] = {}
    for seed, lines in records.items():
        for iteration, line in lines.items():
            if (value := _values(line.get(name), stage)) is not None:
                steps[iteration] = int(line["step"])
                rows[seed, iteration] = value
    # A line that does not fit the others (another number of agents) counts as missing.
    width = max(Counter(map(len, rows.values())).items(), key=lambda item: item[1], default=(1, 0))
    table = np.full((len(records), len(steps), width[0]), np.nan)
    columns = {iteration: column for column, iteration in enumerate(sorted(steps))}
    for place, seed in enumerate(sorted(records)):
        for iteration in columns:
            if len(row := rows.get((seed, iteration), ())) == width[0]:
                table[place, columns[iteration]] = row
    step = np.array([steps[iteration] for iteration in columns], float)
    return Series(step, table if width[0] > 1 else table[..., 0])


def _values(value: Any, stage: int | None) -> list[float] | None:
    """A number or a list of numbers of one stage; None where there is nothing."""
    if stage is not None and isinstance(value, list):
        value = value[stage] if -len(value) <= stage < len(value) else None
    numbers = [_number(item) for item in (value if isinstance(value, list) else [value])]
    return numbers if any(map(math.isfinite, numbers)) else None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _order(run: RunRecord) -> tuple[Any, ...]:
    sharing, family = run.settings.get("sharing"), run.family
    kinds, names = [*SHARINGS, sharing], [*NAMES, family]
    return run.task, kinds.index(sharing), run.sharing, names.index(family), run.algorithm


def _labelled(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """`FP3O · partial`; equal labels get the settings in which they differ, or their folder."""
    plain = [f"{run.algorithm} · {run.sharing}" for run in runs]
    labels = []
    for run, label in zip(runs, plain, strict=True):
        same = (run.task, label)
        others = [r for r, name in zip(runs, plain, strict=True) if (r.task, name) == same]
        keys = differences(others)
        extra = ", ".join(f"{key}={run.settings.get(key)}" for key in keys)
        if len(others) > 1 and (not 1 <= len(keys) <= 2 or len(extra) > 40):
            extra = run.path.resolve().name
        labels.append(f"{label} · {extra}" if extra else label)
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def differences(runs: Sequence[RunRecord]) -> list[str]:
    """The settings that are not the same in all runs."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    return [key for key in keys if len({repr(run.settings.get(key)) for run in runs}) > 1]
