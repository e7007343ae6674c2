"""Synchronisation of cell folders between machines; an interrupted copy can be resumed from."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fp3o.errors import UserError, printable
from fp3o.experiments.framework.run_grid import FAILURES, JOBS

SYNC_SECONDS = 2.0
"""Seconds between two checks for changed files."""

LOCAL_FILES = ("lock",)
"""Files that are not copied."""

Files = Mapping[str, bytes]
"""Paths inside a folder -> contents."""


class ResultStore:
    """The folder of an experiment, for processes on other machines."""

    def __init__(self, out: str):
        self._out = Path(out).resolve()

    def get(self, label: str) -> Files:
        """All files of a cell."""
        folder = inside(self._out, label)
        return {name: path.read_bytes() for name, path in list_files(folder).items()}

    def put(self, label: str, changed: Files, removed: Sequence[str]) -> None:
        """Write changed files and delete removed ones.

        The order lets a run resume if this is interrupted: first `config.json`, then the files a
        checkpoint refers to, then checkpoints, and last the result that marks the cell as finished.
        """
        folder = inside(self._out, label)
        paths = {name: inside(folder, name) for name in (*changed, *removed)}
        for name in sorted(changed, key=_write_order):
            write_file(paths[name], changed[name])
        for name in removed:
            paths[name].unlink(missing_ok=True)

    def set_failure(self, label: str, error: str) -> None:
        """Record the error of a cell; an empty one removes the record."""
        path = inside(self._out / FAILURES, f"{label}.txt")
        if error:
            write_file(path, error.encode())
        else:
            path.unlink(missing_ok=True)


def inside(folder: Path, name: str) -> Path:
    """A path below a folder; a name that leads elsewhere is refused, also through a link."""
    parts = name.split("/")
    if any(not part.isprintable() or part in ("", ".", "..") or "\\" in part for part in parts):
        raise ResultPathError(name)
    path = folder.joinpath(*parts)
    if any(parent.is_symlink() for parent in (path, *path.parents[: len(parts)])):
        raise ResultPathError(name)
    return path


class ResultPathError(UserError, ValueError):
    """A node named a file outside the folder of its results."""

    def __init__(self, name: str):
        super().__init__(
            f"{printable(name)!r} is not the name of a file of a cell: it must be a path inside "
            "its folder, without links, '..' and control characters"
        )


def _write_order(name: str) -> int:
    if name == "config.json":
        return 0
    if name in {job.result for job in JOBS.values()}:
        return 3
    return 2 if name.startswith("checkpoints") else 1


def write_file(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it: readers see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


def list_files(folder: Path) -> dict[str, Path]:
    """The files of a cell by their path inside; without links, temporary files and locks.

    Folders may disappear meanwhile: policies are replaced as whole folders.
    """
    files = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name not in LOCAL_FILES and not name.startswith("."):
                path = Path(parent) / name
                if path.is_symlink() or not path.is_file():
                    continue
                files[str(path.relative_to(folder))] = path
    return files


class FolderSync:
    """Context that sends the changes in a folder every few seconds and at the end."""

    def __init__(self, folder: Path, put: Callable[[Files, Sequence[str]], None]):
        self._folder, self._put = folder, put
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._known = self._stamps()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.send()

    def send(self) -> None:
        """Send everything that changed since the last time, in one message.

        Checkpoints are read before the metrics, which are then at least as long as they state.
        """
        now = self._stamps()
        new = [name for name, stamp in now.items() if self._known.get(name) != stamp]
        removed = [name for name in self._known if name not in now]
        changed: dict[str, bytes] = {}
        for name in sorted(new, key=lambda name: not name.startswith("checkpoints")):
            with contextlib.suppress(FileNotFoundError):  # replaced or removed meanwhile
                changed[name] = (self._folder / name).read_bytes()
        if changed or removed:
            self._put(changed, removed)
        self._known = {name: stamp for name, stamp in now.items() if name in changed} | {
            name: stamp for name, stamp in self._known.items() if name in now and name not in new
        }

    def _watch(self) -> None:
        while not self._stop.wait(SYNC_SECONDS):
            try:
                self.send()
            except Exception as error:  # sent with the next changes, or at the end
                print(f"changed files could not be sent: {error!r}", file=sys.stderr)

    def _stamps(self) -> dict[str, tuple[int, int]]:
        """Size and modification time of every file."""
        stamps = {}
        for name, path in list_files(self._folder).items():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                stamps[name] = status.st_size, status.st_mtime_ns
        return stamps
