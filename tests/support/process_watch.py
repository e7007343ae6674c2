"""What a process uses: memory, open files, threads, children; and the size of its folder. Linux."""

import itertools
import os
import time
from pathlib import Path
from typing import NamedTuple

GROWING = ("metrics.jsonl", "timing.jsonl", "tensorboard")
"""Files of a run that grow with its length."""


class Usage(NamedTuple):
    """One measurement of a running process and of its run directory."""

    memory: float
    """MiB of resident memory, without files that are mapped."""
    files: int
    threads: int
    children: int
    disk: float
    """MiB of the run directory, without what grows with the length of a run."""
    entries: int
    """Number of files in the run directory, hidden ones included."""


def usage(process: int, folder: Path) -> Usage:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines()
    )
    sizes = [_size(path) for path in _entries(folder) if not {*GROWING} & {*path.parts}]
    return Usage(
        int(status["RssAnon"].split()[0]) / 1024,
        len(os.listdir(f"/proc/{process}/fd")),
        int(status["Threads"]),
        len(children(process)),
        sum(sizes) / 2**20,
        len(sizes),
    )


def _entries(folder: Path) -> list[Path]:
    """Everything inside a folder. Unlike a glob, `os.walk` passes over folders that vanish."""
    found = os.walk(folder)
    return [Path(place, name) for place, *names in found for name in itertools.chain(*names)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # replaced meanwhile
        return 0


def children(process: int) -> list[int]:
    """Processes that a process has started, and those that they have started."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        parents[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
    found: list[int] = []
    newest = [process]
    while newest:
        newest = [child for child, parent in parents.items() if parent in newest]
        found += newest
    return found


def watch(process: int, folder: Path, seconds: float, samples: int) -> list[Usage]:
    """Measurements at equal intervals."""
    found = []
    for _ in range(samples):
        time.sleep(seconds / samples)
        found.append(usage(process, folder))
    return found


def wait_for(path: Path, seconds: float) -> None:
    """Wait until a file or folder exists."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)
