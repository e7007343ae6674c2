"""Campaigns against worker processes: whatever they do, the pool replaces and counts them."""

import os
import random
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from campaigns import Campaign, not_small
from hypothesis import given
from hypothesis import strategies as st
from worker_pools import IDLE, QUICK, gone, plan_of, pool

from fp3o.envs.workers.messages import (
    LARGEST_MESSAGE,
    MESSAGE_SIZE,
    REPLY,
    FailureMessage,
    MessageReader,
)
from fp3o.envs.workers.protocol import FailureCounts, WorkerFailureError, WorkerPoolError

DOCUMENTED = {
    "exit": "crashed", "raise": "crashed", "fork and exit": "crashed", "print\x1b[2J": "crashed",
    "hang": "hung", "hang with a child": "hung", "native": "hung", "stop": "hung",
    "write0000": "hung", "write00000005ffff": "hung",
    "write7fffffff": "invalid", "writeffffffff": "invalid", "write00000003616263": "invalid",
    "shape": "invalid", "dtype": "invalid", "nan": "invalid", "list": "invalid",
    "short": "invalid", "text": "invalid", "unpicklable": "invalid",
    "fork": "", "": "",
}  # fmt: skip
"""Failure of an environment -> what the pool counts; `write` writes these bytes to the pipe."""

WORKERS = 6
PATIENT = QUICK._replace(step=5.0)
"""Long enough for a busy machine: who answers late is not who does not answer."""


def _moment(kind: str, chance: random.Random) -> str | int:
    """When an environment fails: a reset that hangs would take longer than a step."""
    moments = (1, 2) if DOCUMENTED[kind] == "hung" else ("reset", 1, 2, "again")
    return chance.choice(moments) if kind else ""


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which processes leave their ids."""
    monkeypatch.setenv("FAKE_TRACES", str(tmp_path))
    return tmp_path


@not_small
def test_failing_workers(campaign: Campaign, traces: Path) -> None:
    """Random failures at random moments: as many steps as without them, and exact counts."""
    chance = random.Random(campaign.seed)
    for _ in range(campaign.tries(small=1, medium=4, whole=40)):
        kinds = chance.choices([*DOCUMENTED], k=WORKERS)
        plans = ((kind, _moment(kind, chance)) for kind in kinds)
        made = pool(*plans, timeouts=PATIENT)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.reset(range(WORKERS))
            for _ in range(3):
                replies = made.step(dict.fromkeys(range(WORKERS), IDLE))
                assert all(
                    np.isfinite(array).all() for reply in replies.values() for array in reply
                )
                made.reset([i for i in range(WORKERS) if i not in replies])
            made.reset(range(WORKERS))
        wanted = FailureCounts()
        for kind in filter(None, map(DOCUMENTED.__getitem__, kinds)):
            setattr(wanted, kind, getattr(wanted, kind) + 1)
            wanted.restarts += 1
        wanted.lost_steps = made.failures.lost_steps
        assert made.failures == wanted, (kinds, [str(entry.message) for entry in caught])
        messages = [str(entry.message) for entry in caught]
        assert all(text.isprintable() and len(text) < 500 for text in messages)
        made.close()
        assert gone(traces)
        for kind in kinds:
            campaign.count(DOCUMENTED[kind] or "replied")


def test_a_worker_that_only_fails_is_given_up(traces: Path) -> None:
    """After the allowed number of restarts, with the reason; nothing keeps running."""
    made = pool(("write00000003616263", 1), ("", ""), timeouts=PATIENT._replace(restarts=1))
    plan_of(made).update(dict.fromkeys(range(3), ("write00000003616263", 1)))
    made.reset(range(2))
    with (
        pytest.warns(RuntimeWarning, match="invalid, an unreadable message of 3 bytes"),
        pytest.raises(WorkerPoolError, match="failed 2 times in succession"),
    ):
        for _ in range(3):
            made.reset([*{0, 1} - {*made.step({0: IDLE, 1: IDLE})}])
    assert gone(traces)


def frame(content: bytes) -> bytes:
    """A message with its header."""
    return MESSAGE_SIZE.pack(len(content)) + content


MESSAGES = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(frame),
    st.integers(-(2**31), 2**31 - 1).map(MESSAGE_SIZE.pack),
    st.integers(0, 9).map(REPLY.pack).map(frame),
    st.builds(
        FailureMessage, st.sampled_from(["crashed", "invalid", "restarts", "\x1b"]), st.text()
    )
    .map(FailureMessage.encode)
    .map(frame),
    st.sampled_from([b"{}", b"[" * 10_000, b'{"reason": {}, "details": 1}', b'"x"']).map(frame),
)


def test_bytes_from_workers(campaign: Campaign) -> None:
    """Any bytes are a reply to this request, or one of the three failures, at once."""

    @given(st.lists(MESSAGES, max_size=4), st.booleans())
    def attack(parts: list[bytes], closed: bool) -> None:
        ours, theirs = os.pipe()
        os.write(theirs, b"".join(parts))
        if closed:
            os.close(theirs)
        left = sum(map(len, parts))
        waits = iter(range(left + 2))
        reader = MessageReader(ours, lambda _: closed or next(waits) == 0 < left)
        started = time.monotonic()
        try:
            reader.reply(7, started)
            ending = "reply"
        except WorkerFailureError as failure:
            ending = failure.reason
            assert ending in {"crashed", "hung", "invalid"}
            assert all(line.isprintable() for line in failure.details.splitlines())
        finally:
            os.close(ours)
            if not closed:
                os.close(theirs)
        assert time.monotonic() - started < 10 and len(reader._pending) <= LARGEST_MESSAGE
        assert closed or ending != "crashed" or b'"crashed"' in b"".join(parts)
        campaign.count(ending)

    campaign.attack(attack, small=200, medium=2_000, whole=50_000)
