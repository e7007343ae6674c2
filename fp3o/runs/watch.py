"""Progress of a run that other processes train, read from the metrics that it writes."""

import json
import time
from pathlib import Path

from fp3o.runs.progress import Display, TrainingStatus
from fp3o.runs.run_config import RunConfig

TAIL_BYTES = 100_000
"""Bytes at the end of `metrics.jsonl` that are read."""

LOOK_SECONDS = 2.0
"""Seconds between two looks."""


class RunWatch:
    """Shows the progress of a run whenever it has changed."""

    def __init__(self, path: Path, config: RunConfig, display: Display):
        self._path, self._display, self._seeds = path / "metrics.jsonl", display, config.seeds
        self._total = config.total_steps
        self._title = f"{config.task} · {config.settings['algorithm']} · {config.learner.sharing}"
        self._status: TrainingStatus | None = None
        self._next = 0.0

    def look(self) -> None:
        """Read the newest metrics and show them, if it is time."""
        if time.monotonic() < self._next or not self._path.exists():
            return
        self._next = time.monotonic() + LOOK_SECONDS
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().splitlines()[-self._seeds :]
        try:
            rows = [json.loads(line) for line in lines]
        except ValueError:  # a file that is being replaced
            return
        if len(rows) == self._seeds:
            self._show(rows[-1]["step"], rows)

    def _show(self, step: int, rows: list[dict[str, object]]) -> None:
        if self._status is None:  # the rate counts from the first look
            self._status = TrainingStatus(self._title, self._total, step, self._seeds)
        elif step > self._status.done:
            self._status.advance(step, rows)
            self._display.update(self._status)
