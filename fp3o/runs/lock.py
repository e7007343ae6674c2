"""One writer per run directory.

The lock is held on the opened directory, not on a file in it: nobody can remove it, and a directory
that is moved or deleted while a run writes to it is noticed.
"""

import contextlib
import errno
import os
from pathlib import Path

from filelock import FileLock, Timeout

from fp3o.runs.atomic import RunError


class DirectoryLock:
    """The lock of a run directory; it ends with the process at the latest."""

    def __init__(self, path: Path):
        self._path = path
        self._handle: int | None = None
        self._file: FileLock | None = None

    def acquire(self) -> None:
        """Lock the directory, or raise if another process holds the lock."""
        try:
            if os.name == "nt" or not self._lock_directory():
                self._file = FileLock(self._path / "lock")
                self._file.acquire(timeout=0)
        except (BlockingIOError, Timeout):
            self.release()
            raise RunError(
                f"another process is writing to {self._path}: wait for it, or choose another "
                "directory with --out"
            ) from None
        except OSError as error:
            self.release()
            raise RunError(f"cannot write to {self._path}: {error.strerror}") from error

    def _lock_directory(self) -> bool:
        """Whether the file system can lock directories; some network file systems cannot."""
        import fcntl  # not on Windows

        self._handle = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                return False
            raise
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.release()
            self._file = None
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def check(self) -> None:
        """Raise if the locked directory is no longer at its path."""
        if self._handle is None:
            return
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            here, locked = os.stat(self._path), os.fstat(self._handle)
            if (here.st_dev, here.st_ino) == (locked.st_dev, locked.st_ino):
                return
        raise RunError(
            f"{self._path} was moved, replaced or deleted while this run was writing to it"
            f"{self._moved_to()}"
        )

    def _moved_to(self) -> str:
        """Where the directory is now, if the system says it."""
        with contextlib.suppress(OSError):
            place = os.readlink(f"/proc/self/fd/{self._handle}")
            if os.path.isdir(place):
                return f". It is now {place}: continue with `fp3o resume {place}`"
        return ""
