"""Checkpoints on disk: arrays with a digest, tied to the settings and the metrics of their run."""

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from fp3o.files import DamagedFileError, read_regular
from fp3o.runs.atomic import RunError, write_atomically
from fp3o.spec import FORMAT

OLDER = (
    "{path} was written by fp3o format {format}; this version resumes format {ours}: use the "
    "version that wrote it, or load its policies, which still works"
)
NEWER = (
    "{path} was written by a newer fp3o (format {format}); this version reads {ours}: update fp3o"
)

LENGTH = "steps"
"""The setting that may change when a run is resumed."""


class Checkpoint(NamedTuple):
    """A stored state of training."""

    iteration: int
    """Iterations done."""
    cursor: int
    """Length of `metrics.jsonl` in bytes."""
    arrays: dict[str, np.ndarray]
    settings: str = ""
    """Digest of the settings; empty in checkpoints of earlier versions."""
    metrics: str = ""
    """Digest of `metrics.jsonl` up to the cursor; empty in checkpoints of earlier versions."""
    changes: Mapping[str, Any] = {}
    """Hyperparameters that were changed during the run."""


def settings_digest(settings: Mapping[str, Any]) -> str:
    """SHA-256 of all settings but the length of training."""
    kept = {name: value for name, value in settings.items() if name != LENGTH}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def check_format(path: Path, number: Any) -> None:
    """Reject files of another format with a message that says what can be done."""
    if number == FORMAT:
        return
    if not isinstance(number, int):
        raise RunError(f"{path} is damaged: its format is {number!r}")
    text = OLDER if number < FORMAT else NEWER
    raise RunError(text.format(path=path, format=number, ours=FORMAT))


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into the folder."""
    stamp = _stamp(checkpoint)
    stamp |= {"format": str(FORMAT), "digest": arrays_digest(checkpoint.arrays, stamp)}
    path = folder / f"{checkpoint.iteration:09d}.safetensors"
    write_atomically(path, to_bytes(checkpoint.arrays, metadata=stamp))
    return path


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint and verify its digest."""
    data = read_regular(path)
    stamp = _metadata(data)
    check_format(path, int(stamp.pop("format")))
    digest, arrays = stamp.pop("digest"), from_bytes(data)
    if digest != arrays_digest(arrays, stamp):
        raise DamagedFileError("its digest does not match its contents")
    iteration, cursor = int(stamp["iteration"]), int(stamp["cursor"])
    ties = stamp.get("settings", ""), stamp.get("metrics", "")
    return Checkpoint(iteration, cursor, arrays, *ties, json.loads(stamp.get("changes", "{}")))


def _stamp(checkpoint: Checkpoint) -> dict[str, str]:
    """What a checkpoint says about itself, apart from its arrays."""
    entries = {name: str(value) for name, value in checkpoint._asdict().items() if name != "arrays"}
    entries["changes"] = json.dumps(checkpoint.changes) if checkpoint.changes else ""
    return {name: text for name, text in entries.items() if text}


def _metadata(data: bytes) -> dict[str, str]:
    """The metadata in the header of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length]) if length < len(data) else {}
    stamp = header["__metadata__"]
    if not isinstance(stamp, dict):
        raise DamagedFileError("its header is damaged")
    return stamp


def arrays_digest(arrays: Mapping[str, np.ndarray], stamp: Mapping[str, str]) -> str:
    """SHA-256 of the names, types, shapes and values of arrays and of the stamp."""
    total = hashlib.sha256(repr(sorted(stamp.items())).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def checkpoint_paths(folder: Path) -> list[Path]:
    """All checkpoints in a folder, oldest first."""
    files = (path for path in folder.glob("*.safetensors") if path.is_file())
    return sorted(path for path in files if re.fullmatch(r"\d+", path.stem))


def newest_intact(folder: Path, settings: str, metrics: bytes) -> Checkpoint | None:
    """The newest checkpoint that is intact and belongs to these settings and metrics.

    None: there is no checkpoint at all. If none is intact, nothing is changed and a `RunError`
    gives the reasons; if an older one is, the damaged ones are renamed with a warning.
    """
    problems: dict[Path, str] = {}
    for path in reversed(checkpoint_paths(folder)):
        try:
            checkpoint = read_checkpoint(path)
            _check_ties(checkpoint, settings, metrics)
        except (SafetensorError, ValueError, LookupError, TypeError, OSError) as error:
            problems[path] = str(error)[:200]
            continue
        for damaged, problem in problems.items():
            warnings.warn(
                f"checkpoint {damaged} cannot be used ({problem}); the one before it is used",
                stacklevel=2,
            )
            damaged.rename(damaged.with_suffix(".damaged"))
        return checkpoint
    if problems:
        newest, problem = next(iter(problems.items()))
        raise RunError(
            f"none of the {len(problems)} checkpoints of {folder.parent} can be used; the newest, "
            f"{newest.name}: {problem}. {START_OVER.format(path=folder.parent)}"
        )
    return None


START_OVER = (
    "Nothing was changed: restore the files from a copy, or start over with `fp3o resume {path} "
    "--restart`, which keeps the old files in a folder beside the new ones"
)


def _check_ties(checkpoint: Checkpoint, settings: str, metrics: bytes) -> None:
    """Raise unless settings and metrics are those with which the checkpoint was written."""
    if checkpoint.settings and checkpoint.settings != settings:
        raise DamagedFileError("it was written with other settings than those of config.json")
    if len(metrics) < checkpoint.cursor:
        raise DamagedFileError("metrics.jsonl is shorter than when it was written")
    found = hashlib.sha256(metrics[: checkpoint.cursor]).hexdigest()
    if checkpoint.metrics and checkpoint.metrics != found:
        raise DamagedFileError("metrics.jsonl is not the one with which it was written")
