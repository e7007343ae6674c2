"""Stop signals: Ctrl-C and termination end training after the current iteration."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

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
    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    _COLLECTED.append(received)
    try:
        yield received
    finally:
        # Not always the last one: two loops may take turns.
        _COLLECTED[:] = [other for other in _COLLECTED if other is not received]
        for number, handler in before.items():
            signal.signal(number, handler)


class SignalSwap:
    """The signal handlers of a generator, in effect only while it runs.

    What its caller does between two steps is stopped by Ctrl-C as always.
    """

    def __init__(self) -> None:
        self._inside: dict[int, Any] = {}
        self._outside: dict[int, Any] = {}

    def __enter__(self) -> None:
        self._outside = self._swap(self._inside)

    def __exit__(self, *_: object) -> None:
        self._inside = self._swap(self._outside)

    def _swap(self, handlers: Mapping[int, Any]) -> dict[int, Any]:
        """Install handlers; returns those before."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        for number, handler in handlers.items():
            if handler is not None:  # not installed by Python
                signal.signal(number, handler)
        return before
