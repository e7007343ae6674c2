"""Processes of this machine that play the blocks of a run.

A process is started as a new program: a fork of a process that uses JAX may hang. It uses the CPU
alone, listens nowhere, and ends with this process.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from fp3o.envs.workers.watchdog import WATCHDOG
from fp3o.envs.workers.worker import NO_WINDOW, ONE_THREAD
from fp3o.runs.player import PlayerService, PlayerSettings
from fp3o.runs.progress import Display
from fp3o.training.player_pool import PlayerFailureError, PlayerPoolError, Request
from fp3o.training.players import BlockReply

PLAYER_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from fp3o.runs.player_process import serve_player; serve_player(int(sys.argv[1]))"
)
"""Program of a player. Arguments: its end of the pipe, and the module search path."""

THREADS = "FP3O_THREADS"
"""Environment variable: native threads of MuJoCo in a process."""

DEAD_SECONDS = 10.0
"""Seconds within which a process has ended after its pipe has."""


@dataclass(frozen=True)
class ProcessPlayers:
    """As many players in processes of this machine."""

    number: int
    timeout: float | None = None
    """Seconds for a rollout; None: ten times the median so far, and at least 60."""

    def start(self, settings: PlayerSettings, display: Display) -> "PlayerProcess":
        """Start one of them."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return PlayerProcess(settings, threads=max(1, (cores or 1) // self.number))


class PlayerProcess:
    """A process that plays, and the pipe to it."""

    def __init__(self, settings: PlayerSettings, threads: int = 1):
        if os.name != "posix":
            raise PlayerPoolError("players need Linux or macOS; on Windows, use WSL")
        self._connection, remote = Pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PLAYER_PROGRAM, str(remote.fileno()), *sys.path],
                stdin=subprocess.DEVNULL, pass_fds=(remote.fileno(),), start_new_session=True,
                env={THREADS: str(threads)} | NO_WINDOW | os.environ | ONE_THREAD | CPU_ALONE,
            )  # fmt: skip
        except OSError as error:
            raise PlayerPoolError(f"a player cannot be started: {error}") from error
        finally:
            remote.close()
        WATCHDOG.add(self._process.pid)
        # A thread waits for its messages, which may stop in the middle if the process does.
        self._thread = ThreadPoolExecutor(1)
        self.ready: Future[Any] = self._thread.submit(self._exchange, settings)

    def ask(self, request: Request) -> Future[dict[int, BlockReply]]:
        """Let it play; the result raises `PlayerFailureError` if it dies."""
        return self._thread.submit(self._exchange, request)

    def end(self) -> None:
        """End the process; what it runs itself ends with it."""
        # Until it is waited for, the process keeps its id, so no other process is killed.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        WATCHDOG.remove(self._process.pid)
        self._process.wait()
        self._thread.shutdown()  # its message has ended with the process
        self._connection.close()

    def _exchange(self, message: Any) -> Any:
        try:
            self._connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
            reply = pickle.loads(self._connection.recv_bytes())
        except (OSError, EOFError) as error:
            raise PlayerFailureError(self._status()) from error
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _status(self) -> str:
        try:
            code = self._process.wait(DEAD_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


CPU_ALONE = {"JAX_PLATFORMS": "cpu"}
"""Environment variables of a process that must not use memory of accelerators."""


def serve_player(pipe: int) -> None:
    """Answer requests until the pipe ends."""
    connection = Connection(pipe)
    with contextlib.suppress(EOFError, BrokenPipeError):
        service = PlayerService(pickle.loads(connection.recv_bytes()))
        connection.send_bytes(pickle.dumps(service.start()))
        while True:
            reply = service.play(pickle.loads(connection.recv_bytes()))
            connection.send_bytes(pickle.dumps(reply, pickle.HIGHEST_PROTOCOL))
