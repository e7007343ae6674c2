"""Whole runs: train, stop, resume, evaluate, load; from Python and from the command line."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from kill_and_resume import differences, environment, interrupted, whole

import fp3o
from fp3o.cli.main import main
from fp3o.errors import MissingExtraError
from fp3o.runs import run as run_module
from fp3o.runs import trainer
from fp3o.runs.directory import RunDirectory, RunError
from fp3o.runs.evaluation import evaluate
from fp3o.runs.progress import PlainDisplay, TrainingStatus, duration_text, make_display
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 4, "rollout": 6, "hidden": (8,), "epochs": 1,
    "steps": 24 * 6, "eval_every": 2, "eval_episodes": 4, "final_episodes": 8,
    "progress": "quiet",
}  # fmt: skip
TASK = "probe/credit"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One finished run that several tests look at."""
    return fp3o.train(TASK, out=tmp_path_factory.mktemp("runs") / "one", **SMALL)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds; one run's report is enough."""
    monkeypatch.setattr(run_module, "report", lambda _, out: out)


def test_the_run_directory(finished: Run) -> None:
    """Everything the documentation promises is there and says what it should."""
    path = finished.path
    assert finished.finished
    record = json.loads((path / "config.json").read_text())
    assert record["settings"]["epochs"] == 1
    assert record["settings"]["sharing"] == "full"
    assert {"versions", "commit", "device", "command", "created", "agents"} <= record.keys()
    lines = rows(path)
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


def test_a_finished_run_is_left_alone(finished: Run) -> None:
    """Resuming it changes nothing; beginning another one there is refused."""
    before = (finished.path / "metrics.jsonl").read_bytes()
    again = fp3o.resume(finished.path, progress="quiet")
    assert again.finished
    assert (finished.path / "metrics.jsonl").read_bytes() == before
    with pytest.raises(RunError, match="already holds a run"):
        fp3o.train(TASK, out=finished.path, **SMALL)


def test_evaluation_is_the_policy_saved(finished: Run) -> None:
    """Evaluating twice is the same, drawn actions are not, the untrained references are there."""
    first = evaluate(finished.path, 16)
    assert first == evaluate(finished.path, 16)
    assert first["policies"] != evaluate(finished.path, 16, seed=5)["policies"]
    drawn = evaluate(finished.path, 16, deterministic=False)
    assert drawn["policies"] != first["policies"]
    one = evaluate(finished.path / "policy" / "seed-0" / "last", 16)
    assert one["policies"][0]["return"] == first["policies"][0]["return"]


SPOKEN = {
    **SMALL,
    "steps": 24,
    "seeds": 1,
    "sharing": "partial",
    "gru_size": 0,
    "sequence_length": 1,
}


@pytest.mark.usefixtures("undrawn")
def test_films(tmp_path: Path, capsys: Any) -> None:
    """A run of one seed on a task with pictures, filmed both ways, judged beside the scripted."""
    run = fp3o.train("mpe/simple_speaker_listener", out=tmp_path / "run", **SPOKEN)
    for name in ("film.gif", "film.mp4"):
        words = ["render", str(run.path), "--out", str(tmp_path / name), "--episodes", "1"]
        assert main(words) == 0
        assert (tmp_path / name).stat().st_size > 5_000
    assert main(["render", str(run.path), "--out", "film.avi"]) == 2
    assert "Known: .gif, .mp4" in capsys.readouterr().err
    found = evaluate(run.path, 8)
    assert found["baselines"].keys() == {"random", "still", "blind", "planner"}
    assert found["agents"] == 2


@pytest.mark.usefixtures("undrawn")
def test_steps_can_be_raised(tmp_path: Path, finished: Run) -> None:
    """Going on further equals having gone that far at once."""
    short = fp3o.train(TASK, out=tmp_path / "short", **{**SMALL, "steps": 24 * 4})
    longer = fp3o.resume(short.path, steps=24 * 6, progress="quiet")
    assert longer.config.steps == 24 * 6
    assert json.loads((longer.path / "config.json").read_text())["resumed"][0]["step"] == 24 * 4
    with pytest.raises(ValueError, match="already done 144 steps"):
        fp3o.resume(longer.path, steps=24, progress="quiet")
    assert differences(finished.path, longer.path) == []


@pytest.mark.usefixtures("undrawn")
def test_damage_costs_only_what_came_after(
    tmp_path: Path, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torn newest checkpoint: a warning, the one before, and the same end."""
    stopped = iter([False] * 4 + [True] * 10)
    monkeypatch.setattr(trainer, "stop_signals", lambda say: _Stop(stopped))
    run = fp3o.train(TASK, out=tmp_path / "torn", **{**SMALL, "save_every": 0.0})
    assert not run.finished
    monkeypatch.undo()
    newest = RunDirectory(run.path).checkpoints()[-1]
    newest.write_bytes(newest.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="is damaged"):
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


def test_killed_runs_go_on_exactly(tmp_path: Path) -> None:
    """SIGKILL at random moments, and the result is that of a run nobody touched, bit for bit."""
    env, steps = environment(tmp_path / "cache"), 48 * 30
    whole(tmp_path / "whole", TASK, steps, env)
    left = interrupted(tmp_path / "killed", TASK, steps, 2, env)
    assert len(left) == 2
    assert differences(tmp_path / "whole", tmp_path / "killed") == []


def test_interrupt_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    """Ctrl-C: a checkpoint, the command to resume, exit status 130."""
    out = tmp_path / "run"
    words = [sys.executable, "-m", "fp3o", "train", TASK, "--algorithm", "mappo", "--steps", "1e8"]
    process = subprocess.Popen(
        [*words, "--num-envs", "4", "--rollout", "6", "--out", str(out), "--save-every", "1000"],
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
    assert len(RunDirectory(out).checkpoints()) == 1
    assert rows(out)[-1]["iteration"] == int(RunDirectory(out).checkpoints()[0].stem)


@pytest.mark.usefixtures("undrawn")
def test_divergence_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed whose policy is no longer finite: which one, and the state before is kept."""
    real = trainer.Program.iterate

    def spoiled(self: Any, state: Any, hparams: Any = None) -> Any:
        new, metrics = real(self, state, hparams)
        if len(seen) == 2:
            rows = tuple(x.at[1].set(jnp.nan) for x in new.learner.actor)
            new = new._replace(learner=new.learner._replace(actor=rows))
        seen.append(1)
        return new, metrics

    seen: list[int] = []
    monkeypatch.setattr(trainer.Program, "iterate", spoiled)
    with pytest.raises(
        fp3o.NonFiniteError, match="the actor of seed 1 is not finite after step 48"
    ):
        fp3o.train(TASK, out=tmp_path / "run", **SMALL)
    assert [path.stem for path in RunDirectory(tmp_path / "run").checkpoints()] == ["000000002"]


@pytest.mark.usefixtures("undrawn")
def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is whole and how to go on; what was saved can be resumed."""
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


def test_command_line(finished: Run, tmp_path: Path, capsys: Any) -> None:
    """The commands that only read, on a finished run."""
    ask = lambda *words: (main([str(word) for word in words]), capsys.readouterr().out)  # noqa: E731
    status, text = ask("evaluate", finished.path, "--episodes", "16", "--json")
    assert status == 0
    assert len(json.loads(text)["policies"]) == 2
    assert ask("export", finished.path, "--out", tmp_path / "mine")[0] == 0
    assert fp3o.Policy.load(tmp_path / "mine").card.spec.name == TASK
    assert ask("report", finished.path, "--out", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    status, text = ask("list", "--json")
    assert {"fp3o", "a2po"} <= json.loads(text)["algorithms"].keys()
    assert ask("doctor", "--json")[0] == 0
    assert "fp3o train" in ask("--help")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "mpe/simple_spred"], "did you mean 'mpe/simple_spread'"),
        (["train", TASK, "--sharing", "partal"], "did you mean 'partial'"),
        (["train", "--seeds", "2", TASK], "name the task first"),
        (["train", TASK, "--preset", "papr"], "no preset 'papr'"),
        (["train", TASK, "--config", "nowhere.json"], "nowhere.json"),
        (["train", TASK, "--loggers", "wandd"], "did you mean 'wandb'"),
        (["resume", "nowhere"], "there is no directory nowhere"),
        (["evaluate", "nowhere"], "nowhere"),
        (["render", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["experiment", "mpe-tabel"], "did you mean 'mpe-table'"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], message: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that says what was wrong, no trace, and nothing left behind."""
    monkeypatch.chdir(tmp_path)
    assert main(words) in (1, 2)
    told = capsys.readouterr().err
    assert message in told.replace("\n", " ")
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())


def test_wrong_options_are_explained(capsys: Any) -> None:
    """An option that does not exist names the one that does."""
    with pytest.raises(SystemExit) as stop:
        main(["train", TASK, "--step", "5"])
    assert stop.value.code == 2
    assert "--steps" in capsys.readouterr().err


def test_options_reach_the_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file changes the preset, the command line changes the file."""
    seen: list[Any] = []

    def start_run(config: RunConfig, *_: Any) -> Any:
        seen.append(config)
        return SimpleNamespace(finished=False)

    monkeypatch.setattr("fp3o.runs.train.start_run", start_run)
    (tmp_path / "a.toml").write_text("seeds = 3\nclip_range = 0.1\nhidden = [16]")
    words = shlex.split("--clip-range 0.3 --sharing 0,1 --steps 2M --no-agent-id --algorithm coppo")
    main(["train", "mpe/simple_reference", "--config", str(tmp_path / "a.toml"), *words])
    told = seen[0].settings
    wanted = {
        "seeds": 3, "clip_range": 0.3, "hidden": [16], "sharing": [0, 1], "steps": 2_000_000,
        "agent_id": False, "algorithm": "coppo", "epochs": 15,
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted
    main(["train"])
    assert seen[1].settings == RunConfig.from_preset().settings


def test_missing_extras_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package that is not there: which extra brings it, and nothing is written."""
    monkeypatch.setattr("fp3o.runs.loggers.find_spec", lambda name: None)
    for name in ("wandb", "mlflow"):
        with pytest.raises(MissingExtraError, match=rf"pip install 'fp3o\[{name}\]'"):
            fp3o.train(TASK, out=tmp_path / "run", loggers=[name], **SMALL)
    assert not list(tmp_path.iterdir())


def test_displays(capsys: Any) -> None:
    """Lines hold steps, rate, time left, return with spread, KL and the condition."""
    status = TrainingStatus("a task", 1000, 0, 2)
    row = {"episode_return": 1.0, "kl": [[0.1, 0.2]], "condition_holds": True}
    status.advance(500, [row, {**row, "episode_return": 3.0}])
    screen = make_display("plain")
    assert isinstance(screen, PlainDisplay)
    screen.update(status)
    text = capsys.readouterr().out
    for words in (
        "50.0 %",
        "500/1k",
        "steps/s",
        "left",
        "2.00 ± 1.00",
        "0.2000",
        "condition 100 %",
    ):
        assert words in text
    live = make_display("live")
    live.update(status)
    live.close()
    assert "a task" in capsys.readouterr().out
    assert (duration_text(3675), duration_text(75)) == ("1:01:15", "1:15")


def test_a_run_needs_the_right_format(tmp_path: Path, finished: Run) -> None:
    """A record that was tampered with is refused with its name."""
    broken = tmp_path / "run"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    with pytest.raises(RunError, match=r"config\.json cannot be read"):
        fp3o.resume(broken)
    record = json.loads((finished.path / "config.json").read_text())
    record["settings"]["color"] = "red"
    (broken / "config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="unknown setting 'color'"):
        fp3o.resume(broken)
