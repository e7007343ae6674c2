"""Several processes that train one run together, by `jax.distributed`.

All of them execute the same programs in the same order. What a process could decide by itself (when
to stop, when to save, which settings hold) the first one, the leader, decides for all. It alone
writes files and messages.
"""

import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from fp3o.errors import UserError

HEARTBEAT_SECONDS = 30
"""Seconds without a sign of life after which a process counts as lost."""


class LeaderError(UserError, RuntimeError):
    """An error of the first process, in another one."""


def join_processes(
    coordinator: str | None = None, processes: int | None = None, process_id: int | None = None
) -> None:
    """Connect this process with the others of its run, before JAX is used.

    Without an address, JAX finds the others itself where SLURM, MPI or a TPU pod started them.
    """
    jax.distributed.initialize(
        coordinator, processes, process_id, heartbeat_timeout_seconds=HEARTBEAT_SECONDS
    )


def num_processes() -> int:
    """Number of processes of the run."""
    return jax.process_count()


def is_leader() -> bool:
    """Whether this is the process that decides and writes."""
    return jax.process_index() == 0


def agree(*flags: bool) -> tuple[bool, ...]:
    """The leader's flags, in all processes."""
    if num_processes() == 1:
        return flags
    return tuple(map(bool, _broadcast(np.array(flags, np.uint8))))


def share_bytes(content: bytes | None) -> bytes:
    """The leader's bytes, in all processes; the others give None."""
    if num_processes() == 1:
        return content or b""
    content = (content or b"") if is_leader() else b""
    # As integers: a sum of floats with zeros would lose the sign of -0.0.
    (size,) = _broadcast(np.array([len(content)], np.int32))
    padded = np.zeros(size, np.uint8)
    padded[: len(content)] = np.frombuffer(content, np.uint8)
    return _broadcast(padded).tobytes()


def from_leader(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """JSON values that the leader makes, in all processes; its error is raised in all of them."""
    if num_processes() == 1:
        return make()
    message: dict[str, Any] = {}
    try:
        if is_leader():
            message = {"value": make()}
    except (UserError, OSError) as error:
        share_bytes(json.dumps({"error": str(error)}).encode())
        raise
    message = json.loads(share_bytes(json.dumps(message).encode()))
    if "error" in message:
        raise LeaderError(f"the first process has stopped: {message['error']}")
    return message["value"]


def _broadcast(array: np.ndarray) -> np.ndarray:
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.broadcast_one_to_all(array))
