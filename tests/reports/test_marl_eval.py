"""Export to the JSON format of marl-eval."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_runs import algorithm_row

from fp3o.reports import read_runs
from fp3o.reports.marl_eval import marl_eval, write_marl_eval


def make(path: Path, wins: bool = False, finished: bool = True, **settings: Any) -> Path:
    """A run of two seeds with evaluations at steps 0, 200 and 400; seed 1 returns one more."""
    path.mkdir(parents=True)
    settings = {
        "task": "mpe/simple_spread", "variant": "default", "algorithm": "fp3o",
        "sharing": "partial", **settings,
    }  # fmt: skip
    row = algorithm_row(settings["algorithm"])
    config = {"format": 2, "settings": settings, "algorithm": row}
    (path / "config.json").write_text(json.dumps(config))
    rows: list[dict[str, Any]] = []
    for iteration in range(5):
        for seed in range(2):
            row = {"iteration": iteration, "step": 100 * iteration, "seed": seed}
            if iteration % 2 == 0:
                row |= {"eval_return": iteration + seed}
                row |= {"eval_won": iteration / 8 if iteration else None} if wins else {}
            rows.append(row | {"episode_return": -1.0})
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    times = [{"step": 100 * k, "seconds": 1.5 * k} for k in range(1, 5)]
    (path / "timing.jsonl").write_text("".join(json.dumps(row) + "\n" for row in times))
    if finished:
        ends = {"episode_metrics": {"won": 0.5, "dead_allies": 1.0}} if wins else {}
        best = [{"seed": seed, "step": 400, "return": 3.5 + seed, **ends} for seed in range(2)]
        results = {"format": 2, "steps": 400, "last": best, "best": best}
        (path / "results.json").write_text(json.dumps(results))
    return path


def test_export_is_what_marl_eval_reads(tmp_path: Path) -> None:
    runs = read_runs([make(tmp_path / "a"), make(tmp_path / "b", algorithm="mappo")])
    exported = marl_eval(runs)
    assert list(exported) == ["mpe"] and list(exported["mpe"]) == ["simple_spread"]
    algorithms = exported["mpe"]["simple_spread"]
    assert list(algorithms) == ["FP3O · partial", "MAPPO · partial"]
    assert algorithms["FP3O · partial"]["seed_1"] == {
        "step_1": {"step_count": 0, "return": [1.0]},  # nothing is timed before training
        "step_2": {"step_count": 200, "elapsed_time": 3.0, "return": [3.0]},
        "step_3": {"step_count": 400, "elapsed_time": 6.0, "return": [5.0]},
        "absolute_metrics": {"return": [4.5]},
    }
    assert list(algorithms["MAPPO · partial"]) == ["seed_0", "seed_1"]


def test_export_has_wins_as_shares_and_the_variant(tmp_path: Path) -> None:
    path = make(tmp_path / "run", wins=True, task="smac/3m", variant="paper")
    seed = marl_eval(read_runs([path]))["smac"]["3m (paper)"]["FP3O · partial"]["seed_0"]
    assert "win_rate" not in seed["step_1"]  # no battle had ended
    assert [seed[f"step_{k}"]["win_rate"] for k in (2, 3)] == [[0.25], [0.5]]
    assert seed["absolute_metrics"] == {"return": [3.5], "win_rate": [0.5]}


def test_export_is_written_as_plain_json(tmp_path: Path) -> None:
    runs = read_runs([make(tmp_path / "run", wins=True)])
    path = write_marl_eval(runs, tmp_path / "new" / "out.json")
    assert path == tmp_path / "new" / "out.json"
    assert json.loads(path.read_text()) == marl_eval(runs)
    assert write_marl_eval(runs, tmp_path).name == "marl_eval.json"


def test_export_of_runs_that_are_not_finished(tmp_path: Path) -> None:
    path = make(tmp_path / "run", finished=False)
    (path / "timing.jsonl").write_text('{"step": 200, "seconds": 2.0}\n{"step": 40')
    empty = make(tmp_path / "empty", finished=False, task="smac/3m")
    (empty / "metrics.jsonl").unlink()
    exported = marl_eval(read_runs([path, empty]))
    assert list(exported) == ["mpe"]
    seed = exported["mpe"]["simple_spread"]["FP3O · partial"]["seed_0"]
    assert list(seed) == ["step_1", "step_2", "step_3"]
    assert "elapsed_time" in seed["step_2"] and "elapsed_time" not in seed["step_3"]


def test_export_adds_the_time_before_a_run_was_resumed(tmp_path: Path) -> None:
    path = make(tmp_path / "run")
    seconds = [(100, 5.0), (200, 6.0), (300, 7.0), (200, 8.0), (300, 9.0), (400, 10.0)]
    lines = [json.dumps({"step": step, "seconds": time}) for step, time in seconds]
    (path / "timing.jsonl").write_text("\n".join(lines))
    seed = marl_eval(read_runs([path]))["mpe"]["simple_spread"]["FP3O · partial"]["seed_0"]
    assert [seed[f"step_{k}"]["elapsed_time"] for k in (2, 3)] == [15.0, 17.0]


def test_export_names_are_unique_and_without_commas(tmp_path: Path) -> None:
    changed = make(tmp_path / "a", algorithm="fp3o:gate=false,stages=1")
    named = marl_eval(read_runs([changed]))["mpe"]["simple_spread"]
    assert list(named) == ["FP3O (gate=false; stages=1) · partial"]
    one, two = make(tmp_path / "b", actor_lr=1e-3), make(tmp_path / "c", actor_lr=2e-3)
    assert len(marl_eval(read_runs([one, two]))["mpe"]["simple_spread"]) == 2
    with pytest.raises(ValueError, match="distinct labels"):
        marl_eval([*read_runs([one]), *read_runs([two])])
