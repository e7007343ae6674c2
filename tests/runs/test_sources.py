"""Runs, policies and paths: evaluation, videos and reports take any of them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.reports import read_runs
from fp3o.runs import source
from fp3o.runs.run import Run
from fp3o.runs.source import load_policies, load_policy


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_run_a_policy_and_a_path_mean_the_same(finished: Run) -> None:
    """One policy, however it is given."""
    folder = finished.path / "policy" / "seed-1" / "last"
    given: list[Any] = [
        (finished, {"which": "last", "policy_seed": 1}),
        (finished.path, {"which": "last", "policy_seed": 1}),
        (str(finished.path), {"which": "last", "policy_seed": 1}),
        (folder, {}),
        (fp3o.Policy.load(finished, which="last", policy_seed=1), {}),
    ]
    weights = [load_policy(one, **choice).weights for one, choice in given]
    for other in weights[1:]:
        for name, array in weights[0].items():
            np.testing.assert_array_equal(other[name], array)
    names = [[*load_policies(one, **choice)] for one, choice in given]
    assert names == [["seed-1 last"]] * 3 + [["last"], ["policy"]]
    assert [*load_policies(finished)] == ["seed-0 last", "seed-1 last"]


def test_an_export_of_a_run_a_policy_and_a_path(finished: Run, tmp_path: Path) -> None:
    """The same policy, in a folder or as a file; unknown formats are refused."""
    policy, out = finished.policy("last", policy_seed=1), tmp_path / "out"
    for one, choice in ((finished, {"which": "last", "policy_seed": 1}), (policy, {})):
        assert fp3o.Policy.load(fp3o.export(one, out, **choice)).weights.keys()
        for name, array in fp3o.Policy.load(out).weights.items():
            np.testing.assert_array_equal(array, policy.weights[name])
    assert fp3o.export(str(finished.path), tmp_path / "x.stablehlo", to="stablehlo").exists()
    with pytest.raises(fp3o.UserError, match="to 'foldr': did you mean 'folder'"):
        fp3o.export(finished, out, to="foldr")


def test_evaluating_a_policy_in_memory_writes_nothing(finished: Run) -> None:
    """The numbers are those of its folder."""
    policy = finished.policy("last", policy_seed=0)
    before = files(finished.path)
    found = fp3o.evaluate(policy, 8)
    folder = finished.path / "policy" / "seed-0" / "last"
    for same in (fp3o.evaluate(finished, 8, policy_seed=0), fp3o.evaluate(folder, 8)):
        assert [row["return"] for row in same["policies"]] == [found["policies"][0]["return"]]
    assert files(finished.path) == before


def test_wrong_sources_and_choices(finished: Run, tmp_path: Path) -> None:
    """The message says what is allowed; another policy is never taken instead."""
    with pytest.raises(fp3o.UserError, match=r"a run, a policy, or the path .* got 3"):
        source._path(3)  # the types of public functions are checked under test
    with pytest.raises(fp3o.UserError, match="'lst': did you mean 'last'"):
        fp3o.evaluate(finished, 2, which="lst")
    with pytest.raises(fp3o.UserError, match="no seed-7/best: did you mean 'seed-1/best'"):
        fp3o.render(finished, tmp_path / "x.gif", policy_seed=7)
    with pytest.raises(TypeError, match="wich"):
        fp3o.evaluate(finished, 2, wich="best")  # pyright: ignore[reportCallIssue]
    assert main(["evaluate", str(finished.path), "--policy-seed", "9"]) == 2
    assert main(["report", str(finished.path / "policy")]) == 1


def test_one_run_or_several_in_a_report(
    finished: Run,
    tmp_path: Path,
    write_report: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A single path is not a list of letters; a policy has no metrics."""
    for one in (finished, finished.path, str(finished.path), [finished], (finished.path,)):
        assert [run.path for run in read_runs(one)] == [finished.path]
    monkeypatch.setattr("fp3o.reports.pages.run_page.run_page", lambda *_: "a page")
    monkeypatch.chdir(tmp_path)
    copies = [Path(shutil.copytree(finished.path, tmp_path / name)) for name in ("a", "b")]
    assert write_report(str(copies[0])) == copies[0] / "report.html"
    assert write_report(copies) == Path("report.html") and Path("report.html").exists()
    with pytest.raises(fp3o.UserError, match=r"about runs.* got a Policy"):
        read_runs(iter([finished.policy()]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(fp3o.UserError, match=f"inside the run {finished.path}"):
        read_runs(finished.path / "policy" / "seed-0" / "best")
