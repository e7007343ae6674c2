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
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from fp3o.envs.slate import Field, Form, Reply, Slate

START = (
    "import sys; sys.path[:] = sys.argv[4:]; from fp3o.envs.workers import serve; "
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
GOODBYE = 10.0
"""Seconds that workers have to close what they own."""
TAIL = 2000
"""Letters of a worker's last words that are told."""
PRINTED = 100_000
"""Letters that a worker may print before all but the last are forgotten."""
LOOK = 1.0
"""Seconds between two looks at how much a worker has printed."""


class WorkersError(RuntimeError):
    """Environments fail, in workers again and again; the message says how, and what to do."""


class GarbageError(ValueError):
    """An environment's answer makes no sense."""


@runtime_checkable
class Place(Protocol):
    """What a worker owns."""

    def reset(self, seed: int, episode: int, /) -> Reply:
        """Begin an episode: if the game allows it, the same one for the same two numbers."""
        ...

    def step(self, action: Any) -> Reply:
        """Play an action."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Patience(NamedTuple):
    """How long to wait, and how often to try again."""

    reset: int | float = 300.0
    """Seconds an episode may take to begin, the start of the worker and of its game included."""
    step: int | float = 60.0
    """Seconds a step may take."""
    restarts: int = 3
    """Of one worker, in succession, without a finished step; 0: the first failure is an error."""


@dataclass
class Losses:
    """What went wrong since the beginning."""

    crashed: int = 0
    hung: int = 0
    garbage: int = 0
    restarts: int = 0
    steps: int = 0
    """Steps of episodes that could not be played to their ends."""

    def metrics(self) -> dict[str, int]:
        """The counts by the names they have among the metrics of a run."""
        return {
            "env_crashed": self.crashed,
            "env_hung": self.hung,
            "env_garbage": self.garbage,
            "env_restarts": self.restarts,
            "env_lost_steps": self.steps,
        }


class FailureError(Exception):
    """A worker has failed: `crashed`, `hung` or (returned) `garbage`."""

    def __init__(self, reason: str, words: str):
        super().__init__(reason, words)
        self.reason, self.words = reason, words


class Worker:
    """One process, the slate shared with it, and the pipe to it."""

    def __init__(self, make: Callable[[int], Place], seed: int, form: Form):
        if os.name != "posix":
            raise WorkersError("worker processes need Linux or macOS; on Windows, use WSL")
        self._asked = 0
        self._slate = Slate(form)
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


class Crew:
    """Workers that are given orders together. They are started when they are first needed.

    A failure ends the worker's episode; the rest goes on. All processes end with the crew, or at
    the latest with this process, however it ends.
    """

    def __init__(
        self,
        make: Callable[[int], Place],
        form: Form,
        num_workers: int,
        patience: Patience = Patience(),  # noqa: B008
    ):
        self.make, self.form, self.patience = make, form, patience
        self.losses = Losses()
        self.seeds = list(range(num_workers))
        """What the next places are made with."""
        self.steps = np.zeros(num_workers, np.int64)
        """Steps of each worker's episode."""
        self.episodes = np.zeros(num_workers, np.int64)
        """Numbers of the episodes that begin next."""
        self._strikes = [0] * num_workers
        self._workers: list[Worker | None] = [None] * num_workers
        weakref.finalize(self, dismiss, self._workers)

    def reset(self, who: Sequence[int]) -> list[Reply]:
        """Begin an episode in some of the workers, with new workers if need be."""
        answers: dict[int, Reply] = {}
        self.steps[list(who)] = 0
        while missing := [i for i in who if i not in answers]:
            for i in missing:
                self._worker(i).reset(self.seeds[i], int(self.episodes[i]))
            answers |= self._answers(missing, self.patience.reset)
        self.episodes[list(who)] += 1
        return [answers[i] for i in who]

    def step(self, actions: Mapping[int, Any]) -> dict[int, Reply]:
        """Play an action in some of the workers; where no answer comes, the episode is lost."""
        for i, action in actions.items():
            self._worker(i).step(action)
        answers = self._answers(actions, self.patience.step)
        for i in answers:
            self.steps[i] += 1
            self._strikes[i] = 0
        return answers

    def close(self) -> None:
        """End all workers; a later order starts new ones."""
        dismiss(self._workers)

    def _answers(self, who: Iterable[int], limit: int | float) -> dict[int, Reply]:
        """The answers of those that gave one; the others are out of work now."""
        deadline, answers, failures = time.monotonic() + limit, {}, {}
        for i in who:
            try:
                answers[i] = self._worker(i).hear(deadline)
            except FailureError as failure:
                failures[i] = failure
        told = [self._lose(i, failure) for i, failure in failures.items()]
        for text in told:  # last: a warning may be made an error
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        return answers

    def _worker(self, i: int) -> Worker:
        worker = self._workers[i]
        if worker is None:
            try:
                worker = self._workers[i] = Worker(self.make, self.seeds[i], self.form)
            except OSError as error:
                raise WorkersError(f"worker {i} cannot be started: {error}") from error
        return worker

    def _lose(self, i: int, failure: FailureError) -> str:
        """Count a failure and make room for another worker; what happened, in a sentence."""
        ending, printed = self._worker(i).kill()
        self._workers[i] = None
        steps, self.steps[i] = int(self.steps[i]), 0
        self.seeds[i] += 1  # what this one has led to should not happen again
        self._strikes[i] += 1
        losses, reason = self.losses, failure.reason
        setattr(losses, reason, getattr(losses, reason) + 1)
        losses.steps += steps
        words = failure.words.strip() or ending
        if self._strikes[i] > self.patience.restarts:
            self.close()
            how = (
                f"{self._strikes[i]} times in succession without finishing a step; at last"
                if self.patience.restarts
                else f"after {steps} steps of its episode, and no restarts are allowed"
            )
            raise WorkersError(
                f"worker {i} failed {how}: {reason}, {words}\nThe last words it printed: "
                f"{printed or '(none)'}\nSee what `fp3o doctor` says about its game"
            )
        losses.restarts += 1
        return (
            f"worker {i}: {reason}, {words.splitlines()[-1]}; its episode ends after {steps} "
            "steps as one cut by a time limit, and another worker is started"
        )


def checked(answer: Any, form: Sequence[Field]) -> Reply:
    """An answer, if it makes sense."""
    if found := nonsense(answer, form):
        raise GarbageError(found)
    return answer


def nonsense(answer: Any, form: Sequence[Field]) -> str | None:
    """What is wrong with an answer, if anything."""
    if not isinstance(answer, tuple) or len(answer) != len(form):
        return f"an answer that is no tuple of {len(form)} arrays: {str(answer)[:100]}"
    for (name, shape, dtype), x in zip(form, answer, strict=True):
        if not isinstance(x, np.ndarray):
            return f"{name} is a {type(x).__name__}, not an array"
        if x.shape != shape or x.dtype != dtype:
            return f"{name} is {x.dtype}{x.shape}, expected {np.dtype(dtype)}{shape}"
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            return f"{name} is not finite"
    return None


def scratch() -> Any:
    """A file without a name, to whose end everybody writes, wherever another one reads."""
    import fcntl  # Windows has none

    file = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file


def dismiss(workers: list[Worker | None]) -> None:
    """End workers, those that can with everything put away."""
    there = [worker for worker in workers if worker]
    workers[:] = [None] * len(workers)
    for worker in there:
        worker.close()
    deadline = time.monotonic() + GOODBYE
    for worker in there:
        with contextlib.suppress(FailureError):
            worker.hear(deadline)
        worker.kill()


def serve(pipe: int, slate: int, parent: int) -> None:
    """A worker's life: obey until told to close, or until nobody is left to tell."""
    threading.Thread(target=_stay_with, args=(parent,), daemon=True).start()
    link = Connection(pipe)
    try:
        _obey(link, slate)
    except BaseException as error:
        garbage = isinstance(error, GarbageError)
        trouble = ("garbage", str(error)) if garbage else ("crashed", traceback.format_exc())
        with contextlib.suppress(OSError):
            link.send_bytes(pickle.dumps(trouble))
    finally:
        _leave()


def _obey(link: Connection, file: int) -> None:
    make, seed, form = pickle.loads(link.recv_bytes())
    slate, place = Slate(form, file), make(seed)
    while (order := _next(link))[1] != CLOSE:
        number, which, *numbers = order
        answer = place.reset(*numbers) if which == RESET else place.step(slate.asked())
        slate.answer(checked(answer, form.answer))
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
