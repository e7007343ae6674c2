"""Memory shared with a worker process: the requested action and the arrays of the reply.

It is an anonymous file passed to the worker: it disappears with the two processes, however they
end, and takes nothing from `/dev/shm`, which is small in containers. Needs NumPy only.
"""

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Reply = tuple[np.ndarray, ...]
"""The arrays that an environment returns after a reset or a step."""

ALIGNMENT = 64
"""Arrays start at multiples of this many bytes."""


class ArraySpec(NamedTuple):
    """An array of known shape and type."""

    name: str
    shape: tuple[int, ...]
    dtype: Any

    @property
    def bytes(self) -> int:
        """Size in the buffer, alignment included."""
        size = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
        return -(-size // ALIGNMENT) * ALIGNMENT


class BufferSpec(NamedTuple):
    """The arrays exchanged with an environment."""

    action: ArraySpec
    reply: tuple[ArraySpec, ...]


class SharedBuffer:
    """Shared memory as arrays."""

    def __init__(self, spec: BufferSpec, file: int | None = None):
        arrays = spec.action, *spec.reply
        size = sum(array.bytes for array in arrays)
        self.file = _anonymous_file(size) if file is None else file
        self._memory, offset, views = mmap.mmap(self.file, size), 0, []
        for array in arrays:
            views.append(np.ndarray(array.shape, array.dtype, self._memory, offset))
            offset += array.bytes
        self._action, *self._reply = views

    def write_action(self, action: Any) -> None:
        """Write the action of a request."""
        np.copyto(self._action, action, casting="same_kind")

    def read_action(self) -> np.ndarray:
        """A copy of the action."""
        return self._action.copy()

    def write_reply(self, arrays: Sequence[np.ndarray]) -> None:
        """Write a reply, whose arrays must match the specification."""
        for mine, given in zip(self._reply, arrays, strict=True):
            mine[...] = given

    def read_reply(self) -> Reply:
        """A copy of the reply."""
        return tuple(array.copy() for array in self._reply)

    def close(self) -> None:
        """Unmap the memory."""
        del self._action, self._reply
        self._memory.close()


def _anonymous_file(size: int) -> int:
    """The descriptor of an unnamed file of zeros, in memory where the system supports it."""
    try:
        file = os.memfd_create("fp3o")
    except AttributeError:  # macOS
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.truncate(file, size)
    return file
