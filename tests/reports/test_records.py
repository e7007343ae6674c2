"""Run directories as records: reading, errors, labels."""

import json
from pathlib import Path

import numpy as np
import pytest
from report_runs import (
    line,
    make,
)

from fp3o.reports import RunRecord, read_runs, report


def test_series_are_aligned_over_seeds_and_stages(tmp_path: Path) -> None:
    path = make(tmp_path / "run", (-5.0, -6.0), iterations=2)
    with (path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line(3, 1, -4.0)) + "\n")
        file.write(json.dumps(line(2, 0, -99.0, clip_fraction=[None, None])) + "\n")  # resumed
    run = RunRecord.read(path)
    step, value = run.series("episode_return")
    np.testing.assert_array_equal(step, [3200, 6400, 9600])
    np.testing.assert_allclose(value, [[-18.5, -100, np.nan], [-19.0, -7.0, -5.0]])
    assert run.series("kl", -1).value.shape == (2, 3, 2)
    np.testing.assert_allclose(run.series("kl", -1).value[0, 0], [0.02, 0.03])
    np.testing.assert_allclose(run.series("clip_fraction", 0).value[0], [0.1, np.nan, np.nan])
    assert run.series("nothing").step.size == 0 and run.step == 38400


def test_an_incomplete_last_line_is_ignored_and_a_damaged_one_is_reported(tmp_path: Path) -> None:
    path = make(tmp_path / "run", iterations=2)
    metrics = path / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + '{"iteration": 3, "step": 96')
    assert RunRecord.read(path).series("eval_return").step.size == 3
    lines = whole.splitlines()
    metrics.write_text("\n".join([lines[0], "{torn", "[1]", *lines[1:]]))
    with pytest.warns(UserWarning) as caught:
        run = RunRecord.read(path)
    assert [str(w.message).split("line ")[1][:1] for w in caught] == ["2", "3"]
    assert run.series("eval_return").step.size == 3


def test_errors_state_what_to_do(tmp_path: Path) -> None:
    run = make(tmp_path / "all" / "run")
    with pytest.raises(FileNotFoundError, match=r"with config.json.*inside it: .*run"):
        RunRecord.read(tmp_path / "all")
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        RunRecord.read(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no run was given"):
        report([], tmp_path / "r.html")
    (run / "metrics.jsonl").write_text("")
    (run / "results.json").unlink()
    with pytest.raises(ValueError, match="nothing to report"):
        report([run], tmp_path / "r.html")
    (run / "config.json").write_text('{"format": 1, "versions": {"fp3o": "9.0"}, "settings": {}}')
    with pytest.raises(ValueError, match=r"format 1.*reads format 2.*9\.0"):
        RunRecord.read(run)
    (run / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        RunRecord.read(run)


def test_labels_distinguish_runs(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / "a", actor_lr=1e-3),
        make(tmp_path / "b"),
        make(tmp_path / "c", algorithm="a2po:blocks=2", sharing=[0, 0, 1]),
        make(
            tmp_path / "d",
            algorithm="my_module:mine",
            row={"title": "Mine"},
            sharing=[[0, 0], [0, 1]],
        ),
        make(tmp_path / "e", algorithm="coppo", sharing="none"),
        make(tmp_path / "f", algorithm="coppo", sharing="none"),
    ]
    assert [run.label for run in read_runs([*paths, paths[0]])] == [
        "FP3O · partial · actor_lr=0.001",
        "FP3O · partial · actor_lr=0.0007",
        "CoPPO · none · e",
        "CoPPO · none · f",
        "Mine · custom map",
        "A2PO (blocks=2) · map 0-0-1",
    ]
