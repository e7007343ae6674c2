"""Environments in processes of their own, watched over: what breaks is replaced and counted.

A `Crew` knows nothing of the game. Each of its workers owns a place: an object, made in the
worker's process by a factory that can be pickled, whose `reset` and `step` return tuples of arrays
of known shapes. A worker that dies, does not answer in time or answers nonsense is ended with
everything it has started, and another one takes its place.

Actions and answers lie in memory that both sides share. A pipe says only that they are there, and
wakes the other side; it is what tells a worker that has died.

Worker processes import this module, so it needs NumPy only: they start in a moment.
"""

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from fp3o.envs.workers.protocol import (
    FailureError,
    InvalidReplyError,
    WorkerEnv,
    WorkerPoolError,
    check_reply,
)
from fp3o.envs.workers.shared_memory import BufferSpec, Reply, SharedBuffer

START = (
    "import sys; sys.path[:] = sys.argv[4:]; from fp3o.envs.workers.worker import serve; "
    "serve(*map(int, sys.argv[1:4]))"
)
"""What a worker runs: told are its end of the pipe, the shared memory, our number, and where we
find modules."""

ORDER = struct.Struct("<qBqq")
"""The number of an order, which one it is, and for a reset the seed and the episode."""

RESET, STEP, CLOSE = range(3)

ANSWER = struct.Struct("<q")
"""The number of the order whose answer is on the slate. Anything longer is a pickled trouble."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

NO_WINDOW = {"SDL_VIDEODRIVER": "dummy"}
"""Nobody looks at a worker; pygame would open a window, or fail where there is no screen."""

TAIL = 2000
"""Letters of a worker's last words that are told."""

PRINTED = 100_000
"""Letters that a worker may print before all but the last are forgotten."""

LOOK = 1.0
"""Seconds between two looks at how much a worker has printed."""


class Worker:
    """One process, the slate shared with it, and the pipe to it."""

    def __init__(self, make: Callable[[int], WorkerEnv], seed: int, form: BufferSpec):
        if os.name != "posix":
            raise WorkerPoolError("worker processes need Linux or macOS; on Windows, use WSL")
        self._asked = 0
        self._slate = SharedBuffer(form)
        self._link, far = Pipe()
        self._bell = select.poll()
        self._bell.register(self._link.fileno(), select.POLLIN)
        self._words = scratch()
        handed = far.fileno(), self._slate.file
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", START, *map(str, (*handed, os.getpid())), *sys.path],
                stdin=subprocess.DEVNULL, stdout=self._words, stderr=subprocess.STDOUT,
                pass_fds=handed, env={**NO_WINDOW, **os.environ, **ONE_THREAD},
                start_new_session=True,  # so that it can be ended with all that it starts
            )  # fmt: skip
        finally:
            far.close()
            os.close(self._slate.file)  # what is mapped stays
        self._send(pickle.dumps((make, seed, form)))

    def reset(self, seed: int, episode: int) -> None:
        """Ask for an episode."""
        self._order(RESET, seed, episode)

    def step(self, action: Any) -> None:
        """Ask for a step."""
        self._slate.ask(action)
        self._order(STEP)

    def close(self) -> None:
        """Ask it to put everything away."""
        self._order(CLOSE)

    def hear(self, deadline: float) -> Reply:
        """The answer to the last order."""
        try:
            while self._wait(deadline):
                message = self._link.recv_bytes()
                if len(message) != ANSWER.size:
                    raise FailureError(*pickle.loads(message))
                if ANSWER.unpack(message)[0] == self._asked:  # not one an interruption has left
                    return self._slate.answered()
        except (EOFError, OSError):
            raise FailureError("crashed", "") from None
        except FailureError:
            raise
        except Exception as error:
            raise FailureError("garbage", f"an answer that cannot be read: {error!r}") from error
        raise FailureError("hung", "no answer in time")

    def kill(self) -> tuple[str, str]:
        """End it and all that it has started; how it ended, and the last words it printed."""
        # A process that nobody has waited for keeps its number, so the right ones are ended.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._link.close()
        self._slate.close()
        with self._words:
            words = self._last_words().decode(errors="replace").strip()
        return f"exit code {code}" if code >= 0 else f"ended by signal {-code}", words

    def _wait(self, deadline: float) -> bool:
        """Whether something has come in time; meanwhile, what is printed does not pile up."""
        while True:
            left = max(0.0, deadline - time.monotonic())
            heard = bool(self._bell.poll(1000 * min(left, LOOK)))
            if os.fstat(self._words.fileno()).st_size > PRINTED:
                words = self._last_words()
                self._words.truncate(0)
                self._words.write(words)
            if heard or left <= LOOK:
                return heard

    def _last_words(self) -> bytes:
        file = self._words
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        return file.read(TAIL)

    def _order(self, which: int, seed: int = 0, episode: int = 0) -> None:
        self._asked += 1
        self._send(ORDER.pack(self._asked, which, seed, episode))

    def _send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it is gone: seen when its answer is awaited
            self._link.send_bytes(message)


def scratch() -> Any:
    """A file without a name, to whose end everybody writes, wherever another one reads."""
    import fcntl  # Windows has none

    file = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file


def serve(pipe: int, slate: int, parent: int) -> None:
    """A worker's life: obey until told to close, or until nobody is left to tell."""
    threading.Thread(target=_stay_with, args=(parent,), daemon=True).start()
    link = Connection(pipe)
    try:
        _obey(link, slate)
    except BaseException as error:
        garbage = isinstance(error, InvalidReplyError)
        trouble = ("garbage", str(error)) if garbage else ("crashed", traceback.format_exc())
        with contextlib.suppress(OSError):
            link.send_bytes(pickle.dumps(trouble))
    finally:
        _leave()


def _obey(link: Connection, file: int) -> None:
    make, seed, form = pickle.loads(link.recv_bytes())
    slate, place = SharedBuffer(form, file), make(seed)
    while (order := _next(link))[1] != CLOSE:
        number, which, *numbers = order
        answer = place.reset(*numbers) if which == RESET else place.step(slate.asked())
        slate.answer(check_reply(answer, form.answer))
        link.send_bytes(ANSWER.pack(number))
    place.close()


def _next(link: Connection) -> tuple[int, ...]:
    try:
        return ORDER.unpack(link.recv_bytes())
    except EOFError:
        return 0, CLOSE


def _stay_with(parent: int) -> None:
    """Leave when the parent has gone, even if the place hangs."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _leave()


def _leave() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)
