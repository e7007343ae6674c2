"""The run directory: saved state survives interruptions, damage and full disks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from run_files import arrays, directory

from fp3o.runs.atomic import RunError, write_atomically
from fp3o.runs.checkpoint_files import Checkpoint, read_checkpoint
from fp3o.runs.directory import RunDirectory
from fp3o.runs.progress import make_display
from fp3o.runs.restart import set_aside


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    """Partial files are removed when the next process locks the directory; nothing else is."""
    run = directory(tmp_path)
    run.save(Checkpoint(1, 7, arrays(1)), keep=3)
    run.unlock()
    parts = [
        run.path / ".config.json.part",
        run.path / "checkpoints" / ".000000002.safetensors.part",
    ]
    for path in (*parts, run.path / "mine.part", run.path / ".mine"):
        path.write_bytes(b"half")
    RunDirectory(run.path).lock()
    assert [path.exists() for path in parts] == [False, False]
    assert (run.path / "mine.part").exists()
    assert (run.path / ".mine").exists()


@pytest.mark.parametrize(
    "name",
    ["metrics.jsonl", "timing.jsonl", "report.html", "policy", "checkpoints/000000001.safetensors"],
)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_is_written_through_links(tmp_path: Path, name: str, kind: str) -> None:
    """A link would change a file elsewhere, a pipe would wait for ever: both are refused."""
    run = directory(tmp_path)
    run.save(Checkpoint(1, 7, arrays(1)), keep=3)
    run.unlock()
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (run.path / name).unlink(missing_ok=True)
    if kind == "link":
        (run.path / name).symlink_to(outside)
    else:
        os.mkfifo(run.path / name)
    for _ in range(2):  # the failed attempt leaves no lock behind
        with pytest.raises(RunError, match=r"not a regular file or folder.*remove it"):
            RunDirectory(run.path).lock()
    assert outside.read_text() == "mine"


def test_old_files_are_set_aside(tmp_path: Path) -> None:
    """Everything but the settings is moved to a folder of its own, each time another one."""
    run = directory(tmp_path)
    run.unlock()
    set_aside(run, make_display("quiet"))
    run.append("metrics.jsonl", [{"step": 5}])
    set_aside(run, make_display("quiet"))
    kept = [run.path / f"before-restart-{number}" / "metrics.jsonl" for number in (1, 2)]
    assert [path.read_text() for path in kept] == ['{"step": 1}\n', '{"step": 5}\n']
    assert run.newest() is None


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
    for path in run.path.iterdir():  # there is no lock file whose removal would let others in
        path.unlink()
    assert "another process is writing" in ask()
    run.unlock()
    assert ask() == ""


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_directory_that_disappears_is_noticed(tmp_path: Path, how: str) -> None:
    """Nothing is written to another directory; the message says where this one is."""
    run = directory(tmp_path)
    if how == "deleted":
        shutil.rmtree(run.path)
    else:
        run.path.rename(tmp_path / "elsewhere")
    if how == "replaced":
        run.path.mkdir()
    place = "" if how == "deleted" else rf".*fp3o resume {tmp_path / 'elsewhere'}"
    for write in (
        lambda: run.append("metrics.jsonl", [{"step": 2}]),
        lambda: run.write_json("config.json", {}),
        lambda: run.save(Checkpoint(1, 7, arrays(1)), keep=1),
    ):
        with pytest.raises(RunError, match=f"moved, replaced or deleted{place}"):
            write()
    assert run.path.exists() == (how == "replaced")
    assert not list(run.path.glob("*"))


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
