"""Runs as documents: what is kept, what is averaged, and how seeds are merged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_cells import smoke_cells
from report_runs import RETURNS, battle, make

from fp3o.experiments.framework.grid import CellResult
from fp3o.experiments.framework.run_data import (
    AVERAGED,
    COUNTED,
    MEAN_PARTS,
    RunDataError,
    pack_run,
    run_name,
    unpack_run,
)
from fp3o.experiments.framework.scales import cell_config
from fp3o.experiments.framework.score_table import gradient_steps, training_minutes
from fp3o.reports.data.record import RunRecord
from fp3o.runs.run_config import RunConfig


def timed(path: Path, seconds: float) -> Path:
    """The run with its training time."""
    line = json.dumps({"step": 38400, "seconds": seconds})
    (path / "timing.jsonl").write_text(line + "\n")
    return path


def packed(folder: Path, *paths: Path) -> RunRecord:
    """The run directory that is made of a document, after it was a file."""
    document = json.loads(json.dumps(pack_run(paths)))
    unpack_run(document, folder / "again")
    return RunRecord.read(folder / "again")


def test_evaluations_and_results_are_kept(tmp_path: Path) -> None:
    """All evaluations of all seeds, to six digits, and the final one as it is."""
    path = battle(tmp_path / "run")
    before, after = RunRecord.read(path), packed(tmp_path, path)
    assert after.finished and after.seeds == before.seeds == (0, 1, 2, 3, 4)
    assert after.settings == {**before.settings, "seed": 0}
    assert after.step == before.step == 38400
    assert after.algorithm == before.algorithm and after.num_agents == before.num_agents
    for name in ("eval_return", "eval_won", "eval_dead_enemies"):
        old, new = before.series(name), after.series(name)
        np.testing.assert_array_equal(old.step, new.step)
        np.testing.assert_allclose(old.value, new.value, rtol=1e-5)
        assert new.value.shape == (5, 13)
    for name in ("last", "best", "baselines", "evaluation", "steps"):
        assert after.results[name] == before.results[name]
    assert not after.series("value_loss").value.size  # not kept


def test_the_document_is_small_and_again_the_same(tmp_path: Path) -> None:
    path = timed(make(tmp_path / "run"), 30.0)
    document = pack_run([path])
    unpack_run(document, tmp_path / "again")
    assert pack_run([tmp_path / "again"])["results"] == document["results"]
    assert pack_run([tmp_path / "again"])["config"] == document["config"]
    again = pack_run([tmp_path / "again"])["metrics"]
    for seed, columns in document["metrics"].items():
        for group in ("evaluations", "counts"):
            assert again[seed][group] == columns[group]
    size = sum(len(x.read_bytes()) for x in path.iterdir())
    assert len(json.dumps(document, separators=(",", ":"))) < size / 2


def test_counted_metrics_are_kept_in_every_row(tmp_path: Path) -> None:
    """Truth values as numbers; the row before training has none."""
    path = make(tmp_path / "run")
    before, after = RunRecord.read(path), packed(tmp_path, path)
    for name in COUNTED:
        np.testing.assert_array_equal(before.series(name).value, after.series(name).value)
    holds = after.series("condition_holds").value
    assert holds.shape == (5, 12) and holds[0].tolist() == [0.0, 1.0] * 6


def test_other_metrics_are_means_over_parts_of_training(tmp_path: Path) -> None:
    """Twelve iterations in ten parts: the first two parts have two; each is at its last."""
    path = make(tmp_path / "run", (-5.0, -6.0))
    before, after = RunRecord.read(path), packed(tmp_path, path)
    old, new = before.series("episode_return"), after.series("episode_return")
    parts = np.array_split(np.arange(12), MEAN_PARTS)
    assert new.step.tolist() == [old.step[part[-1]] for part in parts]
    expected = np.stack([old.value[:, part].mean(1) for part in parts], axis=1)
    np.testing.assert_allclose(new.value, expected, rtol=1e-5)
    for name in ("entropy", "kl_quantiles", "product_variance"):
        stage = before.series(name, 1).value
        np.testing.assert_allclose(after.series(name, 1).value, stage[:, :MEAN_PARTS], rtol=1e-5)
    steps = [
        gradient_steps(CellResult(smoke_cells("fp3o")[0], path, RunRecord.read(place)))
        for place in (path, tmp_path / "again")
    ]
    assert steps == [12 * 8, 12 * 8]


def test_what_is_no_number_is_no_part_of_a_mean(tmp_path: Path) -> None:
    """Entries that are missing in some rows or in all, and rows of another length."""
    path = make(tmp_path / "run", (-5.0,))
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    for row in lines:
        row["actor_steps"] = None
        row["product_variance"] = [None, row["iteration"]]
        row["episode_return"] = None if row["iteration"] % 2 else 4.0
        row["entropy"] = [[1.0]] if row["iteration"] == 1 else [[1.0], [2.0]]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    means = pack_run([path])["metrics"]["0"]["means"]
    assert "actor_steps" not in means
    assert means["product_variance"][0] == [None, 0.5]  # iterations 0 and 1
    assert means["episode_return"][0] == 4 and means["episode_return"][-1] == 4
    assert means["entropy"][0] is None and means["entropy"][-1] == [[1], [2]]
    assert {*means} - {"iteration", "step"} <= {*AVERAGED}


def test_seeds_of_several_runs_become_one_run(tmp_path: Path) -> None:
    """In the order of the seeds, whatever that of the folders; seconds are added."""
    late = timed(make(tmp_path / "a", RETURNS[3:], seed=3), 30.0)
    early = timed(make(tmp_path / "b", RETURNS[:3]), 60.0)
    after = packed(tmp_path, late, early)
    assert after.seeds == (0, 1, 2, 3, 4)
    assert (after.settings["seed"], after.settings["seeds"]) == (0, 5)
    assert [row["seed"] for row in after.results["last"]] == [0, 1, 2, 3, 4]
    assert [row["return"] for row in after.results["last"]] == [*RETURNS]
    assert after.series("eval_return").value[:, -1].tolist() == [*RETURNS]
    assert after.results["seconds"]["train"] == 25.0
    assert training_minutes(CellResult(smoke_cells("fp3o")[0], tmp_path / "again", after)) == 1.5
    versions = [entry["versions"] for entry in after.metadata["resumed"]]
    assert versions == [after.metadata["versions"]]
    whole = packed(tmp_path / "whole", make(tmp_path / "whole" / "run", RETURNS))
    assert [*after.results["best"]] == [*whole.results["best"]]
    assert after.metrics == whole.metrics


def test_unfinished_runs_are_not_packed(tmp_path: Path) -> None:
    waiting = make(tmp_path / "waiting", finished=False)
    with pytest.raises(RunDataError, match="waiting is not finished: only finished runs"):
        pack_run([waiting])


def test_runs_of_other_settings_are_not_packed_together(tmp_path: Path) -> None:
    one = make(tmp_path / "one", RETURNS[:2])
    other = make(tmp_path / "other", RETURNS[2:], seed=2, actor_lr=1e-3, rollout=50)
    with pytest.raises(RunDataError, match=r"other differ in actor_lr, rollout: only runs with"):
        pack_run([one, other])
    longer = make(tmp_path / "longer", RETURNS[2:], seed=2, steps=50_000)
    with pytest.raises(RunDataError, match="differ in steps"):
        pack_run([one, longer])
    often = make(tmp_path / "often", RETURNS[2:], seed=2, save_every=1.0)
    assert len(pack_run([one, often])["results"]["last"]) == 5


def test_runs_on_equal_simulators_are_packed_together(tmp_path: Path) -> None:
    def walker(returns: Any, seed: int, variant: str) -> Path:
        path = tmp_path / variant.rpartition("=")[2]
        return make(path, returns, task="mamujoco/Walker2d-2x3", seed=seed, variant=variant)

    one = walker(RETURNS[:2], 0, "paper")
    other = walker(RETURNS[2:], 2, "paper:backend=fused")
    assert len(pack_run([one, other])["results"]["last"]) == 5
    with pytest.raises(RunDataError, match="differ in variant"):
        pack_run([one, walker(RETURNS[2:], 2, "paper:backend=mjx")])


def test_runs_of_equal_seeds_are_not_packed_together(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one", RETURNS[:3]), make(tmp_path / "other", RETURNS[3:], seed=2)
    with pytest.raises(RunDataError, match=r"the same seeds: \[0, 1, 2, 2, 3\]"):
        pack_run([one, other])


def test_runs_are_named_by_their_settings() -> None:
    """Whatever their length and seeds: those of a cell that is trained for longer are its own."""
    settings = cell_config("mpe/simple_reference", "full", "laptop", "fp3o").settings
    name = run_name(settings)
    assert name.startswith("simple_reference-full-fp3o-")
    length = {
        "steps": 1, "seeds": 1, "seed": 7, "eval_every": 3, "final_episodes": 9, "save_every": 0.0,
    }  # fmt: skip
    assert run_name({**settings, **length}) == name
    changes: list[dict[str, Any]] = [
        {"epochs": 9}, {"gamma": 0.5}, {"num_envs": 8}, {"hidden": [32]}, {"sharing": "none"},
        {"sharing": [0, 1]}, {"algorithm": "mappo"}, {"algorithm": "fp3o:split=random"},
        {"task": "mpe/simple_spread"}, {"agent_id": not settings["agent_id"]},
    ]  # fmt: skip
    names = {run_name({**settings, **change}) for change in changes}
    assert len({name, *names}) == len(changes) + 1
    assert all(x.isalnum() or x in "-_" for known in names for x in known)
    assert sum(known.startswith("simple_reference-map-fp3o-") for known in names) == 1


def test_settings_that_are_missing_have_their_defaults() -> None:
    """Runs of earlier versions have fewer settings, and keep their names."""
    settings = cell_config("mpe/simple_reference", "full", "laptop", "fp3o").settings
    default = {name: x for name, x in settings.items() if name != "value_clip"}
    assert settings["value_clip"] is None and run_name(default) == run_name(settings)


def test_names_leave_out_a_simulator_that_computes_the_same() -> None:
    settings = RunConfig.from_preset("mamujoco/Walker2d-2x3", "paper").settings
    name = run_name(settings)
    variants = "paper", "paper:backend=fused", "paper:backend=mjx", "paper:obsk=1"
    names = [run_name({**settings, "variant": variant}) for variant in variants]
    assert names[0] == names[1] == name and len({*names}) == 3
    assert run_name({**settings, "variant": "paper:backend=native"}) == name
    both = run_name({**settings, "variant": "paper:obsk=1,backend=fused"})
    assert both == names[3]
