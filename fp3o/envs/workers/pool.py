"""A pool of worker processes: failed ones are replaced and counted."""

import contextlib
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fp3o.envs.workers.protocol import (
    EnvPool,
    Timeouts,
    WorkerEnv,
    WorkerFailureError,
    WorkerPoolError,
)
from fp3o.envs.workers.shared_memory import BufferSpec, Reply
from fp3o.envs.workers.worker import Worker

CLOSE_SECONDS = 10.0
"""Time that workers have to close their environments."""


class WorkerPool(EnvPool):
    """One worker process per environment, started when it is first needed.

    A worker that dies, does not reply in time or replies with invalid arrays is killed together
    with its subprocesses, its episode is lost, and a new worker is started. All processes end with
    the pool, or at the latest with this process.
    """

    def __init__(
        self,
        make: Callable[[int], WorkerEnv],
        spec: BufferSpec,
        num_envs: int,
        timeouts: Timeouts = Timeouts(),  # noqa: B008
    ):
        super().__init__(make, spec, num_envs)
        self.timeouts = timeouts
        self._failures_in_a_row = [0] * num_envs
        self._workers: list[Worker | None] = [None] * num_envs
        weakref.finalize(self, _close_all, self._workers)

    def reset(self, envs: Sequence[int]) -> list[Reply]:
        """Start an episode in some of the workers, restarting those that fail."""
        replies: dict[int, Reply] = {}
        self.steps[list(envs)] = 0
        while missing := [i for i in envs if i not in replies]:
            for i in missing:
                self._worker(i).reset(self.seeds[i], int(self.episodes[i]))
            replies |= self._receive(missing, self.timeouts.reset)
        self.episodes[list(envs)] += 1
        return [replies[i] for i in envs]

    def step(self, actions: Mapping[int, Any]) -> dict[int, Reply]:
        """Step some of the workers; an episode whose reply is missing is lost."""
        for i, action in actions.items():
            self._worker(i).step(action)
        replies = self._receive(actions, self.timeouts.step)
        for i in replies:
            self.steps[i] += 1
            self._failures_in_a_row[i] = 0
        return replies

    def close(self) -> None:
        """End all workers; a later request starts new ones."""
        _close_all(self._workers)

    def _receive(self, envs: Iterable[int], seconds: int | float) -> dict[int, Reply]:
        """The replies of workers that sent one; the others are ended."""
        deadline, replies, failures = time.monotonic() + seconds, {}, {}
        for i in envs:
            try:
                replies[i] = self._worker(i).receive(deadline)
            except WorkerFailureError as failure:
                failures[i] = failure
        messages = [self._handle_failure(i, failure) for i, failure in failures.items()]
        for message in messages:  # last, because a warning may be turned into an error
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        return replies

    def _worker(self, i: int) -> Worker:
        worker = self._workers[i]
        if worker is None:
            try:
                worker = self._workers[i] = Worker(self.make, self.seeds[i], self.spec)
            except OSError as error:
                raise WorkerPoolError(f"worker {i} cannot be started: {error}") from error
        return worker

    def _handle_failure(self, i: int, failure: WorkerFailureError) -> str:
        """Count a failure and end its worker; a sentence that describes it."""
        status, output = self._worker(i).kill()
        self._workers[i] = None
        steps, self.steps[i] = int(self.steps[i]), 0
        self.seeds[i] += 1  # another seed may not lead to the same failure
        self._failures_in_a_row[i] += 1
        reason, details = failure.reason, failure.details.strip() or status
        setattr(self.failures, reason, getattr(self.failures, reason) + 1)
        self.failures.lost_steps += steps
        if self._failures_in_a_row[i] > self.timeouts.restarts:
            self.close()
            raise WorkerPoolError(self._final_message(i, steps, f"{reason}, {details}", output))
        self.failures.restarts += 1
        return (
            f"worker {i}: {reason}, {details.splitlines()[-1]}; its episode is truncated after "
            f"{steps} steps, and a new worker is started"
        )

    def _final_message(self, i: int, steps: int, failure: str, output: str) -> str:
        how = (
            f"{self._failures_in_a_row[i]} times in succession without completing a step; the last"
            if self.timeouts.restarts
            else f"after {steps} steps of its episode, and no restarts are allowed"
        )
        return (
            f"worker {i} failed {how}: {failure}\nThe end of its output: {output or '(none)'}\n"
            "`fp3o doctor` checks what is installed"
        )


def _close_all(workers: list[Worker | None]) -> None:
    """End workers, after their environments have been closed where possible."""
    running = [worker for worker in workers if worker]
    workers[:] = [None] * len(workers)
    for worker in running:
        worker.close()
    deadline = time.monotonic() + CLOSE_SECONDS
    for worker in running:
        with contextlib.suppress(WorkerFailureError):
            worker.receive(deadline)
        worker.kill()
