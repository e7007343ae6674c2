"""The run directory: saved state survives interruptions, damage and full disks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.runs.atomic import RunError, write_atomically
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.directory import Checkpoint, RunDirectory, read_checkpoint


def directory(path: Path) -> RunDirectory:
    run = RunDirectory(path / "run")
    run.create()
    run.write_json("config.json", {"format": 2})
    run.append("metrics.jsonl", [{"step": 1}])
    return run


def arrays(number: float) -> dict[str, np.ndarray]:
    return {"weight": np.full((3, 2), number, np.float32), "flag": np.array([True, False])}


def test_trees_round_trip() -> None:
    """Random keys, numbers of all kinds and host arrays, bit for bit; other shapes are rejected."""
    tree = {
        "key": jax.random.split(jax.random.key(3), 2),
        "x": (jnp.arange(3), jnp.ones((2, 2), bool)),
        "host": np.array([1.0 + 1e-12]),
    }
    back = from_arrays(tree, to_arrays(tree))
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert (jax.random.key_data(back["key"]) == jax.random.key_data(tree["key"])).all()
    assert back["host"].dtype == np.float64
    assert back["host"][0] == tree["host"][0]
    changed = to_arrays(tree)
    changed["['x'][0]"] = np.arange(4)
    with pytest.raises(RunError, match="does not fit the settings"):
        from_arrays(tree, changed)


def test_the_last_few_are_kept(tmp_path: Path) -> None:
    """Old checkpoints are removed, the newest is read."""
    run = directory(tmp_path)
    for iteration in range(1, 6):
        run.save(Checkpoint(iteration, 7, arrays(iteration)), keep=2)
    assert [path.stem for path in run.checkpoints()] == ["000000004", "000000005"]
    newest = run.newest()
    assert newest is not None
    assert (newest.iteration, newest.cursor) == (5, 7)
    assert newest.arrays["weight"][0, 0] == 5


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty", "header", "digest"])
def test_damaged_checkpoints_are_skipped(tmp_path: Path, damage: str) -> None:
    """The one before is used, with a warning that names the file."""
    run = directory(tmp_path)
    run.save(Checkpoint(1, 7, arrays(1)), keep=3)
    path = run.save(Checkpoint(2, 7, arrays(2)), keep=3)
    whole = path.read_bytes()
    last = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes(
        {
            "torn": whole[: len(whole) // 2],
            "flipped": last,
            "empty": b"",
            "header": (2**40).to_bytes(8, "little") + whole[8:],
            "digest": whole.replace(b'"iteration":"2"', b'"iteration":"9"'),
        }[damage]
    )
    assert path.read_bytes() != whole
    with pytest.warns(UserWarning, match=r"000000002.safetensors is damaged"):
        newest = run.newest()
    assert newest is not None
    assert newest.iteration == 1


def test_no_intact_checkpoint(tmp_path: Path) -> None:
    """It is not an error if there is no checkpoint yet, but it is one if all are damaged."""
    run = directory(tmp_path)
    assert run.newest() is None
    run.save(Checkpoint(1, 7, arrays(1)), keep=3).write_bytes(b"")
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(RunError, match="all 1 check"):
        run.newest()


def test_metrics_are_rewound(tmp_path: Path) -> None:
    """Lines after the checkpoint are removed; a file that lost lines is rejected."""
    run = directory(tmp_path)
    cursor = run.append("metrics.jsonl", [{"step": 2}])
    run.append("metrics.jsonl", [{"step": 3}])
    run.rewind("metrics.jsonl", cursor)
    assert [json.loads(line)["step"] for line in run.metrics.read_text().splitlines()] == [1, 2]
    with pytest.raises(RunError, match="shorter than"):
        run.rewind("metrics.jsonl", cursor + 1)


def test_one_writer(tmp_path: Path) -> None:
    """A second process cannot write while the first one runs, but can afterwards."""
    run = directory(tmp_path)
    code = (
        "import sys; from fp3o.runs.directory import RunDirectory, RunError\n"
        "try: RunDirectory(sys.argv[1]).lock()\n"
        "except RunError as error: print(error)"
    )

    def ask() -> str:
        words = [sys.executable, "-c", code, str(run.path)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert "another process is writing" in ask()
    run.unlock()
    assert ask() == ""


def test_directories_in_use_are_rejected(tmp_path: Path) -> None:
    """Neither a run nor anything else is overwritten; a file is not a directory."""
    run = directory(tmp_path)
    run.unlock()
    with pytest.raises(RunError, match="fp3o resume"):
        RunDirectory(run.path).create()
    RunDirectory(run.path).lock()  # the failed attempt leaves no lock behind
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"thesis\.tex"):
        RunDirectory(tmp_path / "mine").create()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot write"):
        RunDirectory(tmp_path / "file" / "run").create()
    with pytest.raises(RunError, match="not a run directory"):
        RunDirectory(tmp_path / "mine").read_json("config.json")


def test_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails half-way, the old checkpoint is intact and no partial file remains."""
    run = directory(tmp_path)
    first = run.save(Checkpoint(1, 7, arrays(1)), keep=1)

    def full(handle: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(first, b"half")
    monkeypatch.undo()
    assert read_checkpoint(first).iteration == 1
    assert not list(first.parent.glob(".*"))
