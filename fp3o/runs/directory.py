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

A file is written under a temporary name, flushed to disk and then renamed, so that a reader sees
either the old content or the new one. A checkpoint carries a digest of its contents; where it does
not match, the checkpoint before it is used.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from fp3o.runs.atomic import RunError, flush, write_atomically
from fp3o.spec import FORMAT

FORMAT_1 = (
    "{path} was written by fp3o format {format}; this version resumes format {ours}: use the "
    "version that wrote it, or load its policies, which still works"
)
NEWER = (
    "{path} was written by a newer fp3o (format {format}); this version reads {ours}: update fp3o"
)


class Checkpoint(NamedTuple):
    """A stored state of training."""

    iteration: int
    """Iterations done."""
    cursor: int
    """Length of `metrics.jsonl` in bytes."""
    arrays: dict[str, np.ndarray]


class RunDirectory:
    """The files of a run; writing needs `lock()`, reading only the path."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = FileLock(self.path / "lock")

    @property
    def metrics(self) -> Path:
        """Path of `metrics.jsonl`."""
        return self.path / "metrics.jsonl"

    def exists(self) -> bool:
        """Whether a run was started here."""
        return (self.path / "config.json").is_file()

    def create(self) -> None:
        """Create and lock a new directory; one that is not empty is rejected."""
        _make_writable(self.path)
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
        # A process that was killed at once may have left a partial file.
        foreign = {p.name for p in self.path.iterdir() if p.suffix != ".part"} - {"lock"}
        if foreign:
            raise RunError(
                f"{self.path} is not empty (it holds {sorted(foreign)[0]!r}) and is not a run: "
                "choose an empty or new directory with --out"
            )

    def lock(self) -> None:
        """Lock the directory for writing; the lock is released when the process ends."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(
                f"another process is writing to {self.path}: wait for it, or choose another "
                "directory with --out"
            ) from None
        except OSError as error:
            raise RunError(f"cannot write to {self.path}: {error.strerror}") from error

    def unlock(self) -> None:
        """Release the lock."""
        self._lock.release()

    def read_json(self, name: str) -> dict[str, Any]:
        """The content of a JSON file."""
        path = self.path / name
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            raise RunError(_no_run(self.path, name)) from None
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read: {error}") from error

    def read_settings(self) -> dict[str, Any]:
        """The settings in `config.json`, which must have the current format."""
        record, path = self.read_json("config.json"), self.path / "config.json"
        check_format(path, record.get("format"))
        if not isinstance(record.get("settings"), dict):
            raise RunError(f"{path} is damaged: it holds no settings")
        return record["settings"]

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a JSON file."""
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_atomically(self.path / name, text.encode())

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """Append rows to a file; returns its length afterwards."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        with (self.path / name).open("ab") as file:
            file.write(lines.encode())
            return file.tell()

    def rewind(self, name: str, cursor: int) -> None:
        """Drop the rows written after a checkpoint; training writes the same ones again."""
        path = self.path / name
        if not path.exists() or path.stat().st_size < cursor:
            raise RunError(
                f"{path} is shorter than when the checkpoint was written: it was changed by "
                "something else, and the run cannot be resumed exactly"
            )
        os.truncate(path, cursor)

    def save(self, checkpoint: Checkpoint, keep: int) -> Path:
        """Write a checkpoint, then remove all but the last `keep`."""
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        where = {"iteration": str(checkpoint.iteration), "cursor": str(checkpoint.cursor)}
        stamp = {"format": str(FORMAT), **where, "digest": arrays_digest(checkpoint.arrays, where)}
        # The rows that the cursor counts must be on disk before the checkpoint.
        flush(self.metrics)
        path = folder / f"{checkpoint.iteration:09d}.safetensors"
        write_atomically(path, to_bytes(checkpoint.arrays, metadata=stamp))
        for old in self.checkpoints()[:-keep]:
            old.unlink()
        return path

    def checkpoints(self) -> list[Path]:
        """All checkpoints, oldest first."""
        files = (self.path / "checkpoints").glob("*.safetensors")
        return sorted(path for path in files if re.fullmatch(r"\d+", path.stem))

    def newest(self) -> Checkpoint | None:
        """The newest intact checkpoint; None where there is no checkpoint.

        A damaged one is renamed with a warning; it is an error if all are damaged.
        """
        paths = self.checkpoints()
        for path in reversed(paths):
            try:
                return read_checkpoint(path)
            except (SafetensorError, ValueError, KeyError) as error:
                warnings.warn(
                    f"checkpoint {path} is damaged ({error}); the one before it is used",
                    stacklevel=2,
                )
                path.rename(path.with_suffix(".damaged"))
        if paths:
            raise RunError(
                f"all {len(paths)} checkpoints of {self.path} are damaged (they were renamed, "
                "nothing was deleted): train again in another directory"
            )
        return None


def check_format(path: Path, number: Any) -> None:
    """Reject files of another format with a message that says what can be done."""
    if number == FORMAT:
        return
    if not isinstance(number, int):
        raise RunError(f"{path} is damaged: its format is {number!r}")
    text = FORMAT_1 if number < FORMAT else NEWER
    raise RunError(text.format(path=path, format=number, ours=FORMAT))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint and verify its digest."""
    with safe_open(path, framework="numpy") as file:
        stamp = file.metadata() or {}
        check_format(path, int(stamp["format"]))
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    where = {name: stamp[name] for name in ("iteration", "cursor")}
    if stamp["digest"] != arrays_digest(arrays, where):
        raise ValueError("its digest does not match its contents")
    return Checkpoint(int(where["iteration"]), int(where["cursor"]), arrays)


def arrays_digest(arrays: Mapping[str, np.ndarray], where: Mapping[str, str]) -> str:
    """SHA-256 of the names, types, shapes and values of arrays and of the place in the run."""
    total = hashlib.sha256(repr(sorted(where.items())).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _make_writable(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "permission denied")
    except OSError as error:
        raise RunError(
            f"cannot write to {path}: {error.strerror}. Choose another directory with --out"
        ) from error


def _no_run(path: Path, name: str) -> str:
    if not path.exists():
        return f"there is no directory {path}"
    runs = [str(found.parent) for found in sorted(path.glob("*/config.json"))[:5]]
    inside = f"; runs inside it: {', '.join(runs)}" if runs else ""
    if (path / "config.json").exists():
        return f"the run {path} is not finished: continue with `fp3o resume {path}`"
    return f"{path} is not a run directory: it has no {name}{inside}"
