"""The loop of a worker process. Needs NumPy only, and what its environment imports."""

import contextlib
import os
import pickle
import signal
import struct
import traceback
from multiprocessing.connection import Connection

from fp3o.envs.workers.messages import REPLY, FailureMessage
from fp3o.envs.workers.protocol import InvalidReplyError, check_reply
from fp3o.envs.workers.shared_memory import SharedBuffer

REQUEST = struct.Struct("<qBqq")
"""Id of a request, its kind, and for a reset the seed and the episode index."""

RESET, STEP, CLOSE = range(3)


def serve(pipe: int, buffer: int) -> None:
    """Answer requests until one says to close, or until the parent process has ended."""
    worker, connection = os.getpid(), Connection(pipe)
    # A forked copy must not answer in place of the worker, nor keep the pipe open after it.
    os.register_at_fork(after_in_child=connection.close)
    try:
        _answer_requests(connection, buffer)
    except BaseException as error:
        failure = FailureMessage("crashed", traceback.format_exc())
        if isinstance(error, InvalidReplyError):
            failure = FailureMessage("invalid", str(error))
        with contextlib.suppress(OSError):
            connection.send_bytes(failure.encode())
    finally:
        if os.getpid() != worker:
            os._exit(1)  # a copy that returned from the environment
        os.killpg(os.getpgrp(), signal.SIGKILL)


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
