"""The loop of a worker process. Needs NumPy only, and what its environment imports."""

import contextlib
import os
import pickle
import signal
import struct
import threading
import time
import traceback
from multiprocessing.connection import Connection

from fp3o.envs.workers.protocol import InvalidReplyError, check_reply
from fp3o.envs.workers.shared_memory import SharedBuffer

REQUEST = struct.Struct("<qBqq")
"""Id of a request, its kind, and for a reset the seed and the episode index."""

RESET, STEP, CLOSE = range(3)

REPLY = struct.Struct("<q")
"""Id of the request whose reply is in shared memory. Any other message is a pickled failure."""


def serve(pipe: int, buffer: int, parent: int) -> None:
    """Answer requests until one says to close, or until the parent process has ended."""
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    connection = Connection(pipe)
    try:
        _answer_requests(connection, buffer)
    except BaseException as error:
        invalid = isinstance(error, InvalidReplyError)
        failure = ("invalid", str(error)) if invalid else ("crashed", traceback.format_exc())
        with contextlib.suppress(OSError):
            connection.send_bytes(pickle.dumps(failure))
    finally:
        _exit_group()


def _answer_requests(connection: Connection, file: int) -> None:
    make, seed, spec = pickle.loads(connection.recv_bytes())
    buffer, env = SharedBuffer(spec, file), make(seed)
    while (request := _next_request(connection))[1] != CLOSE:
        number, kind, *arguments = request
        reply = env.reset(*arguments) if kind == RESET else env.step(buffer.read_action())
        buffer.write_reply(check_reply(reply, spec.reply))
        connection.send_bytes(REPLY.pack(number))
    env.close()


def _next_request(connection: Connection) -> tuple[int, ...]:
    try:
        return REQUEST.unpack(connection.recv_bytes())
    except EOFError:
        return 0, CLOSE


def _exit_with(parent: int) -> None:
    """Exit when the parent process has ended, even if the environment hangs."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _exit_group()


def _exit_group() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)
