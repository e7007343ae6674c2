"""Whole sweeps: files, failures, interruptions, the best settings."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_cells import RecordingDisplay
from small_sweeps import OPTIONS, SEARCH, TASK, TRAINING, small_settings, small_sweep, trial_facts

import fp3o
from fp3o.cli.main import main
from fp3o.errors import NonFiniteError, SettingError
from fp3o.experiments.sweep import launch, loop
from fp3o.experiments.sweep.lanes import Lanes, _kept_program
from fp3o.experiments.sweep.launch import continue_sweep, run_sweep
from fp3o.experiments.sweep.result import SweepResult
from fp3o.runs.atomic import RunError
from fp3o.runs.progress import QuietDisplay
from fp3o.training import program as program_module

TRACED: list[int] = []
"""An entry per compilation of an iteration during the sweep `finished`."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    """An uninterrupted sweep of six trials."""
    real = program_module.train_iteration

    def counted(*args: Any) -> Any:
        TRACED.append(1)
        return real(*args)

    _kept_program.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program_module, "train_iteration", counted)
        return small_sweep(tmp_path_factory.mktemp("sweep") / "whole", pruner="none")


def test_new_trials_in_old_places_compile_nothing(finished: SweepResult) -> None:
    """Six trials, three at a time."""
    assert TRACED == [1]
    assert [row.steps for row in finished.trials] == [TRAINING["steps"]] * 6


def test_files_of_a_sweep(finished: SweepResult) -> None:
    rows = trial_facts(finished.path)
    assert len(rows) == 6 and {row["state"] for row in rows} <= {"finished", "pruned"}
    best = finished.best
    assert best is not None and best.score == max(
        row["score"] for row in rows if row["state"] == "finished"
    )
    assert best.score == pytest.approx(np.mean(best.scores))
    assert len(best.scores) == 2 and [*best.evaluations] == [1, 2, 3]
    record = json.loads((finished.path / "best.json").read_text())
    assert record["settings"]["actor_lr"] == best.params["actor_lr"]
    assert record["sweep"]["trial"] == best.number


def test_the_best_settings_are_a_configuration_of_train(
    finished: SweepResult, tmp_path: Path
) -> None:
    """`fp3o train --config best.json` takes the file as it is and reaches the score."""
    best = str(finished.path / "best.json")
    out = tmp_path / "run"
    assert main(["train", "--config", best, "--out", str(out), "--quiet", "--loggers", "none"]) == 0
    run = fp3o.Run.load(out)
    assert run.settings == finished.best_config.settings
    returns = [row["return"] for row in run.results["last"]]
    assert finished.best is not None
    np.testing.assert_allclose(returns, finished.best.scores, rtol=2e-6, atol=2e-6)


class KilledError(BaseException):
    """In place of SIGKILL: nothing is saved."""


@pytest.mark.parametrize("every", [1, 4])
def test_a_sweep_that_was_killed_continues_with_the_same_trials(
    finished: SweepResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Whatever was written after the last checkpoint is done again, with the same results."""
    real, save, kills = Lanes.iterate, loop.SweepLoop._save, [3, 4, 2]
    count = [0]

    def iterate(self: Lanes) -> Any:
        count[0] += 1
        if kills and count[0] > kills[0]:
            kills.pop(0)
            count[0] = 0
            raise KilledError
        return real(self)

    monkeypatch.setattr(Lanes, "iterate", iterate)
    monkeypatch.setattr(
        loop.SweepLoop, "_save", lambda self: None if self.tick % every else save(self)
    )
    result, attempts = None, 0
    while result is None:
        attempts += 1
        try:
            result = small_sweep(tmp_path / "killed", save_every=0, pruner="none")
        except KilledError:
            continue
    assert attempts == 4 and result.finished
    assert trial_facts(tmp_path / "killed") == trial_facts(finished.path)


def test_a_stopped_sweep_is_continued_by_the_same_command(
    finished: SweepResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by its settings; a finished one stays as it is, other settings are refused."""
    monkeypatch.chdir(tmp_path)
    real = Lanes.iterate

    def interrupted(self: Lanes) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Lanes, "iterate", interrupted)
        stopped = run_sweep(small_settings(pruner="none"), None, QuietDisplay())
    assert not stopped.finished and stopped.path == Path("sweeps/credit-1")
    again = run_sweep(small_settings(pruner="none"), None, QuietDisplay())
    assert again.finished and again.path == stopped.path
    assert trial_facts(again.path) == trial_facts(finished.path)
    with pytest.raises(RunError, match=r"other settings \(parallel\)"):
        run_sweep(small_settings(parallel=2, pruner="none"), again.path, QuietDisplay())
    with pytest.raises(SettingError, match="has 6 trials, more than 5"):
        continue_sweep(again.path, QuietDisplay(), trials=5)
    more = continue_sweep(again.path, QuietDisplay(), trials=7)
    assert len(more.trials) == 7
    assert trial_facts(more.path)[:6] == trial_facts(finished.path)
    fresh = launch._default_path(more.settings)
    assert fresh == Path("sweeps/credit-2")


def test_a_diverged_trial_fails_alone(tmp_path: Path) -> None:
    """Its reason is reported, and the others are what they are without it."""
    points = {"actor_lr": [1e-3, 1e30, 2e-2]}
    settings = small_settings(points, sampler="grid", trials=None, parallel=3)
    display = RecordingDisplay()
    result = run_sweep(settings, tmp_path / "all", display)
    states = [row.state for row in result.trials]
    assert states == ["finished", "failed", "finished"]
    failed = result.trials[1]
    assert "diverged" in failed.reason and "actor_lr 1e+30" in failed.reason
    assert any("trial 1 failed: training diverged" in line for line in display.lines)
    others = {"actor_lr": [1e-3, 5e-2, 2e-2]}
    settings = small_settings(others, sampler="grid", trials=None, parallel=3)
    healthy = run_sweep(settings, tmp_path / "healthy", QuietDisplay()).trials
    for one, same in ((result.trials[0], healthy[0]), (result.trials[2], healthy[2])):
        np.testing.assert_allclose(one.scores, same.scores, rtol=2e-6, atol=2e-6)


def test_an_evaluation_that_fails_ends_its_trial_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = fp3o.Program.evaluate, [3]

    def evaluate(self: fp3o.Program, *args: Any) -> Any:
        if failures:
            error = NonFiniteError("the reward is not finite")
            error.index = failures.pop()  # the second seed of the second trial
            raise error
        return real(self, *args)

    monkeypatch.setattr(fp3o.Program, "evaluate", evaluate)
    result = small_sweep(tmp_path / "sweep", trials=3, pruner="none")
    assert [row.state for row in result.trials] == ["finished", "failed", "finished"]
    assert result.trials[1].reason == "the reward is not finite"


def test_pruned_trials_make_room(tmp_path: Path) -> None:
    """They end early, and their places are taken at once: no iteration has a free place."""
    places: list[int] = []
    real = Lanes.iterate

    def iterate(self: Lanes) -> Any:
        places.append(len(self.slots) - len(self.busy))
        return real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lanes, "iterate", iterate)
        result = small_sweep(tmp_path / "sweep", trials=9, pruner="halving")
    pruned = [row for row in result.trials if row.state == "pruned"]
    assert pruned and all(row.steps < TRAINING["steps"] for row in pruned)
    assert all(row.score is not None and row.evaluations for row in pruned)
    assert not any(places[:-4])
    assert {row.state for row in result.trials} == {"finished", "pruned"}


@pytest.mark.slow
def test_programs_with_other_settings_run_one_after_another(tmp_path: Path) -> None:
    search = "epochs=1,2 actor_lr=1e-3..1e-1:log"
    result = small_sweep(tmp_path / "sweep", search=search, trials=6, parallel=4, pruner="none")
    assert {row.state for row in result.trials} == {"finished"}
    assert {row.params["epochs"] for row in result.trials} == {"1", "2"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "sweep")
    words = (
        f"sweep {TASK} --search actor_lr=1e-3,1e-2,1e-1 --sampler grid --parallel 3 --evaluations 2"
    )
    words += " --episodes 4 --algorithm mappo --seeds 2 --num-envs 4 --rollout 6 --hidden 8"
    words += f" --epochs 1 --steps 144 --eval-episodes 4 --out {out}"
    assert main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "Best of 3 trials (3 finished)" in printed and "fp3o train --config" in printed
    assert main(["sweep", "--resume", out, "--quiet"]) == 0
    assert main(["sweep", "--resume", str(tmp_path / "none")]) == 1
    assert main(["sweep", TASK, "--search", "actor_rl=1..2"]) == 2
    assert main(["sweep", TASK]) == 2
    assert main(["sweep", TASK, "--search", "actor_lr=1,2", "--final-episodes", "9"]) == 2
    assert "set episodes instead" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_survives_sigkill(finished: SweepResult, tmp_path: Path) -> None:
    """A real process, killed at several moments."""
    out = tmp_path / "killed"
    code = (
        f"import fp3o; fp3o.sweep({TASK!r}, search={SEARCH!r}, out={str(out)!r}, "
        f"progress='quiet', save_every=0, pruner='none', **{TRAINING | OPTIONS!r})"
    )
    journal = out / "journal.log"
    for size in (1_500, 4_000, 7_000):
        process = subprocess.Popen([sys.executable, "-c", code])
        while process.poll() is None and not (journal.exists() and journal.stat().st_size > size):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert trial_facts(out) == trial_facts(finished.path)


@pytest.mark.slow
def test_host_environments_train_in_generations(tmp_path: Path) -> None:
    """Trials of MuJoCo side by side are what they are alone."""
    settings: dict[str, Any] = {
        "search": {"actor_lr": [1e-4, 1e-3, 1e-2]}, "sampler": "grid", "episodes": 2,
        "num_envs": 2, "rollout": 20, "hidden": (8,), "gru_size": 0, "epochs": 1, "minibatches": 1,
        "steps": 120, "evaluations": 1, "eval_episodes": 2, "progress": "quiet", "seeds": 1,
    }  # fmt: skip
    two = fp3o.sweep("mamujoco/HalfCheetah-6x1", parallel=2, out=tmp_path / "two", **settings)
    one = fp3o.sweep("mamujoco/HalfCheetah-6x1", parallel=1, out=tmp_path / "one", **settings)
    assert [row.state for row in two.trials] == ["finished"] * 3
    for row, same in zip(two.trials, one.trials, strict=True):
        np.testing.assert_allclose(row.scores, same.scores, rtol=1e-4)
