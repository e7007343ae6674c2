"""Worker pools of environments that fail, and the processes they leave."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from failing_env import FailingEnvs

from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import FailureCounts, Timeouts, buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.spec import Discrete, EnvSpec

METRICS = ("won", "dead_allies", "dead_enemies")
SPEC = EnvSpec(
    "test/counting", Discrete(((2,), (2,))), 3, 1, (0, 0), truncates=True, episode_metrics=METRICS
)
QUICK = Timeouts(reset=30, step=1.5)
IDLE = np.zeros((2, 1), int)
FAR = 100
"""Between the seeds of two workers."""


def counts(**numbers: int) -> dict[str, int]:
    """Failure counts by metric name."""
    return FailureCounts(**numbers).metrics()


def living(traces: Path) -> set[int]:
    """Processes that left a trace and are still running."""
    return {int(path.name) for path in traces.iterdir() if lives(int(path.name))}


def lives(number: int) -> bool:
    """Whether a process runs; one that has ended may still have to be waited for."""
    try:
        os.kill(number, 0)
        return " Z " not in Path(f"/proc/{number}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # a system without this folder


def gone(traces: Path, seconds: float = 10.0) -> bool:
    """Whether no process is left, at once or soon."""
    deadline = time.monotonic() + seconds
    while living(traces) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not living(traces)


def pool(*failures: tuple[str, str | int], timeouts: Timeouts = QUICK) -> WorkerPool:
    """Workers whose first environments fail; those that replace them do not."""
    plan = {FAR * i: failure for i, failure in enumerate(failures)}
    made = WorkerPool(FailingEnvs(plan), buffer_spec(SPEC), len(failures), timeouts)
    made.seeds[:] = [FAR * i for i in range(len(failures))]
    return made


def plan_of(made: WorkerPool) -> dict[int, tuple[str, str | int]]:
    """Failures of the environments of a pool by seed, to be changed."""
    assert isinstance(made.make, FailingEnvs)
    return made.make.plan


def batch(monkeypatch: pytest.MonkeyPatch, *failures: tuple[str, str | int]) -> PooledVecEnv:
    """The same as a batch of environments."""
    monkeypatch.setattr(PooledVecEnv, "env_seed", lambda self, key, index: FAR * index)
    plan = {FAR * i: failure for i, failure in enumerate(failures)}
    return PooledVecEnv(
        SPEC, WorkerPool(FailingEnvs(plan), buffer_spec(SPEC), len(failures), QUICK)
    )


def idle(number: int) -> np.ndarray:
    """Actions of all agents."""
    return np.zeros((number, 2, 1), int)
