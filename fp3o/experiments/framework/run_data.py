"""A run as one small JSON document: what tables and figures need, without weights and states.

    document = pack_run([Path("runs/a"), Path("runs/b")])  # the same settings, other seeds
    unpack_run(document, Path("again"))  # a run directory that reports can read

The settings and the final evaluation are kept as they are, and so are all evaluations during
training. Of the other metrics, those that are counted are kept in every logged row, and those that
are averaged as means over a few parts of training. Runs of one configuration whose seeds were
trained one by one become one run.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.envs.registry import get_task
from fp3o.errors import UserError
from fp3o.experiments.framework.grid import slug
from fp3o.experiments.framework.run_grid import deciding_settings
from fp3o.files import CHECKSUM
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.timing import training_seconds
from fp3o.runs.directory import RunDirectory
from fp3o.runs.directory_name import safe_name
from fp3o.runs.run_config import RunConfig

DOCUMENT_FORMAT = 1
"""Version of the document."""

EVALUATIONS = ("eval_return", "eval_won", "eval_dead_enemies")
"""Metrics of evaluations, all of which are kept."""

COUNTED = ("condition_holds", "condition_matches")
"""Metrics that are kept in every logged row, since iterations are counted."""

AVERAGED = (
    "actor_steps", "entropy", "episode_return", "episode_won", "kl", "kl_quantiles",
    "product_variance",
)  # fmt: skip
"""Metrics that are kept as means over the parts of training."""

MEAN_PARTS = 10
"""Parts of training over which the other metrics are averaged."""

DIGITS = 6
"""Significant digits of metrics; the final evaluation is exact."""

Rows = dict[int, dict[int, dict[str, Any]]]
"""Seed -> iteration -> metrics."""


class RunDataError(UserError, ValueError):
    """Runs that cannot be one document; the message says why."""


def pack_run(paths: Sequence[Path]) -> dict[str, Any]:
    """The document of a finished run, or of several with the same settings and other seeds."""
    records = sorted((RunRecord.read(path) for path in paths), key=lambda run: min(run.seeds))
    first = records[0]
    for record in records:
        if not record.finished:
            raise RunDataError(f"{record.path} is not finished: only finished runs are packed")
        _check_same(first, record)
    rows: Rows = {}
    for record in records:
        for seed in record.seeds:
            rows[seed] = _kept_rows(record.metrics.get(seed, {}))
    seeds = [seed for record in records for seed in record.seeds]
    if len({*seeds}) < len(seeds):
        raise RunDataError(f"two of the runs have the same seeds: {sorted(seeds)}")
    settings = {**first.settings, "seed": min(seeds), "seeds": len(seeds)}
    config = {**first.metadata, "settings": settings}
    resumed = [entry for record in records[1:] for entry in _machines(record.metadata)]
    config["resumed"] = [*config.get("resumed", []), *resumed]
    for name in (CHECKSUM, "command"):  # the command names files of one machine
        config.pop(name, None)
    return {
        "format": DOCUMENT_FORMAT,
        "config": {name: value for name, value in config.items() if value != []},
        "results": _merged_results(records),
        "seconds": round(sum(training_seconds(record.path) for record in records), 1),
        "metrics": {str(seed): _columns(lines) for seed, lines in rows.items()},
    }


def run_name(settings: Mapping[str, Any]) -> str:
    """A file name for the runs with these settings, whatever their seeds and length.

    Runs on simulators that compute the same have the same name.
    """
    kept = deciding_settings(RunConfig().with_settings(settings))
    task = str(kept["task"]).rpartition("/")[2]
    sharing = kept["sharing"] if isinstance(kept["sharing"], str) else "map"
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:8]
    return f"{safe_name(task)}-{slug(sharing)}-{slug(str(kept['algorithm']))}-{digest}"


def unpack_run(document: Mapping[str, Any], folder: Path) -> None:
    """Write a run directory from a document; it has no weights, and cannot be resumed."""
    folder.mkdir(parents=True, exist_ok=True)
    directory = RunDirectory(folder)
    directory.write_json("config.json", dict(document["config"]))
    directory.write_json("results.json", dict(document["results"]))
    lines = [
        {"iteration": iteration, "seed": int(seed), **row}
        for seed, columns in document["metrics"].items()
        for iteration, row in sorted(_rows(columns).items())
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    timing = {"step": int(document["results"]["steps"]), "seconds": document["seconds"]}
    (folder / "timing.jsonl").write_text(json.dumps(timing) + "\n")


def _check_same(one: RunRecord, other: RunRecord) -> None:
    """Raise if two runs differ in more than their seeds, or a simulator that computes the same."""
    ours, theirs = map(_with_canonical_variant, (one.settings, other.settings))
    names = {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
    names -= {"seed", "seeds", "save_every", "keep_checkpoints"}
    if names:
        raise RunDataError(
            f"{one.path} and {other.path} differ in {', '.join(sorted(names))}: only runs with the "
            "same settings and other seeds are packed together"
        )


def _with_canonical_variant(settings: Mapping[str, Any]) -> dict[str, Any]:
    task, variant = get_task(settings["task"]), settings["variant"]
    return {**settings, "variant": task.canonical(variant)}


def _machines(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where and when a run was trained."""
    names = ("versions", "commit", "device", "created")
    own = {name: metadata[name] for name in names if name in metadata}
    return [own, *metadata.get("resumed", [])]


def _merged_results(records: Sequence[RunRecord]) -> dict[str, Any]:
    results = dict(records[0].results)
    results.pop(CHECKSUM, None)
    for name in ("last", "best"):
        results[name] = [row for record in records for row in record.results.get(name, [])]
    seconds = [record.results.get("seconds") or {} for record in records]
    results["seconds"] = {
        name: round(sum(part.get(name) or 0.0 for part in seconds), 1) for name in seconds[0]
    }
    return results


def _kept_rows(lines: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """The metrics of a seed that are kept, by iteration."""
    rows: dict[int, dict[str, Any]] = {}
    for iteration, line in lines.items():
        kept = {name: _rounded(line[name]) for name in (*EVALUATIONS, *COUNTED) if name in line}
        if kept:
            rows[iteration] = {"step": int(line["step"]), **kept}
    trained = sorted(k for k, line in lines.items() if any(name in line for name in AVERAGED))
    for part in np.array_split(np.array(trained, int), min(MEAN_PARTS, max(len(trained), 1))):
        if part.size:
            last = int(part[-1])
            means = _means([lines[k] for k in part.tolist()])
            rows.setdefault(last, {"step": int(lines[last]["step"])}).update(means)
    return rows


def _means(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means of the averaged metrics over some rows; entries that are no numbers are left out."""
    means: dict[str, Any] = {}
    for name in AVERAGED:
        values = [np.array(line[name], float) for line in lines if line.get(name) is not None]
        shapes = {value.shape for value in values}
        if len(shapes) != 1:
            continue
        table = np.stack(values)
        known = np.isfinite(table)
        count = known.sum(0)
        mean = np.where(known, table, 0.0).sum(0) / np.maximum(count, 1)
        means[name] = _rounded(np.where(count > 0, mean, np.nan).tolist())
    return means


def _rounded(value: Any) -> Any:
    """A number, or nested lists of numbers, with fewer digits; None for what is no number."""
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, bool):
        return int(value)
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _columns(rows: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    """Rows as columns: per group of metrics its iterations, steps and numbers."""
    columns = {}
    for group, names in (("evaluations", EVALUATIONS), ("counts", COUNTED), ("means", AVERAGED)):
        chosen = {k: row for k, row in sorted(rows.items()) if any(name in row for name in names)}
        if chosen:
            known = [name for name in names if any(name in row for row in chosen.values())]
            numbers = {name: [row.get(name) for row in chosen.values()] for name in known}
            steps = [row["step"] for row in chosen.values()]
            columns[group] = {"iteration": [*chosen], "step": steps, **numbers}
    return columns


def _rows(columns: Mapping[str, Mapping[str, list[Any]]]) -> dict[int, dict[str, Any]]:
    """The rows of a document's columns."""
    rows: dict[int, dict[str, Any]] = {}
    for group in columns.values():
        for k, iteration in enumerate(group["iteration"]):
            row = rows.setdefault(iteration, {})
            row |= {name: x[k] for name, x in group.items() if x[k] is not None}
            del row["iteration"]
    return rows
