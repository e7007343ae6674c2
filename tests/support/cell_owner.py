"""The program of the owner: it accepts, has replayed, rejects and excludes.

The owner is the machine that started the experiment. It need not be on all the time: workers
continue without it, and everything it knows is in the store, apart from its secret. Several owners
with the same secret do no harm.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from cell_worker import Steps, Wait
from leased_cells import (
    CELLS,
    DECISIONS,
    EXCLUDED,
    REPLAYS,
    CellRecord,
    Decisions,
    Protocol,
    ReplayRecord,
    Segment,
    checkpoint_key,
    decode,
    encode,
    losers,
    replay_key,
    start_of,
)
from object_store import ABSENT, Get, Head, List, Put, Status


class Verdict(Enum):
    """What the owner knows about a segment."""

    RIGHT = "it may be accepted"
    WRONG = "it must be rejected"
    OPEN = "a replay has to come first"
    UNREAD = "its checkpoint could not be looked at: nothing may build on it yet"


class Owner:
    """One start of the owner."""

    def __init__(self, protocol: Protocol, cells: Sequence[str], wall: Callable[[], float]):
        self._protocol, self._cells, self._wall = protocol, cells, wall
        self._tags: dict[str, str] = {}
        self._records: dict[str, tuple[str, Any]] = {}
        self._intact: dict[Segment, bool] = {}

    def program(self) -> Steps:
        """Publish the cells, then decide about segments until all cells are accepted."""
        for cell in self._cells:
            record = encode(CellRecord())
            while (yield Put(CELLS + cell, record, ABSENT)).status is Status.UNKNOWN:
                yield Wait(1.0)
        left = list(self._cells)
        while left:
            if (yield from self._look()):
                for cell in tuple(left):
                    if (yield from self._review(cell)):
                        left.remove(cell)
            yield Wait(self._protocol.poll)

    def _look(self) -> Steps:
        """List all records; False if that failed."""
        tags = {}
        for prefix in (CELLS, DECISIONS, REPLAYS, EXCLUDED):
            reply = yield List(prefix)
            if reply.status is not Status.DONE:
                return False
            tags.update(reply.listing)
        self._tags = tags
        return True

    def _read(self, kind: Any, key: str) -> Steps:
        """A record as it was at the last look, or newer; None if it could not be read."""
        tag = self._tags[key]
        if self._records.get(key, ("", None))[0] != tag:
            reply = yield Get(key)
            if reply.status is not Status.DONE:
                return None
            self._tags[key] = reply.tag
            self._records[key] = reply.tag, decode(kind, reply.content)
        return self._records[key][1]

    def _write(self, key: str, content: bytes) -> Steps:
        """Write if nobody else has; otherwise the next look shows what there is."""
        condition = self._protocol.condition(key, self._tags.get(key, ABSENT))
        return (yield Put(key, content, condition)).status is Status.DONE

    def _review(self, cell: str) -> Steps:
        """Decide about the segments of a cell; True if it is finished."""
        key = DECISIONS + cell
        record = yield from self._read(CellRecord, CELLS + cell)
        before = (yield from self._read(Decisions, key)) if key in self._tags else Decisions()
        if record is None or before is None:
            return False
        if len(before.accepted) == self._protocol.segments:
            return True
        for index, segment in enumerate(record.segments):
            if segment in before.rejected:
                cut = self._protocol.changed(record, self._wall(), segments=record.segments[:index])
                yield from self._write(CELLS + cell, encode(cut))
                return False
        after = yield from self._decide(cell, record, before)
        if after != before:
            yield from self._write(key, encode(after))
        return False

    def _decide(self, cell: str, record: CellRecord, before: Decisions) -> Steps:
        """The decisions with those that can be taken now; replays are opened for the others."""
        accepted, waiting = list(before.accepted), False
        for index in range(len(accepted), len(record.segments)):
            verdict = yield from self._check(cell, record, index)
            if verdict is Verdict.WRONG and not waiting:
                rejected = (*before.rejected, record.segments[index])
                return Decisions(tuple(accepted), rejected)
            if verdict in (Verdict.WRONG, Verdict.UNREAD):
                break
            waiting = waiting or verdict is Verdict.OPEN
            if not waiting:
                accepted.append(record.segments[index])
        return replace(before, accepted=tuple(accepted))

    def _check(self, cell: str, record: CellRecord, index: int) -> Steps:
        """Whether a segment is right, as far as that has to be known."""
        claim, start = record.segments[index], start_of(cell, record.segments, index)
        stored = yield from self._is_stored(claim)
        if stored is None:
            return Verdict.UNREAD
        if not stored:
            yield from self._exclude([claim.worker])
            return Verdict.WRONG
        key = replay_key(cell, index, start)
        if key not in self._tags:
            excluded = EXCLUDED + claim.worker in self._tags
            if not excluded and not self._protocol.selected(cell, index, claim.digest):
                return Verdict.RIGHT
            source = record.segments[index - 1].worker if index else ""
            replay = ReplayRecord(kind=record.kind, author=claim.worker, source=source)
            yield Put(key, encode(replay), ABSENT)
            return Verdict.OPEN
        return (yield from self._compare(key, claim))

    def _compare(self, key: str, claim: Segment) -> Steps:
        """The verdict of a replay; if workers disagree, one more is asked."""
        replay = yield from self._read(ReplayRecord, key)
        if replay is None:
            return Verdict.OPEN
        digest = self._protocol.agreed(claim, replay.answers)
        if digest is None:
            if len(replay.answers) >= replay.wanted:
                wanted = len(replay.answers) + 1
                more = self._protocol.changed(replay, self._wall(), wanted=wanted)
                yield from self._write(key, encode(more))
            return Verdict.OPEN
        if not (yield from self._exclude(losers(claim, replay.answers, digest))):
            return Verdict.OPEN
        return Verdict.RIGHT if digest == claim.digest else Verdict.WRONG

    def _is_stored(self, claim: Segment) -> Steps:
        """Whether the checkpoint in the store has the committed digest; None: not known yet."""
        if claim not in self._intact:
            reply = yield Head(checkpoint_key(claim))
            if reply.status is Status.UNKNOWN:
                return None
            self._intact[claim] = self._protocol.intact(reply.content.decode(), claim.digest)
        return self._intact[claim]

    def _exclude(self, workers: Sequence[str]) -> Steps:
        """Revoke the keys of workers; False if that is not certain yet."""
        certain = True
        for worker in workers:
            if EXCLUDED + worker not in self._tags:
                reply = yield Put(EXCLUDED + worker, b"{}", ABSENT)
                if reply.status is Status.UNKNOWN:
                    certain = False
                else:
                    self._tags[EXCLUDED + worker] = reply.tag
        return certain
