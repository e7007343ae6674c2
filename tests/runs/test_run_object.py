"""`fp3o.Run`: the content of a run directory as attributes and methods."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp3o
from fp3o.runs import run as run_module
from fp3o.runs import trainer
from fp3o.runs.directory import RunDirectory

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "sharing": "partial", "seeds": 2, "seed": 3, "num_envs": 4, "rollout": 5,
    "hidden": (8,), "epochs": 1, "gru_size": 0, "sequence_length": 1, "steps": 40,
    "eval_episodes": 2, "final_episodes": 2, "progress": "quiet", "loggers": (),
}  # fmt: skip
TASK = "mpe/simple_speaker_listener"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> fp3o.Run:
    return fp3o.train(TASK, out=tmp_path_factory.mktemp("runs") / "one", **SMALL)


def test_facts(run: fp3o.Run) -> None:
    """Settings, results and metrics, the same from `train` and from the disk."""
    for one in (run, fp3o.Run.load(run.path), fp3o.Run.load(str(run.path))):
        assert one.finished and one.seeds == (3, 4) and one.step == 40
        assert isinstance(one.config, fp3o.RunConfig) and one.config.learner.sharing == "partial"
        assert one.settings["task"] == TASK and one.settings == one.config.settings
        assert [row["seed"] for row in one.results["last"]] == [3, 4]
        series = one.series("eval_return")
        assert series.value.shape == (2, len(series.step)) and np.isfinite(series.value).all()
    with pytest.raises(fp3o.UserError, match="no directory"):
        fp3o.Run.load(run.path / "nowhere")


def test_policies(run: fp3o.Run, tmp_path: Path) -> None:
    """Load, evaluate and render the policies of a run."""
    assert run.policy().card.spec.name.startswith(TASK)
    assert run.policy("last", policy_seed=4).card.provenance["seed"] == 4
    found = run.evaluate(4, which="best")
    assert [row["name"] for row in found["policies"]] == ["seed-3 best", "seed-4 best"]
    path = run.render(tmp_path / "video.gif", episodes=1, seconds=0.5)
    assert path.stat().st_size > 1000


def test_reports(run: fp3o.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report goes into the run's directory unless another file is named."""
    written: list[Any] = []
    monkeypatch.setattr(run_module, "report", lambda runs, out: written.append((runs, out)) or out)
    assert run.report(tmp_path / "page.html") == tmp_path / "page.html"
    assert written == [(run, tmp_path / "page.html")]


def test_texts(run: fp3o.Run) -> None:
    """A readable repr, and a table for notebooks with the return per seed."""
    assert TASK in repr(run) and "MAPPO" in repr(run) and "partial" in repr(run)
    html = run._repr_html_()
    for text in ("<table>", TASK, "MAPPO", "partial", "40", "seed 3", "seed 4"):
        assert text in html


def test_an_unfinished_run(run: fp3o.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped runs are Runs, too; a `RunConfig` trains as its settings do."""
    real = trainer.Trainer._iterate
    stop: list[int] = []
    monkeypatch.setattr(trainer, "stop_signals", lambda _: _Signals(stop))
    monkeypatch.setattr(trainer.Trainer, "_iterate", lambda self: stop.append(1) or real(self))
    part = fp3o.train(config=run.config, out=tmp_path / "part", progress="quiet", loggers=())
    assert not part.finished and "20 of 40" in repr(part) and part.step == 20
    assert part.settings == run.settings
    monkeypatch.undo()
    full = fp3o.resume(part.path, progress="quiet", loggers=())
    assert full.finished and full.results["last"] == run.results["last"]


class _Signals:
    """A stop signal after the first iteration."""

    def __init__(self, received: list[int]):
        self.received = received

    def __enter__(self) -> list[int]:
        return self.received

    def __exit__(self, *_: object) -> None:
        pass


def test_config_and_preset_exclude_each_other(run: fp3o.Run, tmp_path: Path) -> None:
    """A `RunConfig` is complete: a preset in addition is rejected."""
    with pytest.raises(fp3o.UserError, match="either a RunConfig or a preset"):
        fp3o.train(config=run.config, preset="paper", out=tmp_path / "run")


FORMAT_1 = Path(__file__).parent / "fixtures" / "format-1"


def test_format_1_is_not_resumed(tmp_path: Path) -> None:
    """A run of format 1 is rejected with a message; its policies still load."""
    path = Path(shutil.copytree(FORMAT_1, tmp_path / "run"))
    message = r"written by fp3o format 1; this version resumes format 2: .*load its policies"
    with pytest.raises(fp3o.RunError, match=message):
        fp3o.resume(path, progress="quiet")
    actions, _ = fp3o.Policy.load(path).act(np.zeros((3, 2)))
    assert actions.shape == (3, 1)
    assert len(fp3o.evaluate(path, 4)["policies"]) == 2
    from fp3o.runs.checkpoint_files import read_checkpoint

    with pytest.raises(fp3o.RunError, match=message):
        read_checkpoint(path / "checkpoints" / "000000003.safetensors")


def test_a_newer_format_is_rejected(run: fp3o.Run, tmp_path: Path) -> None:
    """The message says to update."""
    path = Path(shutil.copytree(run.path, tmp_path / "run"))
    run_directory = RunDirectory(path)
    run_directory.write_json("config.json", run_directory.read_json("config.json") | {"format": 3})
    with pytest.raises(fp3o.RunError, match=r"newer fp3o \(format 3\).*update fp3o"):
        fp3o.resume(path, progress="quiet")
