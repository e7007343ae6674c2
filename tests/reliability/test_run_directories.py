"""Damaged run directories: each command gives the right result or a documented error."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import damage
import pytest
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st
from probe_runs import QUIET, SETTINGS, Originals, weights
from run_files import contents

import fp3o
from fp3o.reports import report
from fp3o.runs.directory import RunDirectory


def _returns(path: Path) -> list[float]:
    return [row["return"] for row in fp3o.evaluate(path, 3)["policies"]]


@cache
def _undamaged_returns(base: Path) -> list[float]:
    return _returns(base)


def evaluated(path: Path, base: Path, originals: Originals) -> None:
    """The returns of the policies that are left are those of the undamaged run."""
    returns = _returns(path)
    assert {*returns} <= {*_undamaged_returns(base)}


def exported(path: Path, base: Path, originals: Originals) -> None:
    """An exported policy is one of the undamaged ones."""
    out = fp3o.Policy.load(path).save(path / "exported")
    assert (out / "weights.safetensors").read_bytes() in weights(base).values()


def reported(path: Path, base: Path, originals: Originals) -> None:
    assert report([path], path / "page.html", figures=False).stat().st_size > 1000


def rendered(path: Path, base: Path, originals: Originals) -> None:
    run = fp3o.Run.load(path)
    run.render(path / "episode.gif", episodes=1, seconds=0.2)


def loaded(path: Path, base: Path, originals: Originals) -> None:
    """Everything a run object tells."""
    run = fp3o.Run.load(path)
    assert run.config.learner.num_envs == SETTINGS["num_envs"]
    assert (run.seeds, run.step >= 0, len(repr(run)) > 10) == (run.seeds, True, True)
    assert "<table>" in run._repr_html_()
    for name in ("episode_return", "kl", "eval_return"):
        run.series(name)


def newest(path: Path) -> int:
    """The iteration from which a run can go on; -1 if it cannot."""
    try:
        checkpoint = RunDirectory(path).newest()
    except fp3o.UserError:
        return -1
    return checkpoint.iteration if checkpoint else -1


def resumed(path: Path, base: Path, originals: Originals) -> None:
    """A resumed run ends as the undamaged one; a finished one is not changed."""
    iteration = newest(path)  # renames damaged checkpoints
    before = contents(path)
    try:
        run = fp3o.resume(path, **QUIET)
    except fp3o.UserError:
        if contents(path) != before:  # it went on, and could not write
            assert newest(path) >= iteration >= 0
        raise
    if contents(path) != before:
        assert run.finished
        assert originals.same_result(path)


COMMANDS: tuple[Callable[[Path, Path, Originals], None], ...] = (
    loaded, evaluated, exported, reported, rendered, resumed,
)  # fmt: skip
"""In this order: the last one writes."""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_run_directories(campaign: Campaign, originals: Originals, tmp_path: Path) -> None:
    """Truncated, flipped, deleted, replaced files: no trace, no other result, nothing lost."""

    @given(st.sampled_from([originals.stopped, originals.finished]), damage.damages)
    def attack(base: Path, changes: list[Any]) -> None:
        path = tmp_path / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(base, path)
        what = damage.apply(path, changes)
        results = []
        for command in COMMANDS:
            if command is reported and changes[0][0] % 8:
                continue  # a page takes longer than everything else
            try:
                command(path, base, originals)
                results.append(command.__name__)
            except fp3o.UserError:
                results.append(f"not {command.__name__}")
            except BaseException as error:
                error.add_note(f"{command.__name__} after: {what}, of {base.name}")
                raise
        campaign.count(*results)

    campaign.attack(attack, small=10, medium=80, whole=2000, shrink=False)
