"""An environment for worker processes that fails on purpose.

Worker processes import this: no JAX, and of the library only what needs NumPy alone.
"""

import ctypes
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.envs.workers.protocol import WorkerEnv


@dataclass(frozen=True)
class FailingEnvs:
    """Makes environments that count their steps, and fail as planned for their seed.

    `plan[seed]` names a failure and its time: at a step's number, or in the first reset or a later
    one ("reset", "again"). A worker that replaces a failed one has the next seed. Every
    process leaves its id in the folder FAKE_TRACES.
    """

    plan: dict[int, tuple[str, str | int]]
    length: int = 5
    """Steps of an episode."""

    def __call__(self, seed: int) -> "Counting":
        leave_trace(os.getpid())
        return Counting(self, seed, *self.plan.get(seed, ("", "")))


class Counting(WorkerEnv):
    """An environment that observes its seed and the number of steps."""

    def __init__(self, maker: FailingEnvs, seed: int, failure: str, when: str | int) -> None:
        self._maker, self._seed, self._failure, self._when = maker, seed, failure, when
        self._time, self._resets = 0, 0

    def reset(self, seed: int, episode: int) -> Any:
        self._time, self._resets = 0, self._resets + 1
        return self._reply("reset" if self._resets == 1 else "again")

    def step(self, action: Any) -> Any:
        self._time += 1
        return self._reply(self._time)

    def close(self) -> None:
        if self._failure == "stay":
            time.sleep(1e6)

    def _reply(self, moment: str | int) -> Any:
        over = self._time == self._maker.length
        reply = (
            np.full((2, 3), self._time, np.float32),
            np.full((2, 1), self._seed, np.float32),
            np.ones((2, 2), bool),
            np.ones(2, bool),
            np.full(2, 1.0, np.float32),
            np.array(over),
            np.array(False),
            np.array([over, 0, self._time], np.float32),
        )
        return fail(self._failure, reply) if moment == self._when else reply


def leave_trace(number: int) -> None:
    if folder := os.environ.get("FAKE_TRACES"):
        (Path(folder) / str(number)).touch()


def write_to_sockets(content: bytes) -> None:
    """What an environment that writes to a wrong file would do, and then hang."""
    for file in range(3, 50):
        try:
            if stat.S_ISSOCK(os.fstat(file).st_mode):
                os.write(file, content)
        except OSError:
            continue
    time.sleep(1e6)


def fail(failure: str, reply: tuple[np.ndarray, ...]) -> Any:
    """End, hang or return a wrong reply."""
    obs, *rest = reply
    if failure == "exit":
        print("the game says goodbye", file=sys.stderr)
        os._exit(7)
    if failure == "raise":
        raise RuntimeError("the game has no mood")
    if failure == "native":  # holds the interpreter's lock
        ctypes.PyDLL(None).sleep(1000)
    if failure == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if failure == "fork":  # the copy returns from the environment as well
        leave_trace(os.fork() or os.getpid())
        return reply
    if failure == "fork and exit":
        if os.fork():
            os._exit(7)
        leave_trace(os.getpid())
        time.sleep(1e6)
    if failure.startswith("print"):
        print(failure[5:] * 2000, file=sys.stderr, flush=True)
        os._exit(7)
    if failure.startswith("write"):  # to all sockets, the pipe among them
        write_to_sockets(bytes.fromhex(failure[5:]))
    if failure in ("hang", "hang with a child"):
        if failure == "hang with a child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1e6)"])
            leave_trace(child.pid)
        time.sleep(1e6)
    wrong = {
        "shape": (obs[:1], *rest),
        "dtype": (obs.astype(np.float64), *rest),
        "nan": (obs * np.nan, *rest),
        "list": (obs.tolist(), *rest),
        "short": (obs,),
        "text": "all is well",
        "unpicklable": lambda: None,
    }
    return wrong[failure]
