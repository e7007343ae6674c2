"""Complete runs: the directory, extending a run, evaluation, videos."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kill_and_resume import differences
from small_runs import SMALL, TASK, read_metrics

import fp3o
from fp3o.cli.main import main
from fp3o.runs.directory import RunDirectory, RunError
from fp3o.runs.evaluation import evaluate
from fp3o.runs.run import Run


def test_the_run_directory(finished: Run) -> None:
    """All documented files exist and have the documented content."""
    path = finished.path
    assert finished.finished
    record = json.loads((path / "config.json").read_text())
    assert record["settings"]["epochs"] == 1
    assert record["settings"]["sharing"] == "full"
    assert {"versions", "commit", "device", "command", "created", "agents"} <= record.keys()
    lines = read_metrics(path)
    assert [(line["iteration"], line["seed"]) for line in lines] == [
        (iteration, seed) for iteration in range(7) for seed in (0, 1)
    ]
    assert {line["iteration"] for line in lines if "eval_return" in line} == {0, 2, 4, 6}
    assert np.shape(lines[-1]["kl"]) == (1, 3)
    results = finished.results
    assert [row["seed"] for row in results["last"]] == [0, 1]
    assert results["evaluation"]["episodes"] == 8
    for name in ("report.html", "figures/learning_curves.png", "tensorboard/seed-1"):
        assert (path / name).exists(), name
    for name in ("best", "last"):
        policy = fp3o.Policy.load(path / "policy" / "seed-1" / name)
        assert policy.card.spec.name == TASK


def test_a_finished_run_is_unchanged(finished: Run) -> None:
    """Resuming it changes nothing; starting another one there is rejected."""
    before = (finished.path / "metrics.jsonl").read_bytes()
    again = fp3o.resume(finished.path, progress="quiet")
    assert again.finished
    assert (finished.path / "metrics.jsonl").read_bytes() == before
    with pytest.raises(RunError, match="already holds a run"):
        fp3o.train(TASK, out=finished.path, **SMALL)


def test_evaluation_is_the_policy_saved(finished: Run) -> None:
    """Evaluations are reproducible, sampled actions differ, and baselines are included."""
    first = evaluate(finished.path, 16)
    assert first == evaluate(finished.path, 16)
    assert first["policies"] != evaluate(finished.path, 16, seed=5)["policies"]
    drawn = evaluate(finished.path, 16, deterministic=False)
    assert drawn["policies"] != first["policies"]
    one = evaluate(finished.path / "policy" / "seed-0" / "last", 16)
    assert one["policies"][0]["return"] == first["policies"][0]["return"]


SPEAKER_LISTENER = {
    **SMALL,
    "steps": 24,
    "seeds": 1,
    "sharing": "partial",
    "gru_size": 0,
    "sequence_length": 1,
}


def test_videos(tmp_path: Path, capsys: Any) -> None:
    """A run of one seed on a renderable task: GIF and MP4, and evaluation with baselines."""
    run = fp3o.train("mpe/simple_speaker_listener", out=tmp_path / "run", **SPEAKER_LISTENER)
    for name in ("video.gif", "video.mp4"):
        words = ["render", str(run.path), "--out", str(tmp_path / name), "--episodes", "1"]
        assert main(words) == 0
        assert (tmp_path / name).stat().st_size > 5_000
    assert main(["render", str(run.path), "--out", "video.avi"]) == 2
    assert "Known: .gif, .mp4" in capsys.readouterr().err
    found = evaluate(run.path, 8)
    assert found["baselines"].keys() == {"random", "still", "blind", "planner"}
    assert found["agents"] == 2


def test_steps_can_be_increased(tmp_path: Path, finished: Run) -> None:
    """An extended run equals one with the larger number of steps from the start."""
    short = fp3o.train(TASK, out=tmp_path / "short", **{**SMALL, "steps": 24 * 4})
    longer = fp3o.resume(short.path, steps=24 * 6, progress="quiet")
    assert longer.config.steps == 24 * 6
    assert json.loads((longer.path / "config.json").read_text())["resumed"][0]["step"] == 24 * 4
    with pytest.raises(ValueError, match="already done 144 steps"):
        fp3o.resume(longer.path, steps=24, progress="quiet")
    assert differences(finished.path, longer.path) == []


def test_a_run_needs_the_right_format(tmp_path: Path, finished: Run) -> None:
    """A modified record is rejected; the message names the file."""
    broken = tmp_path / "run"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    with pytest.raises(RunError, match=r"config\.json is damaged"):
        fp3o.resume(broken)
    record = json.loads((finished.path / "config.json").read_text())
    record["settings"]["color"] = "red"
    (broken / "config.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="damaged or was edited"):
        fp3o.resume(broken)
    RunDirectory(broken).write_json("config.json", record)
    with pytest.raises(ValueError, match="unknown setting 'color'"):
        fp3o.resume(broken)
