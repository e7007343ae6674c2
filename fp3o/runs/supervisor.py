"""Processes of one run, started again from the newest checkpoint after one of them has failed.

A process that loses another cannot continue: JAX ends it. The supervisor, outside of all of them,
stops what is left and starts all processes again; the run resumes from its newest checkpoint. It
uses no device itself.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Protocol, runtime_checkable

from fp3o.errors import UserError, printable
from fp3o.runs.progress import Display

FINAL = (0, 1, 2, 130)
"""Exit statuses of a process that starting it again would not change: done, an error that is
explained to the user, a bad value, an interruption."""

LOST = 70
"""Exit status of a process that failed for another reason, such as the loss of another process."""

WATCH_SECONDS = 0.2
"""Seconds between two looks at the processes."""


class ProcessesError(UserError, RuntimeError):
    """Processes of a run that failed more often than they are started again."""


@runtime_checkable
class Member(Protocol):
    """One of the processes of a run."""

    def status(self) -> int | None:
        """Exit status; None while it runs."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    def last_error(self) -> str:
        """The last line of its errors."""
        ...


StartProcesses = Callable[[int], Sequence[Member]]
"""Starts all processes of an attempt, given its number; the first of them is the leader."""


def supervise(
    start: StartProcesses, retries: int, display: Display, watch: Callable[[], None] = lambda: None
) -> int:
    """Run processes to the end and start them again where they fail; returns the exit status.

    `watch` is called again and again while they run.
    """
    for attempt in range(retries + 1):
        members = start(attempt)
        try:
            failed, status = _wait(members, watch)
        finally:
            for member in members:
                member.kill()
            display.close()
        if failed is None:
            return status
        reason = printable(members[failed].last_error(), 200)
        display.say(
            f"process {failed} of {len(members)} has failed (status {status})"
            f"{f': {reason}' if reason else ''}"
            + ("; starting all again from the newest checkpoint" if attempt < retries else "")
        )
    raise ProcessesError(
        f"the processes of the run failed {retries + 1} times: the last checkpoint is intact; "
        "continue with `fp3o resume`, or allow more --retries"
    )


def _wait(members: Sequence[Member], watch: Callable[[], None]) -> tuple[int | None, int]:
    """Wait for the leader, or for a failure: the number of the process and its exit status."""
    while True:
        watch()
        statuses = [member.status() for member in members]
        if statuses[0] in FINAL:
            return None, statuses[0]
        for number, status in enumerate(statuses):
            if status is not None and status not in FINAL:
                return number, status
            if number and status in (1, 2):  # a setting that only this process could refuse
                time.sleep(WATCH_SECONDS)
                raise ProcessesError(f"process {number}: {members[number].last_error()}")
        time.sleep(WATCH_SECONDS)


class LocalProcess:
    """A process of this machine; only the leader writes to the terminal."""

    def __init__(self, command: Sequence[str], is_leader: bool):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        quiet = {} if is_leader else {"stdout": subprocess.DEVNULL, "stderr": self._errors}
        self._process = subprocess.Popen([*command], **quiet)

    def status(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End it at once."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def last_error(self) -> str:
        """The last line of its errors."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def terminate(self) -> None:
        """Ask it to save and stop."""
        self._process.terminate()


class LocalProcesses:
    """Starts the processes of a run on this machine; the leader gets the signals of this process.

    `commands` makes them from the number of the attempt and the leader's address.
    """

    def __init__(self, commands: Callable[[int, str], Sequence[Sequence[str]]]):
        self._commands = commands
        self._leader: LocalProcess | None = None

    def start(self, attempt: int) -> Sequence[Member]:
        """Start all processes of an attempt."""
        commands = self._commands(attempt, f"127.0.0.1:{free_port()}")
        members = [LocalProcess(command, k == 0) for k, command in enumerate(commands)]
        self._leader = members[0]
        return members

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Let the leader save and stop on SIGTERM; Ctrl-C reaches all processes by itself."""

        def forward(number: int, frame: FrameType | None) -> None:
            if self._leader is not None:
                self._leader.terminate()

        before = {
            signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
            signal.SIGTERM: signal.signal(signal.SIGTERM, forward),
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def free_port(host: str = "127.0.0.1") -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def process_command(arguments: Sequence[str]) -> list[str]:
    """A command of fp3o in a new process of the same Python."""
    return [sys.executable, "-m", "fp3o", *arguments]


def end_process(status: int) -> None:
    """End one of several processes without waiting for the others, which may be gone."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
