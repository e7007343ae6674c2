"""Disk operations that fail, or end the process, at a chosen call.

As a program it runs the command line and kills itself inside a write:

    python tests/support/failing_writes.py 17 runs/one resume runs/one

ends with SIGKILL just before the 17th operation on files under `runs/one`.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""Audit events of the operations through which files are written; `fsync` is counted too."""

DISK_ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT)


class Countdown:
    """Counts operations on files under a folder, and acts before one of them."""

    def __init__(self) -> None:
        self.folder, self.number, self.calls = "", 0, 0
        self.action: Callable[[str | None], None] | None = None
        self._fsync = os.fsync

    def install(self) -> None:
        """Watch the operations of this process; a hook cannot be removed, only be idle."""
        sys.addaudithook(self._hear)
        os.fsync = self.fsync

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.action is None or event not in OPERATIONS:
            return
        reads = event == "open" and not (args[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if not reads and str(args[0]).startswith(self.folder):
            self._count(str(args[0]))

    def fsync(self, handle: int) -> None:
        if self.action is not None:
            self._count(None)
        self._fsync(handle)

    def _count(self, path: str | None) -> None:
        self.calls += 1
        if self.calls == self.number and self.action is not None:
            self.action(path)

    @contextmanager
    def at_call(
        self, number: int, folder: str, action: Callable[[str | None], None]
    ) -> Iterator[None]:
        """Call `action` before the operation of this number."""
        self.folder, self.number, self.calls, self.action = folder, number, 0, action
        try:
            yield
        finally:
            self.action = None


COUNTDOWN = Countdown()


def fail_with(code: int) -> Callable[[str | None], None]:
    def fail(path: str | None) -> None:
        # `fsync` knows no name, and needs no permission.
        number = errno.EIO if path is None and code == errno.EACCES else code
        raise OSError(number, os.strerror(number), path)

    return fail


def die(path: str | None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    from fp3o.cli.main import main as command_line

    number, folder, *words = sys.argv[1:]
    COUNTDOWN.install()
    with COUNTDOWN.at_call(int(number), folder, die):
        sys.exit(command_line(words))


if __name__ == "__main__":
    main()
