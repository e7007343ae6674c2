"""Interruptions: Ctrl-C and termination end training after the current iteration.

Python handles a signal between two instructions of the main thread, so a compilation or a long
computation would delay the answer to Ctrl-C. A second thread answers where the main one does not.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

ANSWER_SECONDS = 1.5
"""Time that the main thread has to handle an interruption before it is answered in its place."""

END_SECONDS = 10.0
"""Time that an interrupted command has to close its environments and files."""

AGAIN_SECONDS = 0.1
"""Time after which an interruption that was dropped is raised again."""

INTERRUPTED = 130
"""Exit status of an interrupted command."""

STOPPING = "stopping after this iteration ..."

DROPPED = 0
"""Byte that asks for an interruption again; signals are numbered from 1."""

_COLLECTED: list[list[int]] = []
"""Signals received, one list per active context; the newest last."""

_HANDLED = [0.0]
"""When the main thread has last handled an interruption."""

_AT_ONCE = [0]
"""Number of active contexts in which nothing is worth waiting for."""

_SAID = [False]
"""Whether the other thread has said that the command will stop."""


@contextlib.contextmanager
def stop_signals(say: Callable[[str], None]) -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of stopping at once; a second Ctrl-C stops at once.

    Nested contexts share their signals: stopping a run also stops the grid it belongs to.
    """
    received: list[int] = [*_COLLECTED[-1]] if _COLLECTED else []

    def handle(number: int, frame: FrameType | None) -> None:
        _HANDLED[0] = time.monotonic()
        if number == signal.SIGINT and (received or _AT_ONCE[0]):
            raise KeyboardInterrupt
        if not received and not _SAID[0]:
            say(STOPPING)
        for collected in _COLLECTED:
            collected.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread may handle signals
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    _COLLECTED.append(received)
    try:
        yield received
    finally:
        # By identity: loops side by side do not end in the reverse order of their beginnings.
        _COLLECTED[:] = [collected for collected in _COLLECTED if collected is not received]
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def stop_at_once() -> Iterator[None]:
    """Let the first Ctrl-C stop at once again: while a program is compiled, nothing is lost.

    One that was collected before stops here.
    """
    if any(signal.SIGINT in collected for collected in _COLLECTED):
        raise KeyboardInterrupt
    _AT_ONCE[0] += 1
    try:
        yield
    finally:
        _AT_ONCE[0] -= 1


@contextlib.contextmanager
def prompt_interrupts() -> Iterator[None]:
    """Answer Ctrl-C within two seconds, also while the main thread computes without a pause.

    Nothing that is saved is lost if the process ends: files are replaced as a whole.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # another handler, or the shell lets this process ignore Ctrl-C
        return
    _SAID[0] = False
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watcher = threading.Thread(target=_watch, args=(reader,), daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    hook = sys.unraisablehook

    def repeat(dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            os.write(writer, bytes([DROPPED]))
        else:
            hook(dropped)

    sys.unraisablehook = repeat
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = hook
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _HANDLED[0] = time.monotonic()
    raise KeyboardInterrupt


def _watch(reader: int) -> None:
    """Answer every interruption that the main thread does not, until the pipe is closed."""
    interruptions, received = 0, 0.0
    wait: float | None = None
    while True:
        ready, _, _ = select.select([reader], [], [], wait)
        if not ready:
            wait = _answer(interruptions, _HANDLED[0] >= received)
            continue
        numbers = os.read(reader, 64)
        if not numbers:  # the command has ended
            return
        if DROPPED in numbers:  # by a callback of a weak reference or a destructor
            interruptions -= 1
            time.sleep(AGAIN_SECONDS)  # raised in the hook, it would be dropped again
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if signal.SIGINT in numbers:
            # The main thread may have been first.
            received, wait = time.monotonic() - ANSWER_SECONDS / 2, ANSWER_SECONDS
            interruptions += 1


def _answer(interruptions: int, handled: bool) -> float | None:
    """Say or do what an interruption needs after a while; seconds until the next look."""
    waits = bool(_COLLECTED) and not _AT_ONCE[0]
    if handled and waits:
        return None  # the main thread has said that it will stop
    if not handled and waits and interruptions == 1:
        _write(STOPPING)
        _SAID[0] = True
        return None
    if handled and not _SAID[0]:
        _write("interrupted: closing environments and files ...")
        _SAID[0] = True
        return END_SECONDS
    _write("interrupted; what was saved is intact: `fp3o resume` continues a run")
    os._exit(INTERRUPTED)


def _write(text: str) -> None:
    """A line on the terminal, whose cursor a progress bar may have hidden."""
    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{cursor}{text}\n".encode())
