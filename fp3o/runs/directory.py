"""The run directory: its files, its lock, and writes that survive a crash. Needs no JAX.

| file                  | contents                                                               |
|-----------------------|------------------------------------------------------------------------|
| `config.json`         | all settings, versions, commit, device, command                        |
| `metrics.jsonl`       | one row per seed and logged iteration, in order, without clock times   |
| `timing.jsonl`        | seconds since the process started, per logged iteration                |
| `checkpoints/*`       | the last few states of training, for an exact resume                   |
| `policy/seed-K/best`  | the policy with the best evaluation; `last`: the newest one            |
| `results.json`        | the final evaluation                                                   |
| `tensorboard/`        | the metrics for TensorBoard                                            |
| `loggers.json`        | the loggers, and the ids of their runs at W&B and MLflow               |
| `videos/*.gif`        | videos of the policy during training                                   |

A file is written under a temporary name, flushed to disk and then renamed, so that a reader sees
either the old content or the new one. JSON files carry a checksum of their content. A checkpoint
carries a digest of its arrays, of the settings and of the metrics so far; where one of them does
not match, the checkpoint before it is used, and if there is none, nothing is changed.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fp3o.files import (
    CHECKSUM,
    DamagedFileError,
    flush,
    parse_document,
    read_regular,
    with_checksum,
)
from fp3o.runs.atomic import (
    PART,
    RunError,
    make_writable,
    refuse_links,
    write_atomically,
    write_errors,
)
from fp3o.runs.checkpoint_files import (
    START_OVER,
    Checkpoint,
    check_format,
    checkpoint_paths,
    newest_intact,
    settings_digest,
    write_checkpoint,
)
from fp3o.runs.lock import DirectoryLock

LOCK_FILE = "lock"
"""File of the lock where directories cannot be locked."""


RESTORE_CONFIG = (
    "Restore it from a copy: the settings of a run cannot change, apart from `fp3o resume --steps`"
)


class DamagedRunError(RunError):
    """A file of a run is damaged or was edited."""


class RunDirectory:
    """The files of a run; writing needs `lock()`, reading only the path."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = DirectoryLock(self.path)

    @property
    def metrics(self) -> Path:
        """Path of `metrics.jsonl`."""
        return self.path / "metrics.jsonl"

    def exists(self) -> bool:
        """Whether a run was started here."""
        return os.path.lexists(self.path / "config.json")

    def create(self) -> None:
        """Create and lock a new directory; one that is not empty is rejected."""
        make_writable(self.path)
        self._refuse_contents()
        self.lock()
        try:
            self._refuse_contents()  # another process may have created it first
        except RunError:
            self.unlock()
            raise

    def _refuse_contents(self) -> None:
        if self.exists():
            raise RunError(
                f"{self.path} already holds a run: continue with `fp3o resume {self.path}`, or "
                "choose another directory with --out"
            )
        foreign = {entry.name for entry in self.path.iterdir()} - {LOCK_FILE}
        # A process that was killed at once may have left a partial file.
        foreign = {name for name in foreign if not name.endswith(PART)}
        if foreign:
            raise RunError(
                f"{self.path} is not empty (it holds {sorted(foreign)[0]!r}) and is not a run: "
                "choose an empty or new directory with --out"
            )

    def lock(self) -> None:
        """Lock the directory for writing; the lock is released when the process ends."""
        self._lock.acquire()
        try:
            refuse_links(self.path)
        except RunError:
            self.unlock()
            raise
        # Left by processes that were killed while they wrote.
        for folder in (self.path, self.path / "checkpoints"):
            for part in folder.glob(f".*{PART}"):
                part.unlink(missing_ok=True)

    def unlock(self) -> None:
        """Release the lock."""
        self._lock.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write to the locked directory: disk errors are explained, the lock is released."""
        try:
            with write_errors(self.path):
                yield
        except RunError as error:
            if isinstance(error.__cause__, OSError):
                self.check_in_place()
            raise
        finally:
            self.unlock()

    def check_in_place(self) -> None:
        """Raise if the directory was moved or deleted since it was locked."""
        self._lock.check()

    def read_json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file; its checksum must match."""
        path = self.path / name
        try:
            document = parse_document(read_regular(path, follow=True))
        except FileNotFoundError:
            raise RunError(_no_run(self.path, name)) from None
        except DamagedFileError as error:
            raise DamagedRunError(f"{path} {error}") from None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror or error}") from error
        document.pop(CHECKSUM, None)
        return document

    def read_settings(self) -> dict[str, Any]:
        """The settings in `config.json`, which must have the current format."""
        path = self.path / "config.json"
        try:
            record = self.read_json("config.json")
        except DamagedRunError as error:
            raise DamagedRunError(f"{error}. {RESTORE_CONFIG}") from None
        check_format(path, record.get("format"))
        if not isinstance(record.get("settings"), dict):
            raise DamagedRunError(f"{path} is damaged: it holds no settings. {RESTORE_CONFIG}")
        return record["settings"]

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a JSON file; a checksum is added."""
        self.check_in_place()
        text = json.dumps(with_checksum(content), indent=2, allow_nan=False) + "\n"
        write_atomically(self.path / name, text.encode())

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
        """Append rows to a file; returns what was written."""
        self.check_in_place()
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
        with (self.path / name).open("ab") as file:
            file.write(lines)
        return lines

    def save(self, checkpoint: Checkpoint, keep: int) -> Path:
        """Write a checkpoint, then remove all but the last `keep`."""
        self.check_in_place()
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        # The rows that the cursor counts must be on disk before the checkpoint.
        flush(self.metrics)
        path = write_checkpoint(folder, checkpoint)
        for old in self.checkpoints()[:-keep]:
            old.unlink()
        return path

    def checkpoints(self) -> list[Path]:
        """All checkpoints, oldest first."""
        return checkpoint_paths(self.path / "checkpoints")

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that can be continued from; None if training has not begun.

        If there was one and there is none now, it is an error: a run never starts over by itself.
        """
        metrics = self._read_metrics()
        digest = settings_digest(self.read_settings())
        checkpoint = newest_intact(self.path / "checkpoints", digest, metrics)
        if checkpoint is None and (trace := self._trace_of_training()):
            raise RunError(
                f"{self.path} has no checkpoint, but it was trained before (it holds {trace}). "
                + START_OVER.format(path=self.path)
            )
        return checkpoint

    def _read_metrics(self) -> bytes:
        try:
            return read_regular(self.metrics, follow=True)
        except FileNotFoundError:
            return b""
        except (DamagedFileError, OSError) as error:
            raise RunError(f"{self.metrics} cannot be read: {error}") from None

    def _trace_of_training(self) -> str | None:
        """A file that exists only after the first checkpoint."""
        names = ("results.json", "timing.jsonl", "policy", "checkpoints/*.damaged")
        found = (path for name in names for path in self.path.glob(name))
        return next((path.name for path in found), None)

    def rewind(self, cursor: int) -> bytes:
        """Drop the metrics written after a checkpoint; returns the rest.

        Training writes the same rows again.
        """
        if self.metrics.exists():
            os.truncate(self.metrics, cursor)
        return self._read_metrics()


def _no_run(path: Path, name: str) -> str:
    if not path.exists():
        return f"there is no directory {path}"
    runs = [str(found.parent) for found in sorted(path.glob("*/config.json"))[:5]]
    inside = f"; runs inside it: {', '.join(runs)}" if runs else ""
    if (path / "config.json").exists():
        return f"the run {path} is not finished: continue with `fp3o resume {path}`"
    return f"{path} is not a run directory: it has no {name}{inside}"
