"""Timed chunks of work."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class TimedJob(NamedTuple):
    """A chunk of work, and its number of environment steps or iterations."""

    steps: int
    run: Callable[[], Any]


class PartClock:
    """Times a function: seconds of its fastest run, and of the watched parts of that run."""

    def __init__(self, run: Callable[[], Any]):
        self.run = run
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
        """Run the function once."""
        self._spent = dict.fromkeys(self._spent, 0.0)
        started = time.perf_counter()
        self.run()
        total = time.perf_counter() - started
        if total < self.best["total"]:
            self.best = {**self._spent, "total": total}


def fastest_rates(jobs: Mapping[str, TimedJob], seconds: float, least: int = 3) -> dict[str, float]:
    """Steps per second of the fastest chunk of every job; after a warm-up they alternate.

    Each is run for `seconds`, and at least `least` times.
    """
    times: dict[str, list[float]] = {name: [] for name in jobs}

    def unfinished(known: list[float]) -> bool:
        return sum(known) < seconds or len(known) < least

    for job in jobs.values():
        job.run()
    while any(map(unfinished, times.values())):
        for name, job in jobs.items():
            if unfinished(times[name]):
                started = time.perf_counter()
                job.run()
                times[name].append(time.perf_counter() - started)
    return {name: job.steps / min(times[name]) for name, job in jobs.items()}
