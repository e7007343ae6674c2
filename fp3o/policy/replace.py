"""Replacing a policy folder: every reader finds a whole one, and kills leave nothing for long.

The new folder is written beside the old one under a temporary name, and both exchange their names
in one step. Where the system cannot exchange names, the old folder is renamed first: for a moment
there is none under its name, and readers use what is beside it.
"""

import ctypes
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from fp3o.files import flush
from fp3o.policy.card import CARD, WEIGHTS
from fp3o.policy.schema import PolicyError

if os.name == "posix":
    import fcntl

AT_FDCWD, EXCHANGE = -100, 2
"""Constants of the system calls of Linux and macOS that exchange two names."""

TRIES = 10
"""How often a folder that is being replaced is looked for."""

UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}
"""Errors of systems and file systems that cannot exchange names."""


def replace_folder(files: Mapping[str, bytes], target: Path) -> None:
    """Write a folder, or replace it: it is the old one or the new one, never a mixture.

    The folder around it must exist.
    """
    if target.exists() and not (target.is_dir() and {*os.listdir(target)} <= {*files}):
        raise PolicyError(f"{target} exists and is not a policy folder: it is not replaced")
    new = _temporary(target)
    new.mkdir()
    try:
        with _held(new):
            for name, content in files.items():
                with open(new / name, "xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            flush(new)
            _swap(new, target)
            flush(target.parent)
    finally:
        _remove(new)
    for folder in leftovers(target):
        with suppress(OSError), _held(folder):
            _remove(folder)


def current_folder(target: Path) -> Path | None:
    """The folder under this name, or else the newest one that was to be there; None: neither."""
    for _ in range(TRIES):  # a writer may rename the one while the other is looked for
        if target.is_dir():
            return target
        with suppress(OSError):
            whole = [x for x in leftovers(target) if {*os.listdir(x)} == {CARD, WEIGHTS}]
            if whole:
                return max(whole, key=lambda folder: folder.stat().st_mtime_ns)
    return None


def leftovers(target: Path) -> list[Path]:
    """Temporary folders of this target that hold nothing but files of a policy."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}")
    with suppress(OSError):
        names = [name for name in os.listdir(target.parent) if pattern.fullmatch(name)]
        return [path for name in names if _is_ours(path := target.with_name(name))]
    return []


def _is_ours(folder: Path) -> bool:
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(folder).st_mode):
            entries = [*os.scandir(folder)]
            known = {entry.name for entry in entries} <= {CARD, WEIGHTS}
            return known and all(entry.is_file(follow_symlinks=False) for entry in entries)
    return False


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a temporary folder, so that no other process removes it; raises if another holds it."""
    if os.name != "posix":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _swap(new: Path, target: Path) -> None:
    """Put the new folder in the place of the old one, which has the new one's name afterwards."""
    if not target.exists():
        new.rename(target)
        return
    if exchange_names(new, target):
        return
    old = _temporary(target)
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    old.rename(new)


def exchange_names(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False if the system cannot."""
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    if (number := ctypes.get_errno()) in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))


@cache
def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    """The system call, where there is one."""
    if sys.platform not in ("linux", "darwin"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            rename = library.renamex_np
            return lambda one, other: rename(one, other, ctypes.c_uint(EXCHANGE))
        rename_at = library.renameat2
    except AttributeError:
        return None
    flag = ctypes.c_uint(EXCHANGE)
    return lambda one, other: rename_at(AT_FDCWD, one, AT_FDCWD, other, flag)


def _remove(folder: Path) -> None:
    """Remove a folder of policy files; what cannot be removed stays for the next time."""
    with suppress(OSError):
        for name in (CARD, WEIGHTS):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
