"""Runs whose environments are played in other processes, which may be killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host_cues import TASK
from process_watch import children
from small_runs import read_metrics, worker_losses
from worker_pools import lives

import fp3o
from fp3o.cli.main import main
from fp3o.errors import SettingError
from fp3o.runs.player import PlayerService, PlayerSettings, as_answer
from fp3o.runs.player_process import ProcessPlayers
from fp3o.runs.run_config import RunConfig
from fp3o.training.player_pool import PlayerPoolError

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 4, "blocks": 4, "rollout": 6, "minibatches": 1,
    "hidden": (8,), "epochs": 1, "eval_every": 1, "eval_episodes": 2, "final_episodes": 2,
    "progress": "plain", "loggers": (),
}  # fmt: skip
ITERATION = 24


def failing(folder: Path, *failures: str) -> dict[str, Any]:
    """The task, with failures for the first players that take one in their eleventh step."""
    folder.mkdir()
    for name in failures:
        (folder / name).touch()
    return {"task": TASK, "variant": f"default:env.folder={str(folder)!r}"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The metrics of a run without players."""
    path = tmp_path_factory.mktemp("players") / "run"
    return metrics(fp3o.train(TASK, out=path, steps=4 * ITERATION, **SMALL).path)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process is left of any player."""
    before = {*children(os.getpid())}
    yield
    left = {*children(os.getpid())} - before
    assert not [number for number in left if lives(number)]


def metrics(path: Path) -> bytes:
    return (path / "metrics.jsonl").read_bytes()


def test_a_killed_player_changes_no_bit(
    tmp_path: Path, undisturbed: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in mid-play and stopped, then resumed without players, the metrics are the same."""
    task, path = failing(tmp_path / "failures", "kill"), tmp_path / "run"
    fp3o.train(**task, out=path, steps=3 * ITERATION, players=2, **SMALL)
    assert not [*(tmp_path / "failures").iterdir()]
    line = "was ended by signal 9 and is replaced: its blocks are played again, with the same"
    assert capsys.readouterr().out.count(line) == 1
    assert metrics(path) == b"".join(undisturbed.splitlines(keepends=True)[:8])
    assert "players" not in json.loads((path / "config.json").read_text())["settings"]
    fp3o.resume(path, steps=4 * ITERATION, progress="quiet", loggers=(), trust=True)
    assert metrics(path) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["stop", "hang"])
def test_a_late_player_changes_no_bit(tmp_path: Path, undisturbed: bytes, failure: str) -> None:
    """Neither one that sleeps nor one that is stopped; resumed with more players than before."""
    task, path = failing(tmp_path / "failures", failure), tmp_path / "run"
    players = ProcessPlayers(1, timeout=20.0)
    fp3o.train(**task, out=path, steps=3 * ITERATION, players=players, **SMALL)
    assert not [*(tmp_path / "failures").iterdir()]
    again = {"progress": "quiet", "loggers": (), "trust": True}
    fp3o.resume(path, steps=4 * ITERATION, players=4, **again)
    assert metrics(path) == undisturbed


@pytest.mark.slow
def test_an_error_in_a_player_stops_the_run(tmp_path: Path) -> None:
    """It is quoted, the state before it is saved, and the run can be resumed."""
    task, path = failing(tmp_path / "failures", "raise"), tmp_path / "run"
    with pytest.raises(PlayerPoolError, match="RuntimeError: the cues are lost"):
        fp3o.train(**task, out=path, steps=3 * ITERATION, players=2, **SMALL)
    run = fp3o.resume(path, progress="quiet", loggers=(), trust=True, players=2)
    assert run.finished


@pytest.mark.slow
def test_lost_episodes_are_among_the_metrics(tmp_path: Path) -> None:
    """Environments that cannot be restored: the run goes on, the episodes are truncated."""
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    folder = tmp_path / "failures"
    folder.mkdir()
    variant = f"default:workers=0,env.folder={str(folder)!r},env.failures=('kill',),env.late=18"
    settings = {**SMALL, "seeds": 1, "num_envs": 2, "blocks": 2, "rollout": 8, "eval_every": 0}
    with pytest.warns(RuntimeWarning, match="1 running episodes of 3 steps are truncated"):
        run = fp3o.train(
            "pettingzoo:tiny_zoo:Counting", variant=variant, out=tmp_path / "run", steps=48,
            players=2, **settings,
        )  # fmt: skip
    wanted = {"env_crashed": 1, "env_restarts": 1, "env_hung": 0, "env_invalid": 0}
    assert worker_losses(read_metrics(run.path)[-1]) == {**wanted, "env_lost_steps": 3}


@pytest.mark.slow
def test_mujoco(tmp_path: Path) -> None:
    """The same metrics with all blocks here, and with players that are killed meanwhile."""
    settings = {**SMALL, "rollout": 15, "steps": 4 * 60, "progress": "quiet"}
    task = "mamujoco/HalfCheetah-2x3"
    here = fp3o.train(task, out=tmp_path / "here", **settings)
    command = ["train", task, "--out", str(tmp_path / "there"), "--players", "4", "--quiet"]
    for name, value in settings.items():
        if name not in ("progress", "loggers"):
            value = value if isinstance(value, tuple) else (value,)
            command += [f"--{name.replace('_', '-')}", *map(str, value)]
    program = f"from fp3o.cli.main import main; raise SystemExit(main({command!r}))"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    killed = 0
    while process.poll() is None:
        time.sleep(0.5)
        if killed < 2 and (tmp_path / "there" / "metrics.jsonl").exists():
            players = [x for x in children(process.pid) if "serve_player" in command_line(x)]
            os.kill(players[killed], signal.SIGKILL)
            killed += 1
    assert process.returncode == 0 and killed
    assert metrics(tmp_path / "there") == metrics(here.path)


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.slow
def test_players_end_with_the_process_that_learns(tmp_path: Path) -> None:
    """However it ends: also if it is killed while they play."""
    task = failing(tmp_path / "failures", "hang", "stop")
    program = f"import fp3o; fp3o.train(**{task!r}, out='run', steps=96, players=2, **{SMALL!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while [*(tmp_path / "failures").iterdir()] and time.monotonic() < deadline:
        time.sleep(0.1)
    found = children(process.pid)
    assert len([x for x in found if "serve_player" in command_line(x)]) == 2
    process.kill()
    process.wait()
    while any(map(lives, found)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [number for number in found if lives(number)]


@pytest.mark.parametrize(
    ("task", "settings", "words"),
    [
        (TASK, {"players": 3}, "3 players cannot share 4 blocks .* possible numbers are 1, 2, 4"),
        (TASK, {"players": 4, "blocks": 1}, "cannot share 1 blocks .* numbers are 1. A new run"),
        (TASK, {"players": -1}, "players are a number of processes, 0 for none"),
        (TASK, {"players": "many"}, "players are a number of processes, .* got 'many'"),
        (TASK, {"players": ProcessPlayers(2, 0.0)}, "time limit of players must be positive"),
        ("probe/credit", {"players": 2}, "simulated by JAX .* needs no players: leave them out"),
    ],
)
def test_players_that_a_run_cannot_have(
    tmp_path: Path, task: str, settings: dict[str, Any], words: str
) -> None:
    """They are refused before anything is written."""
    with pytest.raises(SettingError, match=words):
        fp3o.train(task, out=tmp_path / "run", **{**SMALL, "steps": ITERATION, **settings})
    assert not (tmp_path / "run").exists()


def test_objects_of_this_process_have_no_players(tmp_path: Path) -> None:
    """Another process cannot make them."""
    from host_cues import CueTask

    with pytest.raises(SettingError, match="is a Python object of this process"):
        fp3o.train(CueTask(), out=tmp_path / "run", steps=ITERATION, players=2, **SMALL)


def test_errors_pass_between_processes() -> None:
    """Errors of a user as they are, all others as text; settings with what to do about them."""
    settings = PlayerSettings.of(RunConfig.from_preset("mamujoco/Hopper-3x1", "paper"))
    wrong = settings._replace(run={**settings.run, "algorithm": "only_registered_here"})
    answer = PlayerService(wrong).start()
    assert isinstance(answer, SettingError)
    assert "unknown algorithm" in str(answer) and "use import paths" in str(answer)
    assert PlayerService(settings).start() is None

    class LocalError(SettingError):
        """Cannot be copied to another process."""

    passed = as_answer(fp3o.NonFiniteError("NaN")), as_answer(LocalError("odd"))
    assert type(passed[0]) is fp3o.NonFiniteError and str(passed[0]) == "NaN"
    assert type(passed[1]) is PlayerPoolError and "odd" in str(passed[1])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("ray:3", "3 players cannot share 4 blocks"),
        ("slurm:4", "unknown place of players 'slurm'"),
        ("all", "a number such as 8, or ray:8"),
        ("3", "3 players cannot share 4 blocks"),
    ],
)
def test_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, words: str
) -> None:
    """Places and numbers of players on the command line."""
    command = ["train", "mamujoco/Hopper-3x1", "--num-envs", "4", "--blocks", "4"]
    command += ["--minibatches", "1", "--out", str(tmp_path / "run"), "--players", value]
    assert main(command) == 2
    assert words in capsys.readouterr().err
