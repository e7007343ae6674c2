"""The files of a run that training writes: metrics, times, checkpoints, policies, results."""

from collections.abc import Mapping, Sequence
from typing import Any

from fp3o.learning.setup import Setup
from fp3o.runs.checkpoint import TrainCheckpoint, to_arrays
from fp3o.runs.checkpoint_files import LENGTH, Checkpoint, settings_digest
from fp3o.runs.directory import RunDirectory
from fp3o.runs.loggers import Loggers
from fp3o.runs.metrics_log import MetricsLog, Row
from fp3o.runs.provenance import provenance_record
from fp3o.runs.results import write_policies
from fp3o.runs.run_config import RunConfig
from fp3o.runs.seed_axis import by_seed
from fp3o.runs.training_videos import TrainingVideos
from fp3o.spec import FORMAT


class NoRecorder:
    """Writes nothing: for processes that train along with the one that writes."""

    path = ""
    """The run directory, for messages."""
    has_results = False
    """Whether the final evaluation is stored."""

    @property
    def sources(self) -> Sequence[Mapping[str, Any]]:
        """The saved policies from which agents start, as recorded when the run was created."""
        return ()

    def newest(self) -> Checkpoint | None:
        """The newest intact checkpoint; None if there is none."""
        return None

    def rewind(self, cursor: int) -> Row:
        """Drop the metrics written after a checkpoint; returns the last row that is left."""
        return {}

    def open(self, step: int) -> None:
        """Open the loggers, for rows after this step."""

    def discard_results(self) -> None:
        """Delete the results of an earlier, shorter training."""

    def write_rows(self, rows: Sequence[Row]) -> None:
        """Append rows of metrics."""

    def write_time(self, step: int, seconds: float) -> None:
        """Record the seconds since the process started."""

    def save_video(self, step: int, actor: Any) -> None:
        """Render the policy of the first seed; `actor` has the parameters of all seeds."""

    def save_checkpoint(
        self, iteration: int, checkpoint: TrainCheckpoint, changes: Mapping[str, Any]
    ) -> None:
        """Write a checkpoint, with the hyperparameters that were changed."""

    def save_policies(self, step: int, checkpoint: TrainCheckpoint) -> None:
        """Write the current policies."""

    def finish(self, step: int, checkpoint: TrainCheckpoint, results: Mapping[str, Any]) -> None:
        """Write the final evaluation, alone and in the policies."""

    def note_resumption(self, step: int) -> None:
        """Record in config.json the machine, versions and length with which the run continues."""

    def shorten(self, steps: int) -> None:
        """Record in config.json that training was stopped after these steps, as its length."""

    def close(self) -> None:
        """Close the loggers."""


class RunRecorder(NoRecorder):
    """Writes the files of a run into its directory, which must be locked."""

    def __init__(self, config: RunConfig, directory: RunDirectory, setup: Setup, loggers: Loggers):
        self.config, self.directory, self.path = config, directory, str(directory.path)
        self._setup = setup
        self._settings = settings_digest(directory.read_settings())
        self._log = MetricsLog(directory, loggers)
        self._videos = TrainingVideos(directory, setup)

    @property
    def has_results(self) -> bool:
        """Whether the final evaluation is stored."""
        return (self.directory.path / "results.json").exists()

    @property
    def sources(self) -> Sequence[Mapping[str, Any]]:
        """The saved policies from which agents start, as recorded when the run was created."""
        return self.directory.read_json("config.json").get("sources", ())

    def newest(self) -> Checkpoint | None:
        """The newest intact checkpoint; None if there is none."""
        return self.directory.newest()

    def rewind(self, cursor: int) -> Row:
        """Drop the metrics written after a checkpoint; returns the last row that is left."""
        return self._log.rewind(cursor)

    def open(self, step: int) -> None:
        """Open the loggers, for rows after this step."""
        self._log.open(self.config, step + 1 if step else 0)

    def discard_results(self) -> None:
        """Delete the results of an earlier, shorter training."""
        for outdated in ("results.json", "report.html"):
            (self.directory.path / outdated).unlink(missing_ok=True)

    def write_rows(self, rows: Sequence[Row]) -> None:
        """Append rows of metrics."""
        self._log.write(rows)

    def write_time(self, step: int, seconds: float) -> None:
        """Record the seconds since the process started."""
        self.directory.append("timing.jsonl", [{"step": step, "seconds": seconds}])

    def save_video(self, step: int, actor: Any) -> None:
        """Render the policy of the first seed; `actor` has the parameters of all seeds."""
        first = [by_seed(x, self.config.seeds)[0] for x in actor]
        if path := self._videos.save(step, tuple(first)):
            self._log.video(path, self.config.seed, step)

    def save_checkpoint(
        self, iteration: int, checkpoint: TrainCheckpoint, changes: Mapping[str, Any]
    ) -> None:
        """Write a checkpoint, with the hyperparameters that were changed."""
        arrays, log = to_arrays(checkpoint), self._log
        stored = Checkpoint(iteration, log.cursor, arrays, self._settings, log.digest, changes)
        self.directory.save(stored, self.config.keep_checkpoints)

    def save_policies(self, step: int, checkpoint: TrainCheckpoint) -> None:
        """Write the current policies."""
        write_policies(self.directory, self._setup, checkpoint, step)

    def finish(self, step: int, checkpoint: TrainCheckpoint, results: Mapping[str, Any]) -> None:
        """Write the final evaluation, alone and in the policies."""
        evaluations = {which: results[which] for which in ("last", "best")}
        write_policies(self.directory, self._setup, checkpoint, step, evaluations)
        content = {"format": FORMAT, "steps": step, **results}
        self.directory.write_json("results.json", content)

    def note_resumption(self, step: int) -> None:
        """Record in config.json the machine, versions and length with which the run continues."""
        record = self.directory.read_json("config.json")
        now = provenance_record(self.config.settings, record["agents"])
        here = {name: now[name] for name in ("versions", "commit", "device", "created")}
        resumed = [*record.get("resumed", []), {"step": step, **here}]
        self._write_length({**record, "resumed": resumed}, now["settings"][LENGTH])

    def shorten(self, steps: int) -> None:
        """Record in config.json that training was stopped after these steps, as its length."""
        record = self.directory.read_json("config.json")
        stopped = {"step": steps, "planned": record["settings"][LENGTH]}
        self._write_length({**record, "stopped": stopped}, steps)

    def _write_length(self, record: Mapping[str, Any], steps: int) -> None:
        # Only the length changes: the checkpoints were written with the other settings as they are.
        content = {**record, "settings": {**record["settings"], LENGTH: steps}}
        self.directory.write_json("config.json", content)

    def close(self) -> None:
        """Close the loggers."""
        self._log.close()
