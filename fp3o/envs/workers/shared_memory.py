"""Memory that two processes share: what is asked for, and the arrays of the answer.

It is a file without a name, handed to the other process: it goes when both have gone, however they
end, and takes nothing from `/dev/shm`, of which containers have little. Needs NumPy only.
"""

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Reply = tuple[np.ndarray, ...]

ALIGNED = 64
"""Bytes between possible beginnings of arrays, no fewer than any type needs."""


class ArraySpec(NamedTuple):
    """An array of known shape and type."""

    name: str
    shape: tuple[int, ...]
    dtype: Any

    @property
    def room(self) -> int:
        """Bytes up to the next array."""
        return -(-int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize // ALIGNED) * ALIGNED


class BufferSpec(NamedTuple):
    """What is said between a player and a place."""

    action: ArraySpec
    answer: tuple[ArraySpec, ...]


class SharedBuffer:
    """The shared memory, as arrays that lie in it."""

    def __init__(self, form: BufferSpec, file: int | None = None):
        fields = form.action, *form.answer
        size = sum(field.room for field in fields)
        self.file = blank(size) if file is None else file
        self._memory, place, arrays = mmap.mmap(self.file, size), 0, []
        for field in fields:
            arrays.append(np.ndarray(field.shape, field.dtype, self._memory, place))
            place += field.room
        self._action, *self._answer = arrays

    def ask(self, action: Any) -> None:
        """Write down an action."""
        np.copyto(self._action, action, casting="same_kind")

    def asked(self) -> np.ndarray:
        """The action that is written down."""
        return self._action.copy()

    def answer(self, arrays: Sequence[np.ndarray]) -> None:
        """Write down an answer; it has to have its form."""
        for mine, given in zip(self._answer, arrays, strict=True):
            mine[...] = given

    def answered(self) -> Reply:
        """The answer that is written down."""
        return tuple(array.copy() for array in self._answer)

    def close(self) -> None:
        """Let go of the memory."""
        del self._action, self._answer
        self._memory.close()


def blank(size: int) -> int:
    """A file of zeros without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("fp3o")
    else:  # macOS
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.truncate(file, size)
    return file
