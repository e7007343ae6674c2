"""Damage to the files of a folder: truncated, flipped, deleted, replaced."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

Change = Callable[[Path, random.Random], None]
"""Damages one file."""


def truncate(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size + 1))


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 8]) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def delete(path: Path, rng: random.Random) -> None:
    path.unlink()


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def garbage(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(2000)))


def odd_json(path: Path, rng: random.Random) -> None:
    """A text that is valid JSON and something else than expected."""
    texts = ("[]", "{}", "null", "3", '"x"', "NaN", '{"format": 2}', '{"settings": []}',
             '{"format": 2, "settings": {"task": 3}}', "[" * 5000, '{"steps": 1e999}')  # fmt: skip
    path.write_text(rng.choice(texts))


def repeat(path: Path, rng: random.Random) -> None:
    """Some lines twice, or in another order."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rng.choices(lines, k=len(lines))) if lines else b"")


def directory(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path, rng: random.Random) -> None:
    """A link to nothing, to itself, or to another file of the folder."""
    others = sorted(other for other in path.parent.iterdir() if other != path)
    target = rng.choice([Path("/nonexistent"), path, *others])
    path.unlink()
    path.symlink_to(target)


def pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def swap(path: Path, rng: random.Random) -> None:
    """The content of another file of the run."""
    root = path.parent
    files = (other for other in root.rglob("*") if other.is_file() and not other.is_symlink())
    others = sorted(other for other in files if other != path)
    if others:
        shutil.copyfile(rng.choice(others), path)


CHANGES: tuple[Change, ...] = (
    truncate, flip, delete, empty, garbage, odd_json, repeat, directory, link, pipe, swap,
)  # fmt: skip

damages = st.lists(
    st.tuples(st.integers(0, 2**31), st.sampled_from(CHANGES), st.integers(0, 2**31)),
    min_size=1,
    max_size=3,
)
"""Up to three changes: which file, what, and the seed of its random numbers."""


def apply(folder: Path, changes: list[tuple[int, Change, int]]) -> str:
    """Damage files of a folder; what was done, for messages."""
    done = []
    for place, change, seed in changes:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
        if files:
            path = files[place % len(files)]
            change(path, random.Random(seed))
            done.append(f"{change.__name__} {path.relative_to(folder)}")
    return ", ".join(done)
