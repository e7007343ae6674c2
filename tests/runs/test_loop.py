"""`fp3o.iterate`: a run whose iterations are in the hands of the caller."""

import itertools
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kill_and_resume import differences
from small_runs import SMALL, TASK, read_metrics

import fp3o
from fp3o.runs import metrics_log, trainer
from fp3o.runs.run import Run
from fp3o.runs.turn import TurnError

QUIET: dict[str, Any] = {"progress": "quiet", "loggers": ()}
SETTINGS: dict[str, Any] = {**SMALL, **QUIET}


def test_the_loop_trains_as_train_does(tmp_path: Path, finished: Run) -> None:
    """Bit for bit, whatever is looked at in between."""
    handler = signal.getsignal(signal.SIGINT)  # ignored in the background of a shell
    loop, steps = fp3o.iterate(TASK, out=tmp_path / "run", **SETTINGS), []
    for step in loop:
        steps.append((step.iteration, step.iterations, step.steps))
        assert step.metrics["episode_return"].shape == (2,)
        assert step.metrics["kl"].shape == (2, 1, 3)
        assert ("eval_return" in step.metrics) == (step.iteration % 2 == 0)
        assert step.hyperparameters["gamma"] == finished.settings["gamma"]
        assert signal.getsignal(signal.SIGINT) is handler
        if step.iteration == 3:
            assert loop.run.step == 48 and not loop.run.finished
            rows = step.evaluate(6, deterministic=False)
            assert [row["seed"] for row in rows] == [0, 1] and np.isfinite(rows[1]["return"])
            obs = np.zeros((4, 3, step.policy().card.spec.obs_size), np.float32)
            actions, _ = step.policy(seed=1).act(obs)
            assert actions.shape[:2] == (4, 3)
            assert step.policy(seed=1).card.provenance["step"] == 72
    assert steps == [(k, 6, 24 * k) for k in range(1, 7)]
    assert loop.run.finished and loop.run.path == loop.path == tmp_path / "run"
    assert loop.run.results["last"] == finished.results["last"]
    assert differences(finished.path, loop.path) == []
    with pytest.raises(fp3o.RunError, match=r"over: continue the run with fp3o.iterate\(resume="):
        next(iter(loop))


class Recorder:
    """A logger that keeps its rows."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def write(self, rows: Sequence[Any]) -> None:
        self.rows += rows

    def close(self) -> None:
        pass


def test_own_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_report: Callable[..., Path]
) -> None:
    """In metrics.jsonl, the loggers, the series and the report; also where nothing else is."""
    logger = Recorder()
    monkeypatch.setattr(metrics_log, "open_loggers", lambda *_, **__: [logger])
    loop = fp3o.iterate(TASK, out=tmp_path / "run", **{**SETTINGS, "log_every": 4})
    for step in loop:
        if step.iteration in (1, 3):
            step.log(distance=step.iteration / 2, spread=[1.0, float("nan")])
            assert step.metrics["distance"].tolist() == [step.iteration / 2] * 2
            for name in ("kl", "seed", "episode_mine", "actor_lr"):
                with pytest.raises(fp3o.SettingError, match=f"{name} is a metric of fp3o"):
                    step.log(**{name: 1.0})
            with pytest.raises(fp3o.SettingError, match="the 2 seeds as first axis"):
                step.log(mine=[1, 2, 3])
            with pytest.raises(fp3o.SettingError, match="must be a number per seed, got 'x'"):
                step.log(mine="x")
    series = loop.run.series("distance")
    assert series.step.tolist() == [24, 72] and series.value.tolist() == [[0.5, 1.5]] * 2
    assert np.isnan(loop.run.series("spread").value[1]).all()
    rows = [row for row in read_metrics(loop.path) if "distance" in row]
    assert [row["spread"] for row in rows] == [1.0, None, 1.0, None]
    assert [row for row in logger.rows if "distance" in row] == rows
    page = write_report([loop.path], tmp_path / "report.html").read_text()
    assert "Distance" in page


def test_an_early_stop_finishes_the_run(tmp_path: Path) -> None:
    """It ends as a run of that length; it can be continued with more steps."""
    short = fp3o.train(TASK, out=tmp_path / "short", **{**SETTINGS, "steps": 24 * 3})
    loop = fp3o.iterate(TASK, out=tmp_path / "run", **SETTINGS)
    for step in loop:
        if step.iteration == 3:
            step.stop()
    assert loop.run.finished and loop.run.results["last"] == short.results["last"]
    assert loop.run.metadata["stopped"] == {"step": 72, "planned": 144}
    assert differences(short.path, loop.path) == []
    again = fp3o.resume(loop.path, **QUIET)
    assert again.finished and again.step == 72
    assert fp3o.resume(loop.path, steps=24 * 4, **QUIET).step == 96


def test_an_early_stop_counts_once_it_is_saved(
    tmp_path: Path, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the evaluation after `stop`, the run continues as it was planned."""
    with monkeypatch.context() as patch:
        loop = fp3o.iterate(TASK, out=tmp_path / "run", **SETTINGS)
        with pytest.raises(ZeroDivisionError):
            for step in loop:
                if step.iteration == 3:
                    patch.setattr(trainer, "evaluation_rows", lambda *_: 1 / 0)
                    step.stop()
    assert fp3o.resume(loop.path, **QUIET).finished
    assert differences(finished.path, loop.path) == []


def test_loops_side_by_side(tmp_path: Path, finished: Run) -> None:
    """Each trains as it would alone; the longer one can be interrupted after the other's end."""
    short = fp3o.iterate(TASK, out=tmp_path / "short", **{**SETTINGS, "steps": 24 * 3})
    loop = fp3o.iterate(TASK, out=tmp_path / "run", **SETTINGS)
    for step, other in itertools.zip_longest(loop, short):
        assert (other is None) == (step.iteration > 3)
    assert short.run.finished and differences(finished.path, loop.path) == []


def test_a_loop_that_is_left_can_be_continued(tmp_path: Path, finished: Run) -> None:
    """By `break` and by an exception, in the loop again or with `resume`."""
    loop = fp3o.iterate(TASK, out=tmp_path / "run", **SETTINGS)
    for step in loop:
        if step.iteration == 2:
            break
    assert not loop.run.finished and loop.run.step == 48
    second = fp3o.iterate(resume=loop.run, progress="quiet")  # with the default loggers
    with pytest.raises(ZeroDivisionError):
        for step in second:
            if step.iteration == 4:
                step.save()
                raise ZeroDivisionError
    assert second.run.step == 96
    assert fp3o.resume(loop.path, **QUIET).finished
    assert differences(finished.path, loop.path) == []


def test_changed_hyperparameters_are_part_of_the_run(tmp_path: Path) -> None:
    """From the next iteration on, in the metrics, and after resuming without the loop."""

    def loop(name: str, last: int) -> Path:
        steps = fp3o.iterate(TASK, out=tmp_path / name, **SETTINGS)
        for step in steps:
            if step.iteration == 2:
                step.set(actor_lr=[1e-3, 1e-4], clip_range="0.2:0.1")
            if step.iteration == 3:
                assert step.hyperparameters["actor_lr"] == [1e-3, 1e-4]
            if step.iteration == last:
                break
        return steps.path

    whole, part = loop("whole", 7), loop("part", 2)
    run = fp3o.resume(part, **QUIET)
    assert differences(whole, part) == []
    series = run.series("actor_lr")
    assert series.step.tolist() == [72, 96, 120, 144]
    np.testing.assert_allclose(series.value, [[1e-3] * 4, [1e-4] * 4], rtol=1e-6)
    shares = np.arange(2, 6) / 6
    np.testing.assert_allclose(run.series("clip_range").value[0], 0.2 - 0.1 * shares, rtol=1e-5)


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    loop = fp3o.iterate(TASK, out=tmp_path / "run", **SETTINGS)
    steps = iter(loop)
    first = next(steps)
    for wrong, message in (
        ({"actor_rl": 1.0}, "'actor_rl' is no hyperparameter: did you mean 'actor_lr'"),
        ({"epochs": 2}, "'epochs' is no hyperparameter"),
        ({"gamma": 1.5}, "gamma must be between 0 and 1, got 1.5"),
        ({"gamma": "0.9:2"}, "gamma must be between 0 and 1, got 2.0 in its schedule"),
        ({"actor_lr": [1.0]}, "one number for each of the 2 seeds"),
        ({"actor_lr": "x"}, "actor_lr must be a number, got 'x'"),
        ({"value_clip": 0.1}, "value_clip cannot change between none and a number"),
    ):
        with pytest.raises(fp3o.SettingError, match=message):
            first.set(**wrong)
    with pytest.raises(fp3o.SettingError, match="there is no seed 7"):
        first.policy(seed=7)
    with pytest.raises(fp3o.SettingError, match="episodes must be at least 1"):
        first.evaluate(0)
    first.save()
    with pytest.raises(TurnError, match=r"step.log has to come before step.save"):
        first.log(mine=1)
    next(steps)
    with pytest.raises(TurnError, match=r"step.stop belongs to its turn"):
        first.stop()
    steps.close()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(fp3o.SettingError, match="has its task, settings and directory already"):
        fp3o.iterate(TASK, resume=tmp_path / "run")
    with pytest.raises(fp3o.SettingError, match="unknown option 'step' of resume: did you mean"):
        fp3o.iterate(resume=tmp_path / "run", step=100)
    assert fp3o.Run.load(tmp_path / "run").step == 48
