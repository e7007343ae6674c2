"""Disk operations that fail or end the process at a chosen call.

As a program it runs the command line and kills itself inside an operation:

    python tests/support/failing_writes.py 17 resume runs/one

ends with SIGKILL just before the 17th operation on the run directory.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

OPERATIONS = ("fsync", "replace", "rename", "unlink", "truncate", "mkdir", "rmdir", "open")
"""Functions of `os` through which files of a run are written."""

DISK_ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT)


@contextmanager
def at_call(number: int, folder: str, action: Callable[[], None]) -> Iterator[list[int]]:
    """Call `action` before the operation of this number on files under `folder`.

    Operations on file descriptors (`fsync`) count wherever the file is. Yields the number of
    operations so far, in a list of one.
    """
    real = {name: getattr(os, name) for name in OPERATIONS}
    count = [0]

    def wrap(name: str) -> Callable[..., Any]:
        def operation(*args: Any, **options: Any) -> Any:
            writes = name != "open" or (len(args) > 1 and args[1] & (os.O_WRONLY | os.O_RDWR))
            place = str(args[0])
            if writes and (name == "fsync" or place.startswith(folder)):
                count[0] += 1
                if count[0] == number:
                    action()
            return real[name](*args, **options)

        return operation

    for name in OPERATIONS:
        setattr(os, name, wrap(name))
    try:
        yield count
    finally:
        for name, function in real.items():
            setattr(os, name, function)


def fail_with(code: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    from fp3o.cli.main import main as command_line

    number, folder, *words = sys.argv[1:]
    with at_call(int(number), folder, die):
        sys.exit(command_line(words))


if __name__ == "__main__":
    main()
