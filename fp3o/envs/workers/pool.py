"""TODO."""

import contextlib
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fp3o.envs.workers.protocol import (
    FailureCounts,
    FailureError,
    Timeouts,
    WorkerEnv,
    WorkerPoolError,
)
from fp3o.envs.workers.shared_memory import BufferSpec, Reply
from fp3o.envs.workers.worker import Worker

GOODBYE = 10.0
"""Seconds that workers have to close what they own."""


class WorkerPool:
    """Workers that are given orders together. They are started when they are first needed.

    A failure ends the worker's episode; the rest goes on. All processes end with the crew, or at
    the latest with this process, however it ends.
    """

    def __init__(
        self,
        make: Callable[[int], WorkerEnv],
        form: BufferSpec,
        num_workers: int,
        patience: Timeouts = Timeouts(),  # noqa: B008
    ):
        self.make, self.form, self.patience = make, form, patience
        self.losses = FailureCounts()
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
                raise WorkerPoolError(f"worker {i} cannot be started: {error}") from error
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
            raise WorkerPoolError(
                f"worker {i} failed {how}: {reason}, {words}\nThe last words it printed: "
                f"{printed or '(none)'}\nSee what `fp3o doctor` says about its game"
            )
        losses.restarts += 1
        return (
            f"worker {i}: {reason}, {words.splitlines()[-1]}; its episode ends after {steps} "
            "steps as one cut by a time limit, and another worker is started"
        )


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
