"""Messages of a worker to the parent: replies and failures, read without trusting their bytes."""

import json
import os
import struct
from collections.abc import Callable
from typing import NamedTuple

from fp3o.envs.workers.protocol import WorkerFailureError
from fp3o.errors import printable

MESSAGE_SIZE = struct.Struct("!i")
"""Length of a message, as `Connection.send_bytes` writes it."""

REPLY = struct.Struct("<q")
"""Id of the request whose reply is in shared memory. Any other message is a failure in JSON."""

LARGEST_MESSAGE = 100_000
"""Bytes of the longest message."""

REASONS = ("crashed", "invalid")
"""What a worker may say of itself."""

OUTPUT_LINES, OUTPUT_WIDTH = 10, 200
"""Lines of a worker's output or traceback that messages show, and their length in characters."""


class FailureMessage(NamedTuple):
    """A failure that a worker reports of itself."""

    reason: str
    details: str

    def encode(self) -> bytes:
        """The failure as a message, which is never as long as a reply."""
        return json.dumps({"reason": self.reason, "details": last_lines(self.details)}).encode()


def last_lines(text: str) -> str:
    """The end of a foreign text: few short lines, without anything that controls a terminal."""
    lines = [line.expandtabs(4).rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(printable(line, OUTPUT_WIDTH) for line in lines[-OUTPUT_LINES:])


class MessageReader:
    """Reads messages as their bytes arrive; `wait` says whether there are some in time."""

    def __init__(self, file: int, wait: Callable[[float], bool]):
        self._file, self._wait, self._pending = file, wait, b""

    def reply(self, number: int, deadline: float) -> None:
        """Wait for the reply to a request; raise `WorkerFailureError` without one."""
        # Replies to earlier requests are left over from an interruption.
        while self._next(deadline) != number:
            pass

    def _next(self, deadline: float) -> int:
        """The number of the next reply."""
        (size,) = MESSAGE_SIZE.unpack(self._take(MESSAGE_SIZE.size, deadline))
        if not 0 <= size <= LARGEST_MESSAGE:
            raise WorkerFailureError("invalid", f"a message of {size} bytes")
        message = self._take(size, deadline)
        if size == REPLY.size:
            return REPLY.unpack(message)[0]
        raise _failure(message)

    def _take(self, size: int, deadline: float) -> bytes:
        while len(self._pending) < size:
            if not self._wait(deadline):
                raise WorkerFailureError("hung", "no reply in time")
            try:
                arrived = os.read(self._file, LARGEST_MESSAGE)
            except OSError:
                arrived = b""
            if not arrived:
                raise WorkerFailureError("crashed", "")
            self._pending += arrived
        taken, self._pending = self._pending[:size], self._pending[size:]
        return taken


def _failure(message: bytes) -> WorkerFailureError:
    """The failure in a message; one that cannot be read is a failure as well."""
    try:
        content = json.loads(message)
        reason, details = content["reason"], content["details"]
        if reason in REASONS and isinstance(details, str):
            return WorkerFailureError(reason, last_lines(details))
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return WorkerFailureError("invalid", f"an unreadable message of {len(message)} bytes")
