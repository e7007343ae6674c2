"""A run that lost its checkpoints is refused each time; only `restart` starts over."""

import shutil
from pathlib import Path

import pytest
from run_files import contents
from small_runs import read_metrics

import fp3o
from fp3o.runs.atomic import RunError
from fp3o.runs.directory import DamagedRunError, RunDirectory
from fp3o.runs.run import Run


@pytest.fixture
def copy(finished: Run, tmp_path: Path) -> Path:
    """A copy of a finished run, to be damaged."""
    return Path(shutil.copytree(finished.path, tmp_path / "run"))


def damage_checkpoints(path: Path) -> None:
    for checkpoint in RunDirectory(path).checkpoints():
        checkpoint.write_bytes(checkpoint.read_bytes()[:-7])


def remove_checkpoints(path: Path) -> None:
    shutil.rmtree(path / "checkpoints")


@pytest.mark.parametrize("lose", [damage_checkpoints, remove_checkpoints])
@pytest.mark.parametrize("finished_before", [True, False])
def test_a_refusal_stays_a_refusal(copy: Path, lose: object, finished_before: bool) -> None:
    """Neither a finished run that is extended nor an unfinished one is trained from nothing."""
    assert callable(lose)
    lose(copy)
    if not finished_before:
        (copy / "results.json").unlink()
    before = contents(copy)
    for _ in range(2):
        with pytest.raises(RunError, match=r"checkpoint.*--restart"):
            fp3o.resume(copy, steps=24 * 9, progress="quiet", loggers=())
        assert contents(copy) == before


def test_a_finished_run_stays_as_it_is(copy: Path) -> None:
    """Resuming it needs no checkpoint and changes nothing."""
    remove_checkpoints(copy)
    before = contents(copy)
    assert fp3o.resume(copy, progress="quiet", loggers=()).finished
    assert contents(copy) == before


def test_restarting_keeps_the_old_files(copy: Path, finished: Run) -> None:
    """The new run equals the old one, whose files are in a folder inside."""
    remove_checkpoints(copy)
    before = contents(copy)
    run = fp3o.resume(copy, restart=True, progress="quiet", loggers=())
    assert run.finished
    assert read_metrics(copy) == read_metrics(finished.path)
    kept = {name.removeprefix("before-restart-1/"): x for name, x in contents(copy).items()
            if name.startswith("before-restart-1/")}  # fmt: skip
    assert kept == {name: x for name, x in before.items() if name != "config.json"}


@pytest.mark.parametrize(
    "text", [b"[]", b"{", b'{"steps": "many"}', b'{"steps": 1, "checksum": "0"}']
)
def test_damaged_results(copy: Path, text: bytes) -> None:
    """They are not taken for the end of a run; the message says how to get them again."""
    (copy / "results.json").write_bytes(text)
    with pytest.raises(DamagedRunError, match=r"results.json is damaged.*Delete .*results.json"):
        fp3o.resume(copy, progress="quiet", loggers=())
    (copy / "results.json").unlink()
    assert fp3o.resume(copy, progress="quiet", loggers=()).finished


@pytest.mark.parametrize("text", [b"[]", b"3", b"{", b'{"format": 2}', b'{"format": [2]}', b"\xff"])
def test_damaged_settings(copy: Path, text: bytes) -> None:
    """The file is named and nothing changes."""
    (copy / "config.json").write_bytes(text)
    before = contents(copy)
    for _ in range(2):
        with pytest.raises(RunError, match=r"config.json is damaged"):
            fp3o.resume(copy, progress="quiet")
        assert contents(copy) == before
