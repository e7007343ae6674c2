"""The parent's handle to one worker process.

Actions and replies are in shared memory. A pipe carries short messages that announce them and wake
the other side; the end of the pipe shows that a worker has died.
"""

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any

from fp3o.envs.workers.messages import MessageReader, last_lines
from fp3o.envs.workers.protocol import WorkerEnv, WorkerPoolError
from fp3o.envs.workers.serve import CLOSE, REQUEST, RESET, STEP
from fp3o.envs.workers.shared_memory import BufferSpec, Reply, SharedBuffer
from fp3o.envs.workers.watchdog import WATCHDOG

PROGRAM = (
    "import sys; sys.path[:] = sys.argv[3:]; from fp3o.envs.workers.serve import serve; "
    "serve(*map(int, sys.argv[1:3]))"
)
"""Program of a worker process. Arguments: its end of the pipe, the shared memory, and the module
search path."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

NO_WINDOW = {"SDL_VIDEODRIVER": "dummy"}
"""Without it pygame would open a window, or fail where there is no display."""

TAIL = 8000
"""Bytes of a worker's output that are kept for error messages."""

MAX_OUTPUT = 100_000
"""Bytes of output after which all but the last are discarded."""

POLL_SECONDS = 1.0
"""Time between two checks of the size of a worker's output."""


class Worker:
    """A worker process, the memory shared with it and the pipe to it."""

    def __init__(self, make: Callable[[int], WorkerEnv], seed: int, spec: BufferSpec):
        if os.name != "posix":
            raise WorkerPoolError("worker processes need Linux or macOS; on Windows, use WSL")
        self._last_request = 0
        self._buffer = SharedBuffer(spec)
        self._connection, remote = Pipe()
        self._poll = select.poll()
        self._poll.register(self._connection.fileno(), select.POLLIN)
        self._messages = MessageReader(self._connection.fileno(), self._wait)
        self._output = _output_file()
        passed = remote.fileno(), self._buffer.file
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", PROGRAM, *map(str, passed), *sys.path],
                stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
                pass_fds=passed, env={**NO_WINDOW, **os.environ, **ONE_THREAD},
                start_new_session=True,  # so that its subprocesses can be ended with it
            )  # fmt: skip
        finally:
            remote.close()
            os.close(self._buffer.file)  # the mapping stays
        WATCHDOG.add(self._process.pid)  # before the worker can go beyond its first message
        self._send(pickle.dumps((make, seed, spec)))

    def reset(self, seed: int, episode: int) -> None:
        """Request an episode."""
        self._request(RESET, seed, episode)

    def step(self, action: Any) -> None:
        """Request a step."""
        self._buffer.write_action(action)
        self._request(STEP)

    def close(self) -> None:
        """Request that the environment is closed."""
        self._request(CLOSE)

    def receive(self, deadline: float) -> Reply:
        """Wait for the reply to the last request; raise `WorkerFailureError` without one."""
        self._messages.reply(self._last_request, deadline)
        return self._buffer.read_reply()

    def kill(self) -> tuple[str, str]:
        """End the process with its subprocesses: its exit status and the end of its output."""
        # Until it is waited for, the process keeps its id, so no other process is killed.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        WATCHDOG.remove(self._process.pid)
        code = self._process.wait()
        self._connection.close()
        self._buffer.close()
        with self._output:
            output = last_lines(self._output_tail().decode(errors="replace"))
        return f"exit code {code}" if code >= 0 else f"ended by signal {-code}", output

    def _wait(self, deadline: float) -> bool:
        """Whether a message arrives in time; meanwhile the output file is kept small."""
        while True:
            left = max(0.0, deadline - time.monotonic())
            arrived = bool(self._poll.poll(1000 * min(left, POLL_SECONDS)))
            if os.fstat(self._output.fileno()).st_size > MAX_OUTPUT:
                output = self._output_tail()
                self._output.truncate(0)
                self._output.write(output)
            if arrived or left <= POLL_SECONDS:
                return arrived

    def _output_tail(self) -> bytes:
        file = self._output
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        return file.read(TAIL)

    def _request(self, kind: int, seed: int = 0, episode: int = 0) -> None:
        self._last_request += 1
        self._send(REQUEST.pack(self._last_request, kind, seed, episode))

    def _send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead worker is noticed when its reply is awaited
            self._connection.send_bytes(message)


def _output_file() -> Any:
    """An unnamed file to which every process appends, wherever another one reads."""
    import fcntl  # not on Windows

    file = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file
