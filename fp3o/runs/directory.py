"""The run directory: who may write it, what lies in it, and how nothing saved is ever lost.

| file                  | what it holds                                                          |
|-----------------------|------------------------------------------------------------------------|
| `config.json`         | every setting, versions, commit, device, command                       |
| `metrics.jsonl`       | one line a logged iteration and seed, in order, without clock times    |
| `timing.jsonl`        | seconds since the process began, at each logged iteration              |
| `checkpoints/*`       | everything that training needs to go on; the last few                  |
| `policy/seed-K/best`  | the policy artefact with the best evaluation; `last`: the newest       |
| `results.json`        | the final evaluation                                                   |
| `tensorboard/`        | the metrics again, for TensorBoard                                     |

A file is written beside its place, flushed to the disk and then renamed: a reader sees the old one
or the new one. A checkpoint carries a digest of its contents; one that does not match is passed
over for the one before it.
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

FORMAT = 1
"""Version of the run directory."""


class RunError(RuntimeError):
    """A run directory cannot be used as asked; the message says why and what to do."""


class Checkpoint(NamedTuple):
    """Where training stands: the number of iterations done, the length of `metrics.jsonl`, data."""

    iteration: int
    cursor: int
    arrays: dict[str, np.ndarray]


class RunDirectory:
    """A run on the disk. Reading needs no more than the path; writing needs `lock()`."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = FileLock(self.path / "lock")

    @property
    def metrics(self) -> Path:
        """The metrics' file."""
        return self.path / "metrics.jsonl"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "config.json").is_file()

    def create(self) -> None:
        """Make the directory and become its writer; refuse one in which something lies already."""
        _try_to_write(self.path)
        self._refuse_what_is_there()
        self.lock()
        try:
            self._refuse_what_is_there()  # another process may have come first
        except RunError:
            self.unlock()
            raise

    def _refuse_what_is_there(self) -> None:
        if self.exists():
            raise RunError(
                f"{self.path} already holds a run: go on with it by `fp3o resume {self.path}`, or "
                "choose another directory with --out"
            )
        # Half a file may be left by a process that was killed in its first moment.
        foreign = {p.name for p in self.path.iterdir() if p.suffix != ".part"} - {"lock"}
        if foreign:
            raise RunError(
                f"{self.path} is not empty (it holds {sorted(foreign)[0]!r}) and is no run: choose "
                "an empty or new directory with --out"
            )

    def lock(self) -> None:
        """Become the only writer; the lock goes with the process, however it ends."""
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
        """Let others write."""
        self._lock.release()

    def read_json(self, name: str) -> dict[str, Any]:
        """One of the JSON files."""
        path = self.path / name
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            raise RunError(_no_run(self.path, name)) from None
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read: {error}") from error

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace one of the JSON files."""
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_atomically(self.path / name, text.encode())

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add lines to a file; its length afterwards."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        with (self.path / name).open("ab") as file:
            file.write(lines.encode())
            return file.tell()

    def rewind(self, name: str, cursor: int) -> None:
        """Forget what was added after a checkpoint: it will be added again, the same."""
        path = self.path / name
        if not path.exists() or path.stat().st_size < cursor:
            raise RunError(
                f"{path} is shorter than when the checkpoint was written: it was changed by "
                "something else, and the run cannot go on exactly"
            )
        os.truncate(path, cursor)

    def save(self, checkpoint: Checkpoint, keep: int) -> Path:
        """Write a checkpoint; afterwards remove all but the last `keep`."""
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        where = {"iteration": str(checkpoint.iteration), "cursor": str(checkpoint.cursor)}
        stamp = {"format": str(FORMAT), **where, "digest": checksum(checkpoint.arrays, where)}
        # What the cursor counts must be on the disk before the checkpoint that counts it.
        _flush(self.metrics)
        path = folder / f"{checkpoint.iteration:09d}.safetensors"
        write_atomically(path, to_bytes(checkpoint.arrays, metadata=stamp))
        for old in self.checkpoints()[:-keep]:
            old.unlink()
        return path

    def checkpoints(self) -> list[Path]:
        """All checkpoints, oldest first."""
        found = (self.path / "checkpoints").glob("*.safetensors")
        return sorted(path for path in found if re.fullmatch(r"\d+", path.stem))

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; a damaged one is set aside with a warning.

        None where there was none. If there were some and all are damaged, that is an error.
        """
        found = self.checkpoints()
        for path in reversed(found):
            try:
                return read_checkpoint(path)
            except (SafetensorError, ValueError, KeyError) as error:
                warnings.warn(
                    f"checkpoint {path} is damaged ({error}); the one before it is used",
                    stacklevel=2,
                )
                path.rename(path.with_suffix(".damaged"))
        if found:
            raise RunError(
                f"all {len(found)} checkpoints of {self.path} are damaged, nothing was changed "
                "but their names: train again in another directory"
            )
        return None


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint whose digest matches; anything else raises."""
    with safe_open(path, framework="numpy") as file:
        stamp = file.metadata() or {}
        if stamp["format"] != str(FORMAT):
            raise RunError(f"{path} has format {stamp['format']}, this fp3o knows {FORMAT}")
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    where = {name: stamp[name] for name in ("iteration", "cursor")}
    if stamp["digest"] != checksum(arrays, where):
        raise ValueError("its digest does not match its contents")
    return Checkpoint(int(where["iteration"]), int(where["cursor"]), arrays)


def checksum(arrays: Mapping[str, np.ndarray], where: Mapping[str, str]) -> str:
    """SHA-256 of names, types, shapes, numbers and the place in the run."""
    total = hashlib.sha256(repr(sorted(where.items())).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: it holds the old content or the new, never a part."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    _flush(path.parent)


def _flush(path: Path) -> None:
    """Ask the disk to keep what was written (a directory: what was renamed in it)."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open directories; renames there are durable enough
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _try_to_write(path: Path) -> None:
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
        return f"the run {path} is not finished: go on with `fp3o resume {path}`"
    return f"{path} is no run directory: it has no {name}{inside}"
