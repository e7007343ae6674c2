"""A task on the host by import path, whose environments may fail once in a player.

Other processes import this module to make its environments.
"""

import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from host_probe import HostCue, HostProbe

from fp3o.envs.adapters.variants import write_variant
from fp3o.envs.api import HostEnv
from fp3o.envs.toys.probe import PROBES, Probe
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

TASK = "python:host_cues:CueTask"


class CueBatch(HostProbe):
    """The probe `credit`; a file in its folder is a failure, which the first player takes."""

    def __init__(self, task: "CueTask", num_envs: int):
        probe = PROBES["credit"]
        assert isinstance(probe, Probe)
        super().__init__(probe, num_envs)
        object.__setattr__(self, "task", task)
        object.__setattr__(self, "steps", [])

    @property
    def spec(self) -> EnvSpec:
        return self.task.spec  # pyright: ignore[reportAttributeAccessIssue]

    def step(self, state: HostCue, action: Any) -> tuple[HostCue, TimeStep]:
        task: Any = self.task  # pyright: ignore[reportAttributeAccessIssue]
        self.steps.append(1)  # pyright: ignore[reportAttributeAccessIssue]
        if task.folder and len(self.steps) > task.late and "pytest" not in sys.modules:  # pyright: ignore
            fail_once(Path(task.folder))
        return super().step(state, action)


@dataclass(frozen=True)
class CueTask(HostEnv):
    """Its players fail after `late` steps, if the folder says so."""

    folder: str = ""
    late: int = 10
    max_episode_steps = 3

    @property
    def spec(self) -> EnvSpec:
        given = {"folder": self.folder, "late": self.late}
        arguments = [(name, x) for name, x in given.items() if x != getattr(CueTask, name)]
        options = f":{write_variant({}, arguments)}" if arguments else ""
        return replace(PROBES["credit"].spec, name=f"python/host_cues.CueTask{options}")

    def vectorise(self, num_envs: int) -> CueBatch:
        return CueBatch(self, num_envs)


def fail_once(folder: Path) -> None:
    """Do what a file is named after, unless another process has taken it."""
    for file in folder.iterdir():
        try:
            file.rename(folder.parent / f"{file.name}-{os.getpid()}")
        except FileNotFoundError:
            continue
        if file.name == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if file.name == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if file.name == "raise":
            raise RuntimeError("the cues are lost")
        time.sleep(1e6)
