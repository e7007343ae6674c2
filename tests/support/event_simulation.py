"""Simulated time: a queue of events, and programs that run, stall and crash in it.

A program is a generator: it yields what it asks for (a request to a store, a computation, a wait)
and receives the reply. Nothing in it knows about the simulation, so the same program could be run
against a real store.
"""

import heapq
import itertools
from collections.abc import Callable, Generator
from typing import Any

Program = Generator[Any, Any, None]


class Events:
    """Functions to be called, in the order of their simulated times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], Any]]] = []
        self._order = itertools.count()

    def after(self, seconds: float, call: Callable[[], Any]) -> None:
        """Call a function so many seconds from now."""
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), call))

    def run(self, seconds: float, finished: Callable[[], bool]) -> None:
        """Let time pass until a condition holds, nothing is left to do or the time is over."""
        while self._queue and not finished():
            time, _, call = heapq.heappop(self._queue)
            if time > seconds:
                return
            self.now = time
            call()


class Process:
    """A running program, which waits for one reply at a time."""

    def __init__(
        self, name: str, program: Program, events: Events, serve: Callable[["Process", Any], None]
    ):
        self.name, self.killed, self.ended = name, False, False
        self._program, self._events, self._serve = program, events, serve
        self._stalled_until = 0.0
        events.after(0.0, lambda: self._resume(None))

    @property
    def alive(self) -> bool:
        """Whether it may still act, now or after a stall."""
        return not (self.killed or self.ended)

    def reply(self, seconds: float, answer: Any) -> None:
        """Let the program continue with an answer, so many seconds from now."""
        self._events.after(seconds, lambda: self._resume(answer))

    def stall(self, seconds: float) -> None:
        """Freeze the program; requests that it has sent go on."""
        self._stalled_until = max(self._stalled_until, self._events.now + seconds)

    def kill(self) -> None:
        """End the program without its knowledge."""
        self.killed = True

    def _resume(self, answer: Any) -> None:
        if self.killed:
            return
        if (left := self._stalled_until - self._events.now) > 0:
            self.reply(left, answer)
            return
        try:
            request = self._program.send(answer)
        except StopIteration:
            self.ended = True
            return
        self._serve(self, request)
