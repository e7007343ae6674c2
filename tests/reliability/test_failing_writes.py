"""Disks that are full, read-only or broken; directories that move; clocks that go back."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from failing_writes import COUNTDOWN, DISK_ERRORS, fail_with
from hypothesis import given
from hypothesis import strategies as st
from probe_runs import QUIET, SETTINGS, Originals
from small_runs import TASK

import fp3o
from fp3o.runs import recorder, results, trainer

COUNTDOWN.install()


def test_failing_disks(campaign: Campaign, originals: Originals, tmp_path: Path) -> None:
    """Whichever write fails: an error that says how to continue, then the same result."""

    @given(st.integers(1, 220), st.sampled_from(DISK_ERRORS), st.booleans())
    def attack(number: int, code: int, from_nothing: bool) -> None:
        path = tmp_path / "run"
        shutil.rmtree(path, ignore_errors=True)
        if not from_nothing:
            shutil.copytree(originals.stopped, path)
        result = "finished"
        try:
            with COUNTDOWN.at_call(number, str(path), fail_with(code)):
                start_or_resume(path)
        except fp3o.UserError as error:
            assert str(path) in str(error)
            result = "stopped, then finished"
        start_or_resume(path)
        assert originals.same_result(path)
        assert [path for path in path.rglob(".*") if path.is_file()] == []
        campaign.count(result)

    campaign.attack(attack, small=6, medium=50, whole=600, shrink=False)


def start_or_resume(path: Path) -> None:
    if (path / "config.json").exists():
        assert fp3o.resume(path, **QUIET).finished
    else:
        assert fp3o.train(TASK, out=path, **SETTINGS).finished


@pytest.mark.parametrize("how", ["moved", "deleted"])
@pytest.mark.parametrize(
    ("place", "name"),
    [(trainer.Trainer, "_iterate"), (recorder, "write_policies"), (results, "write_policy")],
)
def test_directories_that_disappear(
    originals: Originals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    place: Any, name: str, how: str,
) -> None:  # fmt: skip
    """The run stops, leaves no second directory behind, and goes on where it was moved to.

    It disappears in an iteration, between a checkpoint and its policies, or just before a policy.
    """
    monkeypatch.chdir(tmp_path)
    path, elsewhere, real = Path("run"), Path("elsewhere"), getattr(place, name)
    calls = iter(range(100))

    def disappearing(*arguments: Any, **options: Any) -> Any:
        if next(calls) == 3:
            path.rename(elsewhere)
            if how == "deleted":
                shutil.rmtree(elsewhere)
        return real(*arguments, **options)

    monkeypatch.setattr(place, name, disappearing)
    with pytest.raises(fp3o.RunError, match="moved, replaced or deleted"):
        fp3o.train(TASK, out=path, **SETTINGS)
    monkeypatch.setattr(place, name, real)
    assert not path.exists()
    if how == "moved":
        assert fp3o.resume(elsewhere, **QUIET).finished
        assert originals.same_result(elsewhere)


def test_a_clock_that_goes_back(
    originals: Originals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of day has no influence."""
    now = iter(range(2_000_000_000, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    assert fp3o.train(TASK, out=tmp_path / "run", **SETTINGS).finished
    assert originals.same_result(tmp_path / "run")
