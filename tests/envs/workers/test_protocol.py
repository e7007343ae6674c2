"""Replies of worker processes, and the memory shared with them."""

import os
import subprocess
import sys

import numpy as np
import pytest
from failing_env import Counting, FailingEnvs, fail
from worker_pools import SPEC

from fp3o.envs.workers.protocol import StepReply, buffer_spec, reply_problem
from fp3o.envs.workers.shared_memory import ArraySpec, BufferSpec, SharedBuffer


@pytest.mark.parametrize("failure", ["shape", "dtype", "nan", "list", "short", "text"])
def test_invalid_replies_are_detected(failure: str) -> None:
    """Anything but finite arrays of the right shapes and types."""
    good = Counting(FailingEnvs({}), 0, "", "").reset(0, 0)
    assert reply_problem(good, buffer_spec(SPEC).reply) is None
    assert reply_problem(fail(failure, good), buffer_spec(SPEC).reply)


def test_workers_start_without_jax() -> None:
    """They would take seconds and gigabytes otherwise."""
    program = (
        "import sys, fp3o.envs.workers.pool, fp3o.envs.workers.serve\n"
        "import fp3o.envs.starcraft2.smacv2; print(*sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert "numpy" in process.stdout.decode().split() and b"jax" not in process.stdout


def test_replies_have_the_fields_of_the_specification() -> None:
    """In the same order."""
    assert tuple(field.name for field in buffer_spec(SPEC).reply) == StepReply._fields


def test_shared_memory_keeps_what_is_written() -> None:
    """Arrays do not overlap, and what was read does not change any more."""
    fields = (
        ArraySpec("flag", (), np.bool_),
        ArraySpec("empty", (0,), np.float32),
        ArraySpec("odd", (3,), "i1"),
    )
    shared = BufferSpec(ArraySpec("action", (2, 1), np.int32), fields)
    mine = SharedBuffer(shared)
    theirs = SharedBuffer(shared, os.dup(mine.file))
    mine.write_action([[3], [-1]])
    given = np.array(True), np.zeros(0, np.float32), np.array([1, -2, 3], "i1")
    theirs.write_reply(given)
    np.testing.assert_array_equal(theirs.read_action(), [[3], [-1]])
    read = mine.read_reply()
    theirs.write_reply((np.array(False), given[1], np.zeros(3, "i1")))
    for one, other in zip(read, given, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    with pytest.raises(TypeError, match="same_kind"):
        mine.write_action(np.full((2, 1), 0.5))
    for buffer in (mine, theirs):
        os.close(buffer.file)
        buffer.close()
