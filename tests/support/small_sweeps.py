"""Sweeps of tiny runs on the probe `credit`, and what their folders contain."""

import json
from pathlib import Path
from typing import Any

import fp3o
from fp3o.experiments.sweep.launch import SweepResult
from fp3o.experiments.sweep.settings import SearchOptions, SweepSettings
from fp3o.experiments.sweep.space import parse_search
from fp3o.runs.run_config import RunConfig

TRAINING: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 4, "rollout": 6, "hidden": (8,), "epochs": 1,
    "steps": 24 * 6, "eval_episodes": 4,
}  # fmt: skip
"""Six iterations; the shape of `small_runs.SMALL`."""
SEARCH = {"actor_lr": (1e-4, 1e-1, "log"), "clip_range": (0.05, 0.4)}
OPTIONS: dict[str, Any] = {"trials": 6, "parallel": 3, "evaluations": 3, "episodes": 8}
TASK = "probe/credit"


def small_sweep(out: Path, **changes: Any) -> SweepResult:
    whole = {"search": SEARCH, **TRAINING, **OPTIONS, "progress": "quiet", **changes}
    return fp3o.sweep(TASK, out=out, **whole)


def small_settings(search: Any = None, **options: Any) -> SweepSettings:
    base = RunConfig.from_preset(TASK).with_settings(TRAINING)
    space = parse_search(search or SEARCH)
    return SweepSettings(base, space, SearchOptions(**{**OPTIONS, **options})).check()


def trial_facts(out: Path) -> list[dict[str, Any]]:
    """All trials of a folder without their durations."""
    rows = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    return [{name: x for name, x in row.items() if name != "seconds"} for row in rows]
