"""The logger for MLflow: a parent run, and a nested run per seed."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fp3o.runs.logger import LoggedRun, TrackedPart, TrackerOptions, tracked_parts

METRICS_PER_REQUEST, PARAMS_PER_REQUEST, LONGEST_PARAM = 1000, 100, 500
"""MLflow's limits on one request, and on the value of a parameter."""

PARENT_TAG, STEP_TAG = "mlflow.parentRunId", "fp3o.step"
"""Tags: the run that a run is nested in, and the last step that was logged."""

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class MLflowOptions(TrackerOptions):
    """Options of MLflow."""

    experiment: str = "fp3o"


class _Tracked(NamedTuple):
    part: TrackedPart
    id: str
    last_step: int
    """A resumed run has the metrics up to this step."""


class MLflow:
    """Runs at MLflow, by a client: the active run of the process is left alone."""

    def __init__(self, run: LoggedRun, options: MLflowOptions):
        from mlflow import (  # pyright: ignore[reportMissingImports]
            MlflowClient,
            entities,
        )

        self._run, self._entities = run, entities
        self._client: Any = MlflowClient()
        known = self._client.get_experiment_by_name(options.experiment)
        self._experiment = (
            known.experiment_id if known else self._client.create_experiment(options.experiment)
        )
        tags, group = dict.fromkeys(options.tags, "true"), options.group or run.path.name
        self._parent: str | None = None
        if options.seeds == "separate":
            self._parent, _ = self._open("parent", group, dict(run.settings), tags)
            tags = {**tags, PARENT_TAG: self._parent}
        self._runs = [
            _Tracked(part, *self._open(part.key, group + part.suffix, part.settings, tags))
            for part in tracked_parts(run, options)
        ]

    def _open(
        self, key: str, name: str, settings: Mapping[str, Any], tags: Mapping[str, str]
    ) -> tuple[str, int]:
        """The id of a run, a new one or the one before, and its last step."""
        if (number := self._run.ids.get(key)) is not None:
            found = self._client.get_run(number)
            self._client.update_run(number, status="RUNNING")
            return number, int(found.data.tags.get(STEP_TAG, -1))
        made = self._client.create_run(self._experiment, tags=dict(tags), run_name=name)
        number = self._run.ids[key] = made.info.run_id
        texts = {name: str(value)[:LONGEST_PARAM] for name, value in settings.items()}
        params = [self._entities.Param(name, text) for name, text in texts.items()]
        for some in _chunks(params, PARAMS_PER_REQUEST):
            self._client.log_batch(number, params=some)
        return number, -1

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Log the metrics at their step."""
        step, now = rows[0]["step"], int(1000 * time.time())
        for part, number, last in self._runs:
            if step <= last:
                continue
            values = part.values(self._run, rows)
            metrics = [self._entities.Metric(*pair, now, step) for pair in values.items()]
            for some in _chunks(metrics, METRICS_PER_REQUEST):
                self._client.log_batch(number, metrics=some)
            self._client.set_tag(number, STEP_TAG, step)

    def video(self, path: Path, seed: int, step: int) -> None:
        """Store a video as an artifact."""
        for part, number, _ in self._runs:
            if seed in part.seeds:
                self._client.log_artifact(number, str(path), "videos")

    def close(self) -> None:
        """Finish the runs."""
        for number in (*(tracked.id for tracked in self._runs), *filter(None, [self._parent])):
            self._client.set_terminated(number)


def _chunks(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    rest = iter(items)
    while some := list(itertools.islice(rest, size)):
        yield some
