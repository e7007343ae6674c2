"""Limits of a run: what cannot fit is refused with numbers, at once and before a file exists."""

import dataclasses
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fp3o
from fp3o.envs.check import check_env
from fp3o.errors import SettingError
from fp3o.runs.limits import (
    RunCounts,
    container_memory,
    device_memory,
    memory_needed,
    num_parameters,
)
from fp3o.runs.run_config import RunConfig

BASE = RunConfig.from_preset("probe/credit")
MEMORY = r"would need at least [\d,.]+ GiB, and there are [\d,.]+ GiB of memory: lower"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 10**6}, "seeds must be at most 10000"),
        ({"seeds": 10_000, "hidden": (2048, 2048)}, f"networks and their optimisers {MEMORY}"),
        ({"hidden": (10_000, 10_000)}, "policy would have 100070000 parameters, at most 67108864"),
        ({"num_envs": 10**8, "rollout": 20}, f"a rollout {MEMORY} num_envs, rollout or seeds"),
        ({"eval_episodes": 10**10}, "an evaluation has at most 1000000000 episodes"),
        ({"eval_episodes": 10**9, "seeds": 10}, f"an evaluation {MEMORY} eval_episodes"),
        ({"final_episodes": 10**10}, "an evaluation has at most 1000000000 episodes"),
        ({"final_episodes": 10**9, "seeds": 100}, f"results of an evaluation {MEMORY} final_ep"),
        ({"num_envs": 10**9, "rollout": 1000, "minibatches": 7}, "lower num_envs or rollout"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_fit_is_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    started = time.perf_counter()
    with pytest.raises(SettingError, match=message):
        fp3o.train("probe/credit", out=tmp_path / "run", progress="quiet", **settings)
    assert time.perf_counter() - started < 5
    assert not (tmp_path / "run").exists()


def test_what_fits_is_accepted() -> None:
    """Long runs, and many checkpoints, are the choice of the user."""
    for settings in ({"steps": 2**63 - 1}, {"keep_checkpoints": 10**6}, {"seed": 2**32 - 1}):
        BASE.with_settings(settings).check()


def test_parameters_are_counted() -> None:
    """The matrices of actor and critic, as they are made, for several sharings and a GRU."""
    from fp3o.learning.setup import Setup

    spec = BASE.task_info.spec()
    for changes in (
        {}, {"sharing": "none"}, {"sharing": "partial", "gru_size": 5, "sequence_length": 2},
        {"critic_sharing": (0, 0, 1), "agent_id": False, "algorithm": "ippo"},
        {"critic": "attention", "gru_size": 5, "sequence_length": 2},
        {"critic": "graph", "sharing": "none"},
    ):  # fmt: skip
        spec = dataclasses.replace(spec, adjacency=((1,), (2,), (0,)))
        learner = BASE.learner.replace(hidden=(8, 6), **changes)
        setup = Setup(spec, learner)
        made = sum(x.size for x in (*setup.init(0).actor, *setup.init(0).critic))
        assert 0.6 * made < sum(num_parameters(spec, learner)) < made


MEASURE = """
from pathlib import Path
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program

def peak():  # of this program alone: the kernel's `ru_maxrss` begins with that of its parent
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

def train(num_envs):
    config = Config("mappo", num_envs=num_envs, rollout=128, hidden=(8,), epochs=1, minibatches=8)
    program = Program(VmapEnv(PROBES["credit"], num_envs), config)
    state, _ = program.iterate(program.init(0))
    state.key.block_until_ready()

train(8)
before = peak()
train(8192)
print(peak() - before)
"""


def test_memory_is_a_lower_bound() -> None:
    """A program needs more than estimated, and not very much more."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    learner = BASE.learner.replace(num_envs=8192, rollout=128, hidden=(8,), algorithm="mappo")
    needed = memory_needed(BASE.task_info.spec(), learner, RunCounts(1, 1, 1))["a rollout"].bytes
    assert needed < int(done.stdout) < 20 * needed
    assert needed < device_memory()


def test_a_container_limits_memory(tmp_path: Path) -> None:
    """The smallest limit of the groups around a process; `max` is none."""
    own, inner = tmp_path / "cgroup", tmp_path / "groups" / "job" / "step"
    assert container_memory(tmp_path, own) == sys.maxsize
    inner.mkdir(parents=True)
    own.write_text("1:cpu:/other\n0::/job/step\n")
    (inner / "memory.max").write_text("max\n")
    assert container_memory(tmp_path / "groups", own) == sys.maxsize
    (inner.parent / "memory.max").write_text("5000\n")
    assert container_memory(tmp_path / "groups", own) == 5000
    (tmp_path / "groups" / "memory" / "old").mkdir(parents=True)
    (tmp_path / "groups" / "memory" / "old" / "memory.limit_in_bytes").write_text("4000\n")
    own.write_text("4:memory:/old\n0::/job/step\n")
    assert container_memory(tmp_path / "groups", own) == 4000
    assert 0 < device_memory() <= container_memory()


@pytest.mark.parametrize("seed", [2**32, -1, 2**64])
def test_seeds_of_other_commands(seed: int, tmp_path: Path) -> None:
    """Seeds that random keys cannot tell apart are refused alike."""
    with pytest.raises(SettingError, match="seeds must be integers from 0 to 4294967295"):
        check_env("probe/credit", seed=seed)
    with pytest.raises(SettingError, match="seeds must be integers from 0 to 4294967295"):
        fp3o.evaluate(tmp_path, episodes=1, seed=seed)
    with pytest.raises(SettingError, match="an evaluation has at most"):
        fp3o.evaluate(tmp_path, episodes=10**10)
