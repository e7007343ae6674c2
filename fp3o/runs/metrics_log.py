"""Rows of metrics, one per seed and logged iteration: in `metrics.jsonl` and in the loggers."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.runs.directory import RunDirectory
from fp3o.runs.logger import LoggedRun, Logger
from fp3o.runs.loggers import Loggers, open_loggers
from fp3o.runs.run_config import RunConfig
from fp3o.runs.seed_axis import by_seed

TOTALS = ("env_restarts", "env_lost_steps")
"""Failure counts that are not reasons for a failure."""

Row = dict[str, Any]


class MetricsLog:
    """Writes rows of metrics; `cursor` is the length of `metrics.jsonl` so far."""

    def __init__(self, directory: RunDirectory, chosen: Loggers):
        self.cursor = 0
        self._digest = hashlib.sha256()
        self._directory, self._chosen = directory, chosen
        self._loggers: list[Logger] = []

    def rewind(self, cursor: int) -> Row:
        """Drop the rows written after a checkpoint; returns the last row that is left."""
        kept = self._directory.rewind(cursor)
        self.cursor, self._digest = len(kept), hashlib.sha256(kept)
        rows = kept.splitlines()
        return json.loads(rows[-1]) if rows else {}

    @property
    def digest(self) -> str:
        """SHA-256 of `metrics.jsonl` so far."""
        return self._digest.hexdigest()

    def open(self, config: RunConfig, first_step: int) -> None:
        """Open the loggers for rows from `first_step` on."""
        agents = config.task_info.spec(config.variant).agent_names
        run = LoggedRun(self._directory.path, config.settings, agents, first_step)
        self._loggers = open_loggers(self._chosen, self._directory, run)

    def write(self, rows: Sequence[Row]) -> None:
        """Append one row per seed; a number that is not finite becomes null."""
        rows = finite_json(rows)
        written = self._directory.append("metrics.jsonl", rows)
        self.cursor += len(written)
        self._digest.update(written)
        for logger in self._loggers:
            logger.write(rows)

    def video(self, path: Path, seed: int, step: int) -> None:
        """Send a video of a seed's policy to the loggers."""
        for logger in self._loggers:
            logger.video(path, seed, step)

    def close(self) -> None:
        """Close the loggers."""
        for logger in self._loggers:
            logger.close()


class WorkerFailures:
    """Failures of worker processes since the run started, over all its resumptions."""

    def __init__(self, env: VecEnv):
        self._env = env
        self._before: dict[str, int] = {}
        self._reported = self.counts()

    def restore(self, row: Mapping[str, Any]) -> None:
        """Continue from the counts of the last logged row."""
        self._before = {name: row[name] for name in self._env.failure_counts() if name in row}
        self._reported = self.counts()

    def counts(self) -> dict[str, int]:
        """Failures so far, by metric name; empty for environments without workers."""
        now = self._env.failure_counts()
        return {name: self._before.get(name, 0) + number for name, number in now.items()}

    def news(self, step: int) -> str | None:
        """A sentence about the workers replaced since the last call; None if there were none."""
        old, self._reported = self._reported, self.counts()
        new = {name: number - old[name] for name, number in self._reported.items()}
        if not new.get("env_restarts"):
            return None
        reasons = [
            f"{number} {name.removeprefix('env_')}"
            for name, number in new.items()
            if number and name not in TOTALS
        ]
        return (
            f"after step {step}, workers replaced: {new['env_restarts']} ({', '.join(reasons)}); "
            f"{new['env_lost_steps']} steps of their episodes were lost"
        )


def metric_rows(metrics: Mapping[str, Any], seeds: int) -> list[Row]:
    """The metrics of an iteration as JSON values, one row per seed."""
    arrays = {name: by_seed(x, seeds) for name, x in metrics.items()}
    return [{name: json_value(x[k]) for name, x in arrays.items()} for k in range(seeds)]


def json_value(x: Any) -> Any:
    """Numbers for JSON: the shortest text that is the same float32, null where not finite."""
    array = np.asarray(x)
    if array.ndim:
        return [json_value(part) for part in array]
    if array.dtype.kind != "f":
        return array.item()
    return float(str(array[()])) if np.isfinite(array) else None


def finite_json(content: Any) -> Any:
    """JSON values with None in place of every number that is not finite."""
    if isinstance(content, Mapping):
        return {name: finite_json(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite_json(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
