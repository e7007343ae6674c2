"""Timed chunks of work."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Job(NamedTuple):
    """A chunk of work, and its number of environment steps."""

    steps: int
    run: Callable[[], Any]


class Clock:
    """Times a function: seconds of its fastest run, and of the watched parts of that run."""

    def __init__(self, run: Callable[[], Any]):
        self.run, self.first = run, math.nan
        self.best = {"total": math.inf}
        self._spent: dict[str, float] = {}

    def watch(self, owner: Any, name: str, part: str) -> None:
        """Count the time spent in a method of an object as this part."""
        setattr(owner, name, self.timed(getattr(owner, name), part))

    def timed(self, inner: Callable[..., Any], part: str) -> Callable[..., Any]:
        """The same function, with its time counted as this part."""

        def timed(*args: Any, **named: Any) -> Any:
            started = time.perf_counter()
            result = inner(*args, **named)
            self._spent[part] += time.perf_counter() - started
            return result

        self._spent.setdefault(part, 0.0)
        return timed

    def __call__(self) -> None:
        self._spent = dict.fromkeys(self._spent, 0.0)
        started = time.perf_counter()
        self.run()
        total = time.perf_counter() - started
        self.first = total if math.isnan(self.first) else self.first
        if total < self.best["total"]:
            self.best = {**self._spent, "total": total}


def rates(jobs: list[Job], seconds: float, least: int = 3) -> list[float]:
    """Steps per second of the fastest chunk of every job; after a warm-up they alternate."""
    times: list[list[float]] = [[] for _ in jobs]
    few = lambda known: sum(known) < seconds or len(known) < least  # noqa: E731
    for job in jobs:
        job.run()
    while any(map(few, times)):
        for job, known in zip(jobs, times, strict=True):
            if few(known):
                started = time.perf_counter()
                job.run()
                known.append(time.perf_counter() - started)
    return [job.steps / min(known) for job, known in zip(jobs, times, strict=True)]
