"""Runs whose environments fail in their workers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import read_metrics, worker_losses

import fp3o
from fp3o.envs.workers.protocol import WorkerPoolError
from fp3o.runs.directory import RunDirectory

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "sharing": "full", "seeds": 1, "num_envs": 4, "rollout": 5,
    "minibatches": 1, "hidden": (8,), "epochs": 1, "eval_every": 0, "eval_episodes": 1,
    "final_episodes": 1, "progress": "quiet", "loggers": (),
}  # fmt: skip
"""Settings for the environments of `tiny_zoo`, whose episodes have five steps."""


def counting(folder: Path, *failures: str, on_failure: str = "replace") -> dict[str, Any]:
    """A task whose workers fail in these ways in their thirteenth step."""
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    folder.mkdir()
    ours = f"workers=1,on_failure={on_failure},timeouts.step=1.5"
    theirs = f"env.folder={str(folder)!r},env.failures={failures!r},env.late=12"
    return {"task": "pettingzoo:tiny_zoo:Counting", "variant": f"default:{ours},{theirs}"}


def test_failures_are_among_the_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a kill, a hang, NaN or a wrong shape, training continues and reports the failure."""
    task = counting(tmp_path / "failures", "kill", "hang", "nan", "shape")
    settings = {**SMALL, "progress": "plain"}
    with pytest.warns(RuntimeWarning, match="a new worker is started") as warned:
        run = fp3o.train(**task, out=tmp_path / "run", steps=3 * 20, **settings)
    assert run.finished and len(warned) == 4
    before, first, *others = read_metrics(run.path)
    assert not any(worker_losses(before).values()) and not any(worker_losses(first).values())
    wanted = {
        "env_crashed": 1, "env_hung": 1, "env_invalid": 2, "env_restarts": 4, "env_lost_steps": 8,
    }  # fmt: skip
    assert [worker_losses(row) for row in others] == [wanted] * 2
    assert worker_losses(run.results) == wanted
    words = "after step 20, workers replaced: 4 (1 crashed, 1 hung, 2 invalid); 8 steps of their"
    assert words in capsys.readouterr().out
    # Episodes that were running when it stopped are lost as well.
    with pytest.warns(RuntimeWarning, match="4 running episodes of 8 steps") as warned:
        fp3o.resume(run.path, steps=4 * 20, progress="quiet", loggers=(), trust=True)
    assert len(warned) == 1
    assert worker_losses(read_metrics(run.path)[-1]) == {**wanted, "env_lost_steps": 16}


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("kill", "crashed, ended by signal 9"),
        pytest.param("hang", "hung, no reply in time", marks=pytest.mark.slow),
        pytest.param("nan", "invalid, reward is not finite", marks=pytest.mark.slow),
        pytest.param("shape", "invalid, agent 'a_0' has an obs", marks=pytest.mark.slow),
    ],
)
def test_a_failure_that_stops_a_run_loses_nothing(tmp_path: Path, deed: str, words: str) -> None:
    """The state before the failure is saved, can be loaded, and the run resumes from it."""
    task = counting(tmp_path / "failures", deed, on_failure="stop")
    path, settings = tmp_path / "run", {**SMALL, "num_envs": 1}
    with pytest.raises(WorkerPoolError, match=f"failed after 2 steps of its episode.*: {words}"):
        fp3o.train(**task, out=path, steps=3 * 5, **settings)
    kept = read_metrics(path)
    assert [row["iteration"] for row in kept] == [0, 1]
    assert [file.stem for file in RunDirectory(path).checkpoints()][-1] == "000000001"
    action, _ = fp3o.Policy.load(path).act(np.zeros((2, 2)))
    assert action.shape == (2, 1)
    assert fp3o.resume(path, progress="quiet", loggers=(), trust=True).finished
    rows = read_metrics(path)
    assert rows[:2] == kept and [row["iteration"] for row in rows] == [0, 1, 2, 3]
