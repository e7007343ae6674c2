"""Videos of the policy during training."""

from pathlib import Path
from typing import Any

import pytest
from fake_trackers import FakeWandB
from PIL import Image

import fp3o
from fp3o.learning.setup import Setup
from fp3o.reports import RunRecord
from fp3o.reports.pages.videos import run_videos
from fp3o.runs import training_videos
from fp3o.runs.directory import RunDirectory
from fp3o.runs.logger import LoggedRun
from fp3o.runs.tensorboard import TensorBoard
from fp3o.runs.training_videos import TrainingVideos, video_due

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "sharing": "partial", "seeds": 2, "seed": 3, "num_envs": 4, "rollout": 5,
    "hidden": (8,), "epochs": 1, "gru_size": 0, "sequence_length": 1, "steps": 80,
    "eval_episodes": 2, "final_episodes": 2, "progress": "quiet",
}  # fmt: skip
TASK = "mpe/simple_speaker_listener"


def test_when_they_are_due() -> None:
    """At the first iteration that reaches a multiple of the setting; never if that is 0."""
    assert [step for step in range(20, 161, 20) if video_due(50, step, 20)] == [60, 100, 160]
    assert [step for step in range(20, 161, 20) if video_due(5, step, 20)] == [*range(20, 161, 20)]
    assert not any(video_due(0, step, 20) for step in range(20, 161, 20))


def test_videos_are_saved_and_logged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As files, in TensorBoard and at the services; the training is the same as without."""
    wandb, written = FakeWandB(monkeypatch), []

    def render(policy: fp3o.Policy, path: Path, **_: Any) -> Path:
        written.append(policy.weights)
        path.write_bytes((tmp_path / "one.gif").read_bytes())
        return path

    Image.new("RGB", (8, 4)).save(tmp_path / "one.gif")
    monkeypatch.setattr(training_videos, "render", render)
    loggers = ["tensorboard", "wandb"]
    run = fp3o.train(TASK, out=tmp_path / "a", video_every=30, loggers=loggers, **SMALL)
    names = ["step-000000000040.gif", "step-000000000060.gif"]
    assert sorted(path.name for path in (run.path / "videos").iterdir()) == names
    assert [path.name for path in run_videos(RunRecord.read(run.path))] == names[::-1]
    videos = {seed: [step for step, row in tracked.rows.items() if "video/policy" in row]
              for seed, tracked in zip((3, 4), wandb.runs.values(), strict=True)}  # fmt: skip
    assert videos == {3: [40, 60], 4: []}
    events = b"".join(path.read_bytes() for path in (run.path / "tensorboard" / "seed-3").iterdir())
    assert events.count(b"video/policy") == 2 and events.count(b"GIF8") == 2
    assert [*written[0]] == [*run.policy().weights]
    plain = fp3o.train(TASK, out=tmp_path / "b", loggers=(), **SMALL)
    assert not (plain.path / "videos").exists()
    assert plain.series("eval_return").value.tolist() == run.series("eval_return").value.tolist()


def test_a_task_that_cannot_be_rendered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, finished: fp3o.Run
) -> None:
    """One warning; the run goes on."""
    monkeypatch.setattr(training_videos, "make_policy", lambda *_: finished.policy())
    directory = RunDirectory(tmp_path)
    directory.lock()
    config = finished.config
    videos = TrainingVideos(directory, Setup(config.task_info.spec(), config.learner))
    with pytest.warns(
        RuntimeWarning, match=r"no videos .* probe/credit cannot be rendered"
    ) as seen:
        assert [videos.save(step, ()) for step in (20, 40)] == [None, None]
    assert len(seen) == 1
    directory.unlock()


def test_a_gif_in_tensorboard(tmp_path: Path) -> None:
    """As an image with all its frames."""
    gif = tmp_path / "one.gif"
    Image.new("RGB", (8, 4)).save(gif)
    logger = TensorBoard(LoggedRun(tmp_path, {"seed": 3, "seeds": 1}))
    logger.video(gif, 3, 20)
    logger.close()
    (events,) = (tmp_path / "tensorboard" / "seed-3").iterdir()
    assert b"video/policy" in events.read_bytes() and gif.read_bytes() in events.read_bytes()


def test_a_negative_interval_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fp3o.SettingError, match="video_every must be at least 0, got -1"):
        fp3o.train(TASK, out=tmp_path / "run", video_every=-1, **SMALL)
    assert not (tmp_path / "run").exists()
