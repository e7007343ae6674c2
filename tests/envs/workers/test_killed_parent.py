"""Workers whose parent was killed: they end at once, whatever they are doing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from worker_pools import IDLE, gone, lives, living, pool

from fp3o.envs.workers.watchdog import WATCHDOG

PROGRAM = """
from failing_env import FailingEnvs
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.shared_memory import ArraySpec, BufferSpec
from threading import Thread

kinds = "hang with a child", "native", "stop", "fork and exit"
plan = {seed: (kind, "reset") for seed, kind in enumerate(kinds)}
pool = WorkerPool(FailingEnvs(plan), BufferSpec(ArraySpec("action", (), int), ()), len(plan))
start = lambda: [pool._worker(i).reset(i, 0) for i in range(len(plan))]
thread = Thread(target=start)  # workers do not depend on the thread that started them
thread.start()
thread.join()
pool.reset(range(len(plan)))
"""


@pytest.fixture
def parent(traces: Path) -> subprocess.Popen[bytes]:
    """A process whose four workers hang: in Python, in native code, stopped, as a forked copy."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment)
    deadline = time.monotonic() + 20
    while len(living(traces)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # until they hang
    return process


def test_workers_die_with_their_parent(parent: subprocess.Popen[bytes], traces: Path) -> None:
    """So do their subprocesses and forked copies; nothing depends on a worker's interpreter."""
    assert len(living(traces)) >= 5  # one has a child; a copy of another has replaced it
    parent.kill()
    parent.wait()
    assert gone(traces)


def test_the_watchdog_is_replaced_and_ends_with_the_last_worker() -> None:
    """It is one process, however many workers there are."""
    made = pool(("", ""), ("", ""))
    made.reset(range(2))
    shell = WATCHDOG._shell
    assert shell and lives(shell.pid) and len(WATCHDOG._groups) >= 2
    shell.kill()
    shell.wait()
    made._workers[0].kill()  # pyright: ignore[reportOptionalMemberAccess]
    made._workers[0] = None
    assert WATCHDOG._shell and WATCHDOG._shell.pid != shell.pid
    assert 1 in made.step({1: IDLE})
    others = len(WATCHDOG._groups) - 1
    made.close()
    assert len(WATCHDOG._groups) == others and bool(others) == (WATCHDOG._shell is not None)


@pytest.mark.filterwarnings("ignore")  # JAX warns of every fork
def test_a_forked_copy_of_the_parent_forgets_the_workers(traces: Path) -> None:
    """It neither ends them nor keeps them alive."""
    made = pool(("", ""))
    made.reset([0])
    number = os.fork()
    if not number:
        os._exit(0 if WATCHDOG._shell is None and not WATCHDOG._groups else 1)
    assert os.waitpid(number, 0)[1] == 0
    assert 0 in made.step({0: IDLE}) and living(traces)
    made.close()
    assert gone(traces)
