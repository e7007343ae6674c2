"""Runs that are stopped, killed, damaged or diverge: what is kept, and how they resume."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from kill_and_resume import command, differences, environment, interrupted, whole
from small_runs import SMALL, TASK, diverge_once, read_metrics

import fp3o
from fp3o.runs import trainer
from fp3o.runs.directory import RunDirectory, RunError
from fp3o.runs.run import Run


def test_a_damaged_checkpoint_loses_only_later_steps(
    tmp_path: Path, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A truncated newest checkpoint: a warning, the previous one is used, with the same result."""
    stopped = iter([False] * 4 + [True] * 10)
    monkeypatch.setattr(trainer, "stop_signals", lambda say: _Stop(stopped))
    run = fp3o.train(TASK, out=tmp_path / "torn", **{**SMALL, "save_every": 0.0})
    assert not run.finished
    monkeypatch.undo()
    newest = RunDirectory(run.path).checkpoints()[-1]
    newest.write_bytes(newest.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="cannot be used"):
        assert fp3o.resume(run.path, progress="quiet").finished
    assert differences(finished.path, run.path) == []


class _Stop:
    """A request to stop that comes after some iterations."""

    def __init__(self, answers: Any):
        self._answers = answers

    def __enter__(self) -> "_Stop":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __bool__(self) -> bool:
        return next(self._answers)


def test_killed_runs_resume_exactly(tmp_path: Path) -> None:
    """After SIGKILL at random times the result equals an uninterrupted run, bit for bit."""
    env, steps = environment(tmp_path / "cache"), 48 * 30
    whole(tmp_path / "whole", TASK, steps, env)
    left = interrupted(tmp_path / "killed", TASK, steps, 2, env)
    assert len(left) == 2
    assert differences(tmp_path / "whole", tmp_path / "killed") == []


def test_interrupt_saves_and_says_how_to_resume(tmp_path: Path) -> None:
    """Ctrl-C: a checkpoint, the command to resume, exit status 130."""
    out = tmp_path / "run"
    words = f"{TASK} --steps 1e8 --save-every 1000 --algorithm mappo --seeds 2 --num-envs 4"
    same = "--rollout 6 --hidden 8 --epochs 1 --eval-every 2 --eval-episodes 4"  # as in `SMALL`
    process = subprocess.Popen(
        [*command("train", *words.split(), *same.split()), "--out", str(out)],
        stdout=subprocess.PIPE, text=True, env=environment(tmp_path / "cache"),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (out / "timing.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"fp3o resume {out}" in text.replace("\n", "")
    assert "compiled in" in text
    initial, newest = RunDirectory(out).checkpoints()
    assert int(initial.stem) == 0
    assert read_metrics(out)[-1]["iteration"] == int(newest.stem)


def test_divergence_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a policy is no longer finite, the seed is named and the previous state is kept."""
    diverge_once(monkeypatch, "actor", iteration=3)
    with pytest.raises(fp3o.NonFiniteError, match="the actor of seed 1 is not finite"):
        fp3o.train(TASK, out=tmp_path / "run", **SMALL)
    assert [path.stem for path in RunDirectory(tmp_path / "run").checkpoints()][-1] == "000000002"


def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that the checkpoint is intact and how to resume; resuming works."""
    real, calls = RunDirectory.save, []

    def full(self: RunDirectory, *args: Any) -> Path:
        calls.append(1)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        return real(self, *args)

    monkeypatch.setattr(RunDirectory, "save", full)
    with pytest.raises(RunError, match=r"No space left.*fp3o resume"):
        fp3o.train(TASK, out=tmp_path / "run", **{**SMALL, "save_every": 0.0})
    monkeypatch.undo()
    assert fp3o.resume(tmp_path / "run", progress="quiet").finished
