"""Runs at Weights & Biases and MLflow: groups, names, options, logins, resumption."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_trackers import FakeMLflow, FakeWandB
from small_runs import SMALL, TASK

import fp3o
from fp3o.cli.main import main
from fp3o.errors import SettingError, UserError
from fp3o.runs.directory import RunDirectory
from fp3o.runs.logger import LoggedRun
from fp3o.runs.loggers import Loggers, check_loggers, check_logins, left_out_loggers, open_loggers

SETTINGS = {"seed": 3, "seeds": 2, "task": "probe/credit", "hidden": [8] * 400}
AGENTS = ("speaker", "listener")


def rows(iteration: int) -> list[dict[str, Any]]:
    """An iteration of an algorithm with two stages."""
    metrics = {
        "eval_return": 1.5, "episode_return": 1.0, "policy_loss": [0.1, 0.2],
        "kl": [[1, 2], [3, 4]], "condition_gap": [0.5, None], "condition_holds": True, "mine": 7.0,
    }  # fmt: skip
    return [
        {"iteration": iteration, "step": 8 * iteration, "seed": seed, **metrics} for seed in (3, 4)
    ]


NAMES = {
    "eval/return": 1.5, "train/return": 1.0, "loss/policy/stage_1": 0.1, "loss/policy/stage_2": 0.2,
    "policy/kl/stage_1/speaker": 1.0, "policy/kl/stage_1/listener": 2.0,
    "policy/kl/stage_2/speaker": 3.0, "policy/kl/stage_2/listener": 4.0,
    "fp3o/condition_gap/stage_1": 0.5, "fp3o/condition_holds": 1.0, "mine": 7.0,
}  # fmt: skip


def log(loggers: Loggers, path: Path, iterations: range, video: bool = False) -> None:
    """Open the loggers of a run, log some iterations and close them."""
    path.mkdir(exist_ok=True)
    directory = RunDirectory(path)
    directory.lock()
    try:
        run = LoggedRun(path, SETTINGS, AGENTS, 8 * iterations.start)
        opened = open_loggers(loggers, directory, run)
        for iteration in iterations:
            for logger in opened:
                logger.write(rows(iteration))
        for logger in opened:
            if video:
                logger.video(path / "a.gif", 3, 8 * iterations[-1])
            logger.close()
    finally:
        directory.unlock()


def test_one_run_per_seed_in_a_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the settings, readable names, and the project, entity and tags that were asked for."""
    wandb, path = FakeWandB(monkeypatch), tmp_path / "run"
    log({"wandb": {"project": "marl", "entity": "lab", "tags": ["a", "b"]}}, path, range(3), True)
    one, other = wandb.runs.values()
    assert one.rows == {
        0: NAMES,
        8: NAMES,
        16: {**NAMES, "video/policy": ("video", str(path / "a.gif"))},
    }
    assert other.rows == dict.fromkeys((0, 8, 16), NAMES) and one.finished and other.finished
    assert one.options["name"] == "run seed-3" and other.options["name"] == "run seed-4"
    assert one.options["config"] == {**SETTINGS, "seeds": 1}
    for run in (one, other):
        options = {name: run.options[name] for name in ("project", "entity", "group", "tags")}
        assert options == {"project": "marl", "entity": "lab", "group": "run", "tags": ["a", "b"]}


def test_one_run_with_all_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Seeds are prefixes."""
    wandb, mlflow = FakeWandB(monkeypatch), FakeMLflow(monkeypatch)
    log(["wandb:seeds=together,group=g", "mlflow:seeds=together"], tmp_path / "run", range(1))
    (run,), (tracked,) = wandb.runs.values(), mlflow.runs.values()
    wanted = {f"seed-{seed}/{name}": value for seed in (3, 4) for name, value in NAMES.items()}
    assert run.rows == {0: wanted} and run.options["name"] == "g"
    assert {metric.key: metric.value for metric in tracked.metrics} == wanted


def test_mlflow_has_nested_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A parent with the settings, a run per seed with the metrics; videos are artifacts."""
    mlflow = FakeMLflow(monkeypatch)
    log(["mlflow:experiment=marl,tags=a,b"], tmp_path / "run", range(2), video=True)
    parent, *seeds = mlflow.runs.values()
    assert mlflow.experiments.keys() == {"marl"}
    assert parent.name == "run" and parent.params["task"] == "probe/credit" and not parent.metrics
    assert len(parent.params["hidden"]) == 500
    assert [run.name for run in seeds] == ["run seed-3", "run seed-4"]
    for run in seeds:
        assert {metric.key: metric.value for metric in run.metrics if metric.step == 8} == NAMES
        tags = {"a": "true", "b": "true", "mlflow.parentRunId": "run 0", "fp3o.step": "8"}
        assert run.data.tags == tags and run.status == "FINISHED"
    assert seeds[0].artifacts == [("videos", str(tmp_path / "run" / "a.gif"))]
    assert not seeds[1].artifacts


def test_a_resumed_run_continues_its_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the checkpoint on, without the rows that are there already."""
    wandb, mlflow, path = FakeWandB(monkeypatch), FakeMLflow(monkeypatch), tmp_path / "run"
    chosen = ["wandb:project=marl,tags=a,b", "mlflow"]
    log(chosen, path, range(4))
    log(chosen, path, range(2, 6))
    assert len(wandb.runs) == 2 and len(mlflow.runs) == 3
    for run in wandb.runs.values():
        assert [*run.rows] == [0, 8, 16, 24, 32, 40] and run.options["project"] == "marl"
    for run in [*mlflow.runs.values()][1:]:
        steps = [metric.step for metric in run.metrics if metric.key == "mine"]
        assert steps == [0, 8, 16, 24, 32, 40] and run.status == "FINISHED"


def test_a_run_says_where_it_was_logged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """But its files choose no logger."""
    FakeWandB(monkeypatch)
    path = tmp_path / "run"
    assert left_out_loggers(RunDirectory(path), ["tensorboard"]) == []
    log(["wandb:project=marl,tags=a,b", "tensorboard"], path, range(1))
    (sentence,) = left_out_loggers(RunDirectory(path), ["tensorboard"])
    assert "logged by wandb:tags=('a', 'b'),project=marl: to continue there, name it" in sentence
    assert left_out_loggers(RunDirectory(path), ["wandb:project=marl"]) == []
    (path / "loggers.json").write_text('{"loggers": "wandb", "ids": {}}')
    with pytest.raises(UserError, match=r"loggers.json is damaged: delete it"):
        left_out_loggers(RunDirectory(path), ["wandb"])


@pytest.mark.parametrize(
    ("loggers", "message"),
    [
        (["wandd"], "unknown logger 'wandd': did you mean 'wandb'"),
        ("tensorbord", "unknown logger 'tensorbord': did you mean 'tensorboard'"),
        (["wandb:projekt=x"], "unknown option 'projekt' of the logger 'wandb': did you mean 'proj"),
        (["tensorboard:x=1"], "unknown option 'x' of the logger 'tensorboard': it has none"),
        (["mlflow:seeds=each"], "unknown mlflow:seeds 'each': .*Known: separate, together"),
        ({"wandb": {"project": True}}, "wandb:project must be a string, got True"),
        ({"wandb": {"tags": [None]}}, r"wandb:tags must be words .* got \[None\]"),
        (["wandb", "wandb:project=x"], "'wandb' is given twice"),
    ],
)
def test_wrong_loggers_and_options(loggers: Any, message: str) -> None:
    """What is wrong, what is allowed, the nearest match."""
    with pytest.raises(SettingError, match=message):
        check_loggers(loggers)


@pytest.mark.parametrize("mode", ["online", "offline", "disabled"])
def test_a_missing_login_is_noticed_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str, capsys: Any
) -> None:
    """One line that says how to log in, before anything is written; offline nobody has to."""
    FakeWandB(monkeypatch, logged_in=False, mode=mode)
    if mode != "online":
        check_logins(["wandb"])
        return
    out = tmp_path / "run"
    words = ["train", TASK, "--loggers", "wandb:project=marl", "--out", str(out), "--quiet"]
    assert main(words) == 1 and not out.exists()
    text = " ".join(capsys.readouterr().err.split())
    assert "nobody is logged in" in text
    for help_text in ("`wandb login`", "WANDB_API_KEY", "WANDB_MODE=offline", "--loggers"):
        assert help_text in text


def test_loggers_of_a_training_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run is logged as it trains; resumed, it goes on in the same place."""
    wandb, out = FakeWandB(monkeypatch), tmp_path / "run"
    fp3o.train(TASK, out=out, loggers="wandb:project=marl", **SMALL)
    again: Any = {"wandb": {"project": "marl"}}
    assert fp3o.resume(out, steps=24 * 8, progress="quiet", loggers=again).finished
    assert len(wandb.runs) == 2
    for run in wandb.runs.values():
        assert [*run.rows] == [24 * k for k in range(9)]
        assert {"eval/return", "train/return", "loss/policy", "policy/kl/agent_2"} <= {
            *run.rows[48]
        }
    record = json.loads((out / "loggers.json").read_text())
    assert record["loggers"] == ["wandb:project=marl"] and len(record["ids"]["wandb"]) == 2
    assert not (out / "tensorboard").exists()


REAL = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_trackers import log
for iterations in (range(3), range(2, 5)):
    log([sys.argv[1]], Path("run"), iterations)
"""


def run_real(name: str, folder: Path, **environment: str) -> None:
    """Log with the real package, in another process: it starts threads and keeps state."""
    here, support = Path(__file__).parent, Path(__file__).parents[1] / "support"
    words = [sys.executable, "-c", REAL, name, str(here), str(support)]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_real_mlflow(tmp_path: Path) -> None:
    """Runs in a local database, continued by a second process."""
    pytest.importorskip("mlflow", reason="needs the extra mlflow")
    address = f"sqlite:///{tmp_path}/mlflow.db"
    run_real("mlflow:experiment=marl", tmp_path, MLFLOW_TRACKING_URI=address)
    read = (
        "import mlflow, json; from mlflow import MlflowClient; c = MlflowClient();"
        "e = c.get_experiment_by_name('marl').experiment_id; r = c.search_runs([e]);"
        "print(json.dumps({x.info.run_name: [m.step for m in "
        "c.get_metric_history(x.info.run_id, 'fp3o/condition_gap/stage_1')] for x in r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", read], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "MLFLOW_TRACKING_URI": address},
    )  # fmt: skip
    steps = [0, 8, 16, 24, 32]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"run": [], "run seed-3": steps, "run seed-4": steps}


def test_the_real_wandb(tmp_path: Path) -> None:
    """Offline: one folder per seed and session."""
    pytest.importorskip("wandb", reason="needs the extra wandb")
    run_real("wandb:project=marl", tmp_path, WANDB_MODE="offline", WANDB_SILENT="true")
    ids = json.loads((tmp_path / "run" / "loggers.json").read_text())["ids"]["wandb"]
    folders = [*(tmp_path / "run" / "wandb").glob("offline-run-*")]
    assert {*ids} == {"3", "4"}
    assert {folder.name.rpartition("-")[2] for folder in folders} == {*ids.values()}
