"""Export of runs to the JSON format of marl-eval, for its plots and for comparisons.

    write_marl_eval(read_runs(["runs/a", "runs/b"]), "comparison.json")

The format is environment -> task -> algorithm -> seed -> evaluation. An evaluation has one number
per metric, the mean over its episodes. `absolute_metrics` are those of the best policy in training,
evaluated on fresh episodes; only finished runs have them, and marl-eval requires them. It also
requires the same tasks, seeds and number of evaluations for all algorithms.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fp3o.reports.data.files import ReportError, writing
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.timing import elapsed_seconds

METRIC_KEYS = {"return": "return", "win_rate": "won"}
"""Metrics of marl-eval -> names in run directories. Win rates are shares, 0 to 1."""


def write_marl_eval(runs: Sequence[RunRecord], path: str | Path) -> Path:
    """Write runs in marl-eval's format to a file, or to `marl_eval.json` in a folder."""
    path = Path(path) / "marl_eval.json" if Path(path).is_dir() else Path(path)
    text = json.dumps(marl_eval(runs), indent=2, allow_nan=False) + "\n"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def marl_eval(runs: Sequence[RunRecord]) -> dict[str, Any]:
    """Runs in marl-eval's format; runs without any number are left out."""
    environments: dict[str, Any] = {}
    for run in runs:
        if not (seeds := _seeds(run)):
            continue
        family, _, name = run.task.partition("/")
        algorithms = environments.setdefault(family, {}).setdefault(name or family, {})
        label = _label(run)
        if label in algorithms:
            raise ReportError(
                f"two runs on {run.task} are labelled {label!r}: `read_runs` gives distinct labels"
            )
        algorithms[label] = seeds
    return environments


def _label(run: RunRecord) -> str:
    """The run's label; marl-eval does not accept commas."""
    return (run.label or f"{run.algorithm} · {run.sharing}").replace(",", ";")


def _seeds(run: RunRecord) -> dict[str, Any]:
    """Evaluations by seed, named `seed_0` and so on as in marl-eval's logger."""
    elapsed = elapsed_seconds(run.path)
    best = {int(row.get("seed", k)): row for k, row in enumerate(run.results.get("best", []))}
    by_seed = {}
    for seed in run.seeds:
        steps = _steps(run.metrics.get(seed, {}), elapsed)
        if absolute := _absolute(best.get(seed, {})):
            steps["absolute_metrics"] = absolute
        if steps:
            by_seed[f"seed_{seed}"] = steps
    return by_seed


def _steps(lines: Mapping[int, Mapping[str, Any]], elapsed: Mapping[int, float]) -> dict[str, Any]:
    """`step_1`, `step_2`, ...: a seed's evaluations in order."""
    evaluations = []
    for _, line in sorted(lines.items()):
        step = int(line["step"])
        time = {"elapsed_time": elapsed[step]} if step in elapsed else {}
        values = {name: line.get(f"eval_{key}") for name, key in METRIC_KEYS.items()}
        if numbers := _numbers(values):
            evaluations.append({"step_count": step, **time, **numbers})
    return {f"step_{k}": evaluation for k, evaluation in enumerate(evaluations, 1)}


def _absolute(row: Mapping[str, Any]) -> dict[str, list[float]]:
    """Metrics in a row of `results.json`; empty if it has none."""
    values = {"return": row.get("return"), **(row.get("episode_metrics") or {})}
    return _numbers({name: values.get(key) for name, key in METRIC_KEYS.items()})


def _numbers(values: Mapping[str, Any]) -> dict[str, list[float]]:
    """A list of one number per metric, as marl-eval has it for means over episodes."""
    known = {name: x for name, x in values.items() if isinstance(x, int | float)}
    return {name: [float(x)] for name, x in known.items() if math.isfinite(x)}
