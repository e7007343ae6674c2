"""Runs of several processes on this machine, one of which may be killed."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_runs import read_metrics

from fp3o.cli.launch import without_options
from fp3o.cli.main import main
from fp3o.runs.progress import QuietDisplay
from fp3o.runs.supervisor import LOST, ProcessesError, supervise

COMMAND = shlex.split(
    "train probe/credit --algorithm mappo --num-envs 4 --rollout 10 --hidden 8 --epochs 1 "
    "--blocks 4 --steps 2400 --eval-every 20 --eval-episodes 4 --final-episodes 4 --save-every 0 "
    "--loggers none --quiet"
)
"""Sixty iterations, with a checkpoint after each."""


def start(out: Path, *more: str) -> "subprocess.Popen[bytes]":
    """The command line in a process of its own, which sees one device unless it asks for more."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    command = [sys.executable, "-m", "fp3o", *COMMAND, "--out", str(out), *more]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def members(supervisor: int) -> list[int]:
    """The processes that a supervisor has started, by their numbers in the run."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_text().split("\0")
        except OSError:  # it has ended
            continue
        if parent == supervisor and "--process-id" in words:
            found[int(words[words.index("--process-id") + 1])] = int(folder.name)
    return [found[number] for number in sorted(found)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes with two devices each."""
    out = tmp_path_factory.mktemp("processes") / "two"
    process = start(out, "--processes", "2", "--devices", "2")
    errors = process.communicate(timeout=600)[1]
    assert process.returncode == 0, errors.decode()[-2000:]
    return out


@pytest.mark.slow
def test_two_processes_train_like_one(undisturbed: Path, tmp_path: Path) -> None:
    process = start(tmp_path / "one", "--devices", "4")
    assert process.communicate(timeout=600) and process.returncode == 0
    pairs = [*zip(read_metrics(tmp_path / "one"), read_metrics(undisturbed), strict=True)]
    assert len(pairs) == 61
    for row, same in pairs[:4]:
        for name, value in row.items():
            x, y = (np.array(each, float) for each in (value, same[name]))
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in Linux's /proc")
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_changes_nothing(undisturbed: Path, tmp_path: Path, victim: int) -> None:
    """All are started again from the newest checkpoint; the run ends with the same bits."""
    out = tmp_path / "killed"
    supervisor = start(out, "--processes", "2", "--devices", "2", "--retries", "1")
    deadline = time.monotonic() + 300
    while len([*(out / "checkpoints").glob("0000000[1-9]*")]) < 2:
        assert time.monotonic() < deadline and supervisor.poll() is None
        time.sleep(0.01)
    os.kill(members(supervisor.pid)[victim], signal.SIGKILL)
    errors = supervisor.communicate(timeout=600)[1]
    assert supervisor.returncode == 0, errors.decode()[-2000:]
    assert (out / "metrics.jsonl").read_bytes() == (undisturbed / "metrics.jsonl").read_bytes()
    from fp3o.runs.directory import RunDirectory

    assert len(RunDirectory(out).read_json("config.json")["resumed"]) == 1
    results = [RunDirectory(path).read_json("results.json")["last"] for path in (out, undisturbed)]
    assert results[0] == results[1]


@pytest.mark.slow
def test_a_supervisor_lets_the_leader_save(tmp_path: Path) -> None:
    """SIGTERM stops the run after an iteration, and it can be resumed."""
    out = tmp_path / "stopped"
    supervisor = start(out, "--processes", "2", "--steps", "4000000")
    deadline = time.monotonic() + 300
    while not [*(out / "checkpoints").glob("0000000[1-9]*")]:
        assert time.monotonic() < deadline and supervisor.poll() is None
        time.sleep(0.05)
    supervisor.terminate()
    errors = supervisor.communicate(timeout=120)[1]
    assert supervisor.returncode == 130, errors.decode()[-2000:]
    rows, newest = read_metrics(out), sorted((out / "checkpoints").glob("*"))[-1]
    assert rows[-1]["iteration"] == int(newest.stem)


class Scripted:
    """A process whose exit statuses are known."""

    def __init__(self, *statuses: int | None):
        self.statuses, self.killed = [*statuses], False

    def status(self) -> int | None:
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]

    def kill(self) -> None:
        self.killed = True

    def last_error(self) -> str:
        return "no memory"


def test_the_supervisor_starts_all_again_and_gives_up() -> None:
    attempts: list[list[Scripted]] = []

    def start(attempt: int) -> list[Scripted]:
        failing = [Scripted(None), Scripted(None, -9)]
        attempts.append(failing if attempt < 2 else [Scripted(None, 0), Scripted(None)])
        return attempts[-1]

    assert supervise(start, 2, QuietDisplay()) == 0
    assert len(attempts) == 3 and all(x.killed for each in attempts for x in each)
    with pytest.raises(ProcessesError, match="failed 2 times"):
        supervise(lambda attempt: [Scripted(LOST)], 1, QuietDisplay())


def test_errors_that_are_explained_are_not_tried_again() -> None:
    calls: list[int] = []
    assert supervise(lambda attempt: calls.append(1) or [Scripted(2)], 5, QuietDisplay()) == 2
    with pytest.raises(ProcessesError, match="process 1: no memory"):
        supervise(lambda attempt: [Scripted(None), Scripted(1)], 5, QuietDisplay())
    assert len(calls) == 1


def test_options_of_the_supervisor_are_not_passed_on() -> None:
    given = ["mpe/simple_spread", "--processes", "2", "--seeds", "3", "--process_id=1", "--quiet"]
    assert without_options(given, ("processes", "process-id")) == [
        "mpe/simple_spread", "--seeds", "3", "--quiet"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coordinator", "a:1"], "--coordinator also needs --processes and --process-id"),
        (["--process-id", "1"], "--process-id also needs --coordinator"),
        (["--processes", "0"], "processes must be at least 1"),
        (["--retries", "-1"], "retries must be at least 0"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "probe/credit", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_on_ray_survives_its_node(undisturbed: Path, tmp_path: Path) -> None:
    """Two nodes with a process each; one is killed, both processes go on the other."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    script = Path(__file__).parents[1] / "support" / "ray_run.py"
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run"), *COMMAND[1:], "--devices", "2"],
        capture_output=True, text=True, timeout=600, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = (x for x in done.stdout.splitlines() if x.startswith('{"finished"'))
    output = json.loads(line)
    assert output["finished"] and output["alive"] == 1
    assert any("has failed" in line for line in output["lines"])
    lines = [(path / "metrics.jsonl").read_bytes() for path in (undisturbed, tmp_path / "run")]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_processes_that_slurm_starts_find_each_other(tmp_path: Path) -> None:
    """With the variables that `srun` sets for two tasks on one machine."""
    job = {
        "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2",
    }  # fmt: skip
    environment = {**os.environ, **job, "PYTHONPATH": os.getcwd()}
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    command = [*COMMAND, "--out", str(tmp_path / "run"), "--steps", "400", "--distributed"]
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", "fp3o", *command], stderr=subprocess.PIPE,
            env={**environment, "SLURM_PROCID": number, "SLURM_LOCALID": number},
        )
        for number in ("0", "1")
    ]  # fmt: skip
    errors = [task.communicate(timeout=300)[1].decode()[-1000:] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], errors
    assert len(read_metrics(tmp_path / "run")) == 11
