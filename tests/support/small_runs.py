"""Settings of small runs, and the metrics that a run writes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fp3o.training import divergence, program

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 4, "rollout": 6, "hidden": (8,), "epochs": 1,
    "steps": 24 * 6, "eval_every": 2, "eval_episodes": 4, "final_episodes": 8,
    "progress": "quiet",
}  # fmt: skip
TASK = "probe/credit"


def read_metrics(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def worker_losses(row: Mapping[str, Any]) -> dict[str, int]:
    """Counts of failed workers in a line of metrics or in the results."""
    return {name: number for name, number in row.items() if name.startswith("env_")}


def diverge_once(monkeypatch: pytest.MonkeyPatch, part: str, iteration: int) -> None:
    """Let a part of the last seed be infinite after an iteration of this process."""
    real, done = program.refuse_divergence, []

    def spoiled(sizes: Any, *rest: Any) -> None:
        done.append(1)
        sizes = np.array(sizes)
        if len(done) == iteration:
            sizes[-1, [*divergence.CHECKED].index(part)] = np.inf
        real(sizes, *rest)

    monkeypatch.setattr(program, "refuse_divergence", spoiled)
