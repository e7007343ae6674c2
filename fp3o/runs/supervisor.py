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
from pathlib import Path
from typing import Protocol, runtime_checkable

from fp3o.errors import UserError, printable
from fp3o.runs.progress import Display

FINAL = (0, 1, 2, 130)
"""Exit statuses of a process that starting it again would not change: done, an error that is
explained to the user, a bad value, an interruption."""

LOST = 70
"""Exit status of a process that failed for another reason, such as the loss of another process."""

POLL_SECONDS = 0.2
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

    def last_words(self) -> str:
        """The last line of its errors."""
        ...


Start = Callable[[int], Sequence[Member]]
"""Starts all processes of an attempt, given its number; the first of them is the leader."""


def supervise(start: Start, retries: int, display: Display) -> int:
    """Run processes to the end and start them again where they fail; returns the exit status."""
    for attempt in range(retries + 1):
        members = start(attempt)
        try:
            failed, status = _wait(members)
        finally:
            for member in members:
                member.kill()
        if failed is None:
            return status
        reason = printable(members[failed].last_words(), 200)
        display.say(
            f"process {failed} of {len(members)} has failed (status {status})"
            f"{f': {reason}' if reason else ''}"
            + ("; starting all again from the newest checkpoint" if attempt < retries else "")
        )
    raise ProcessesError(
        f"the processes of the run failed {retries + 1} times: the last checkpoint is intact; "
        "continue with `fp3o resume`, or allow more --retries"
    )


def _wait(members: Sequence[Member]) -> tuple[int | None, int]:
    """Wait for the leader, or for a failure: the number of the process and its exit status."""
    while True:
        statuses = [member.status() for member in members]
        if statuses[0] in FINAL:
            return None, statuses[0]
        for number, status in enumerate(statuses):
            if status is not None and status not in FINAL:
                return number, status
            if number and status in (1, 2):  # a setting that only this process could refuse
                time.sleep(POLL_SECONDS)
                raise ProcessesError(f"process {number}: {members[number].last_words()}")
        time.sleep(POLL_SECONDS)


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

    def last_words(self) -> str:
        """The last line of its errors."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def terminate(self) -> None:
        """Ask it to save and stop."""
        self._process.terminate()


def local_processes(commands: Callable[[int, str], Sequence[Sequence[str]]]) -> Start:
    """Start processes of this machine; commands are made from the attempt and an address."""

    def start(attempt: int) -> Sequence[Member]:
        address = f"127.0.0.1:{free_port()}"
        return [
            LocalProcess(command, number == 0)
            for number, command in enumerate(commands(attempt, address))
        ]

    return start


@contextlib.contextmanager
def signals_of_group() -> Iterator[None]:
    """Leave Ctrl-C to the processes, which receive it as well, and wait for them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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


def run_exists(path: str | Path) -> bool:
    """Whether a run was started in a directory, so that it is resumed."""
    return (Path(path) / "config.json").exists()
