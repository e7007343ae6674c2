"""Runs in the JSON format of marl-eval, for its plots and for comparisons with other libraries.

    write_marl_eval(read_runs(["runs/a", "runs/b"]), "comparison.json")

The format is environment -> task -> algorithm -> seed -> evaluation. An evaluation has one number a
metric, the mean over its episodes. `absolute_metrics` are those of the best policy in training,
judged on fresh episodes; a run has them when it is finished, and marl-eval asks for them. It also
asks for the same tasks, seeds and number of evaluations of all algorithms.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fp3o.reports.data.record import RunRecord

METRICS = {"return": "return", "win_rate": "won"}
"""marl-eval's names of the numbers -> their names here. Win rates are shares, 0 to 1."""


def write_marl_eval(runs: Sequence[RunRecord], path: str | Path) -> Path:
    """Write the runs as marl-eval reads them; the file's path, in a folder `marl_eval.json`."""
    path = Path(path) / "marl_eval.json" if Path(path).is_dir() else Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(marl_eval(runs), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return path


def marl_eval(runs: Sequence[RunRecord]) -> dict[str, Any]:
    """The runs as marl-eval reads them; runs without any number are left out."""
    environments: dict[str, Any] = {}
    for run in runs:
        if not (seeds := _seeds(run)):
            continue
        family, _, name = run.task.partition("/")
        algorithms = environments.setdefault(family, {}).setdefault(name or family, {})
        label = _algorithm(run)
        if label in algorithms:
            raise ValueError(
                f"two runs on {run.task} are called {label!r}: read them together, with `read_runs`"
            )
        algorithms[label] = seeds
    return environments


def _algorithm(run: RunRecord) -> str:
    """The run's label; marl-eval refuses commas."""
    return (run.label or f"{run.algorithm} · {run.sharing}").replace(",", ";")


def _seeds(run: RunRecord) -> dict[str, Any]:
    """`seed_0` and so on, as marl-eval's own logger calls them: files of other seeds can join."""
    elapsed = _elapsed(run.path / "timing.jsonl")
    best = {int(row.get("seed", k)): row for k, row in enumerate(run.results.get("best", []))}
    found = {}
    for seed in run.seeds:
        steps = _steps(run.records.get(seed, {}), elapsed)
        if absolute := _absolute(best.get(seed, {})):
            steps["absolute_metrics"] = absolute
        if steps:
            found[f"seed_{seed}"] = steps
    return found


def _steps(lines: Mapping[int, Mapping[str, Any]], elapsed: Mapping[int, float]) -> dict[str, Any]:
    """`step_1`, `step_2`, ...: a seed's evaluations in order."""
    evaluations = []
    for _, line in sorted(lines.items()):
        step = int(line["step"])
        time = {"elapsed_time": elapsed[step]} if step in elapsed else {}
        if metrics := _metrics({name: line.get(f"eval_{own}") for name, own in METRICS.items()}):
            evaluations.append({"step_count": step, **time, **metrics})
    return {f"step_{place}": found for place, found in enumerate(evaluations, 1)}


def _absolute(row: Mapping[str, Any]) -> dict[str, list[float]]:
    """From a row of `results.json`; empty where there is none."""
    numbers = {"return": row.get("return"), **(row.get("outcomes") or {})}
    return _metrics({name: numbers.get(own) for name, own in METRICS.items()})


def _metrics(values: Mapping[str, Any]) -> dict[str, list[float]]:
    """A list of one number each, as for all metrics that are means over episodes."""
    there = {name: x for name, x in values.items() if isinstance(x, int | float)}
    return {name: [float(x)] for name, x in there.items() if math.isfinite(x)}


def _elapsed(path: Path) -> dict[int, float]:
    """Step -> seconds of training, those before the run was stopped and resumed included.

    All seeds of a run train together: it is the time of all of them.
    """
    total, last, found = 0.0, (0, 0.0), {}
    for text in path.read_text().splitlines() if path.is_file() else []:
        try:
            line = json.loads(text)
            now = int(line["step"]), float(line["seconds"])
        except (ValueError, TypeError, KeyError):  # the torn end of a run that is being written
            continue
        if now[0] <= last[0] or now[1] < last[1]:  # another process, which counts from 0 again
            total += last[1]
        found[now[0]], last = total + now[1], now
    return found
