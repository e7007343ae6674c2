"""Writes that survive a crash, and errors of the disk."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fp3o.errors import UserError
from fp3o.files import flush

PART = ".part"
"""End of the names of files that are being written; they begin with a dot."""


class RunError(UserError, RuntimeError):
    """A run directory cannot be used as requested; the message says why and what to do."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file atomically: it contains the old content or the new one, never a part."""
    part = path.with_name(f".{path.name}{PART}")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    flush(path.parent)


DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)
"""Errors of a disk, whichever file they are about."""


def _is_inside(name: object, folder: Path) -> bool:
    """Whether an error is about a file of a folder; either path may be relative or have links."""
    if not isinstance(name, str | bytes):
        return False
    return Path(os.path.realpath(os.fsdecode(name))).is_relative_to(os.path.realpath(folder))


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn disk errors into a RunError that says how to continue.

    Other errors of the operating system, about other files, may come from an environment.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRORS and not _is_inside(error.filename, path):
            raise
        started = os.path.lexists(path / "config.json")
        hint = f"The last checkpoint is intact; fix this and continue with `fp3o resume {path}`"
        raise RunError(
            f"cannot write to {path}: {error.strerror or error}. "
            + (hint if started else "Choose another directory with --out")
        ) from error


RUN_FILES = (
    "config.json", "metrics.jsonl", "timing.jsonl", "results.json", "report.html", "loggers.json",
)  # fmt: skip
RUN_FOLDERS = ("checkpoints", "policy", "tensorboard", "figures", "videos")
"""What a run writes in its directory."""


def refuse_links(run: Path) -> None:
    """Raise if something that a run writes is a link, a pipe or the like.

    Writing to it would change a file elsewhere, or wait for ever.
    """
    inside = (path for name in RUN_FOLDERS for path in (run / name).rglob("*"))
    for path in (*(run / name for name in (*RUN_FILES, *RUN_FOLDERS)), *inside):
        mode = os.lstat(path).st_mode if os.path.lexists(path) else 0
        if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise RunError(
                f"{path} is not a regular file or folder: a run is not written through links or "
                "pipes. Replace it by a copy of what it stands for, or remove it"
            )


def make_writable(path: Path) -> None:
    """Create a directory, or raise if it cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "permission denied")
    except OSError as error:
        raise RunError(
            f"cannot write to {path}: {error.strerror}. Choose another directory with --out"
        ) from error
