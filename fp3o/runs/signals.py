"""Stop signals: Ctrl-C and termination end training after the current iteration."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_COLLECTED: list[list[int]] = []
"""Signals received, one list per active context; the innermost last."""


@contextlib.contextmanager
def stop_signals(say: Callable[[str], None]) -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of stopping at once; a second Ctrl-C stops at once.

    Nested contexts share their signals: stopping a run also stops the grid it belongs to.
    """
    received: list[int] = [*_COLLECTED[-1]] if _COLLECTED else []

    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and received:
            raise KeyboardInterrupt
        if not received:
            say("stopping after this iteration ...")
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
        _COLLECTED.pop()
        for number, handler in before.items():
            signal.signal(number, handler)
