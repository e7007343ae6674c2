"""PettingZoo environments in worker processes: the same numbers, failures, restarts."""

import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
pytest.importorskip("mpe2", reason="needs the extra mpe2")

from scripted_zoo import KEY, SPREAD, same
from tiny_zoo import Counting

from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import FailureCounts, Timeouts, WorkerPoolError
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.envs.workers.worker import MAX_OUTPUT, Worker

QUICK = Timeouts(reset=30, step=1.5)


def test_workers_run_the_same_episodes() -> None:
    """Bit-identical to environments in this process, and reproducible with the same key."""
    here, there = (PettingZoo(SPREAD, {"N": 2}, workers=number).vectorise(2) for number in (0, 1))
    keys = jax.random.split(KEY, 2)
    for _ in range(2):
        (one, a), (two, b) = here.reset(keys), there.reset(keys)
        for _ in range(27):
            for left, right in zip(a, b, strict=True):
                same(left, right)
            action = np.random.default_rng(0).integers(0, 5, (2, 2, 1))
            (one, a), (two, b) = here.step(one, action), there.step(two, action)
        assert not np.array_equal(a.obs[0], a.obs[1])
    assert here.failure_counts() == there.failure_counts() == FailureCounts().metrics()
    there.close()


def counting(folder: Path, *failures: str, **options: Any) -> PettingZoo:
    kwargs = {"folder": str(folder), "failures": failures, "always": options.pop("always", "")}
    return PettingZoo("tiny_zoo:Counting", kwargs, workers=1, timeouts=QUICK, **options)


def test_workers_that_fail(tmp_path: Path) -> None:
    """Their episodes are truncated at the last observation; others are unaffected."""
    env = counting(
        tmp_path, "kill", "hang", "nan", "shape", "raise", episode_metrics=("won",)
    ).vectorise(6)
    state, now = env.reset(KEY)
    stay = np.zeros((6, 2, 1), int)
    for _ in range(2):
        state, now = env.step(state, stay)
    assert not now.truncated.any()
    with pytest.warns(RuntimeWarning) as caught:
        state, now = env.step(state, stay)
    lost = now.truncated
    assert lost.sum() == 5 and not now.terminated.any()  # which worker has which failure is random
    same(now.reward, np.repeat(~lost[:, None], 2, 1))
    same(now.final_obs[:, 0, 0], np.where(lost, 2, 3))
    same(now.obs[:, 0, 0], np.where(lost, 0, 3))
    counts = FailureCounts(crashed=2, hung=1, invalid=2, restarts=5, lost_steps=10)
    assert env.failure_counts() == counts.metrics()
    words = " ".join(str(one.message) for one in caught)
    for part in ("ended by signal 9", "no reply in time", "reward is not finite",
                 "agent 'a_0' has an observation of 1 numbers, expected 2",
                 "RuntimeError: the zoo is closed"):  # fmt: skip
        assert words.count(part) == 1
    for _ in range(2):
        state, now = env.step(state, stay)
    same(now.terminated, ~lost)
    same(now.episode_metrics[:, 0], ~lost)
    env.close()


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("kill", "crashed, ended by signal 9"), ("hang", "hung, no reply in time"),
        ("nan", "invalid, reward is not finite"), ("shape", "invalid, agent 'a_0' has an obs"),
        ("exit", "crashed, exit code 5\nThe end of its output: last words"),
    ],
)  # fmt: skip
def test_a_failure_can_be_an_error(tmp_path: Path, failure: str, words: str) -> None:
    """With `on_failure=stop` the first failure is an error; no process is left."""
    env = counting(tmp_path, failure, on_failure="stop").vectorise(2)
    state, _ = env.reset(KEY)
    stay = np.zeros((2, 2, 1), int)
    for _ in range(2):
        state, _ = env.step(state, stay)
    with pytest.raises(WorkerPoolError, match=f"failed after 2 steps of its episode.*: {words}"):
        env.step(state, stay)
    assert isinstance(env._pool, WorkerPool) and env._pool._workers == [None, None]
    assert env.failure_counts()["env_restarts"] == 0


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def restart(folder: Path, times: int) -> PooledVecEnv:
    """A batch in which every worker fails repeatedly, in the third step."""
    env = counting(folder, always="exit").vectorise(4)
    state, _ = env.reset(KEY)
    stay = np.zeros((4, 2, 1), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        while env.failure_counts()["env_restarts"] < times:
            state, _ = env.step(state, stay)
    counts = env.failure_counts()
    assert counts["env_crashed"] == counts["env_restarts"] == times
    return env


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files")


@needs_proc
def test_restarts_leave_no_open_files(tmp_path: Path) -> None:
    """Pipes and files of the workers that failed are closed."""
    before = open_files()
    env = restart(tmp_path, 8)
    # Per worker: pipe, shared memory, output file; for all of them: the pipe to their watchdog.
    assert open_files() == before + 4 * 3 + 1
    env.close()
    assert open_files() == before


@needs_proc
@pytest.mark.slow
def test_two_hundred_restarts(tmp_path: Path) -> None:
    """Neither open files nor memory grow."""
    restart(tmp_path, 20).close()
    files, memory = open_files(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    restart(tmp_path, 200).close()
    assert open_files() == files
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 3_000, f"{grown} KiB more"


def only_worker(env: PooledVecEnv) -> Worker:
    assert isinstance(env._pool, WorkerPool)
    (worker,) = env._pool._workers
    assert worker is not None
    return worker


def test_printing_is_bounded(tmp_path: Path) -> None:
    """A worker may print any amount of text; only the end is kept."""
    env = counting(tmp_path, always="print").vectorise(1)
    state, _ = env.reset(KEY)
    sizes = []
    for _ in range(12):
        state, _ = env.step(state, np.zeros((1, 2, 1), int))
        sizes.append(os.fstat(only_worker(env)._output.fileno()).st_size)
    assert max(sizes) <= MAX_OUTPUT and sizes[-1] > 0  # it has printed three times as much, twice
    assert only_worker(env)._output_tail().endswith(b"noise noise \n")
    env.close()


def test_workers_need_no_jax() -> None:
    """The module of the workers does not import JAX, so they start quickly."""
    program = "import sys, fp3o.envs.adapters.pettingzoo_worker as _; print(*sys.modules)"
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert "numpy" in asked.stdout.decode().split()
    assert b"jax" not in asked.stdout and b"pettingzoo.utils" not in asked.stdout


def test_the_stand_in_is_a_parallel_env(tmp_path: Path) -> None:
    """By PettingZoo's own test."""
    with warnings.catch_warnings():
        # The package's tests import its own environments in a way that it has given up.
        warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
        from pettingzoo.test import parallel_api_test
    parallel_api_test(Counting(str(tmp_path)), num_cycles=20)
