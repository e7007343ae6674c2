"""A process that ends the workers of this one when this one has ended, however it ended.

It is a small shell that waits for the end of its input, so it needs nothing from a worker, which
may be stopped, or busy in native code. The input ends with this process, because no other process
has the other end of the pipe.
"""

import os
import subprocess
import threading

SCRIPT = 'while read -r line; do groups=$line; done; [ -z "$groups" ] || kill -s KILL -- $groups'
"""Each line replaces the list of process groups, written as negative numbers, as `kill` has it."""


class Watchdog:
    """The process groups of workers; the shell runs while there are some."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a pool may be collected while another starts a worker
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        os.register_at_fork(after_in_child=self._forget)

    def add(self, group: int) -> None:
        """End a process group together with this process."""
        with self._lock:
            self._groups.add(group)
            self._tell()

    def remove(self, group: int) -> None:
        """Leave a process group alone, before its number can be used again."""
        with self._lock:
            self._groups.discard(group)
            self._tell()

    def _tell(self) -> None:
        """Send the current list; a shell that was ended by someone else is replaced."""
        line = " ".join(f"-{group}" for group in sorted(self._groups)).encode() + b"\n"
        if self._shell is not None:
            try:
                self._write(line)
            except OSError:
                self._end()
        if self._shell is None and self._groups:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, bufsize=0, cwd="/",
                start_new_session=True,  # Ctrl-C and a closed terminal are not for it
            )  # fmt: skip
            self._write(line)
        if not self._groups:
            self._end()

    def _write(self, line: bytes) -> None:
        assert self._shell and self._shell.stdin
        self._shell.stdin.write(line)

    def _end(self) -> None:
        if self._shell and self._shell.stdin:
            self._shell.kill()  # it has nothing to do any more
            self._shell.stdin.close()
            self._shell.wait()
        self._shell = None

    def _forget(self) -> None:
        """In a forked copy of this process: its workers are not ours, nor is the pipe."""
        if self._shell and self._shell.stdin:
            self._shell.stdin.close()
            self._shell.returncode = 0  # it is not our child either
        self._lock, self._groups, self._shell = threading.RLock(), set(), None


WATCHDOG = Watchdog()
"""The watchdog of this process."""
