"""TODO."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_COLLECTED: list[list[int]] = []
"""Requests to stop, of all who collect them now; the innermost last."""


@contextlib.contextmanager
def stop_signals(say: Callable[[str], None]) -> Iterator[list[int]]:
    """Collect requests to stop (Ctrl-C, termination) instead of dying; a second Ctrl-C dies.

    Inside of another such context, what was asked there counts here, and the other way round: who
    stops a run stops the grid it belongs to.
    """
    asked: list[int] = [*_COLLECTED[-1]] if _COLLECTED else []

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and asked:
            raise KeyboardInterrupt
        if not asked:
            say("stopping after this iteration ...")
        for collected in _COLLECTED:
            collected.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield asked  # only the main thread may handle signals
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    _COLLECTED.append(asked)
    try:
        yield asked
    finally:
        _COLLECTED.pop()
        for number, handler in before.items():
            signal.signal(number, handler)
