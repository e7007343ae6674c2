"""A run directory with a row of metrics, and small checkpoints for it."""

import hashlib
from pathlib import Path

import numpy as np

from fp3o.runs.checkpoint_files import Checkpoint, settings_digest
from fp3o.runs.directory import RunDirectory

SETTINGS = {"seed": 3, "gamma": 0.9, "steps": 100}


def directory(path: Path) -> RunDirectory:
    run = RunDirectory(path / "run")
    run.create()
    run.write_json("config.json", {"format": 2, "settings": SETTINGS})
    run.append("metrics.jsonl", [{"step": 1}])
    return run


def arrays(number: float) -> dict[str, np.ndarray]:
    return {"weight": np.full((3, 2), number, np.float32), "flag": np.array([True, False])}


def tied(run: RunDirectory, iteration: int) -> Path:
    """A checkpoint that carries the digests of settings and metrics."""
    rows = run.metrics.read_bytes()
    digests = settings_digest(SETTINGS), hashlib.sha256(rows).hexdigest()
    return run.save(Checkpoint(iteration, len(rows), arrays(iteration), *digests), keep=3)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their paths."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
