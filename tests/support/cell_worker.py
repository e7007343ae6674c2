"""The program of a worker: it finds a cell or a replay, leases it, computes, commits.

Workers need no address that others can reach and never talk to each other: all they do is send
requests to the object store. The program is a generator that yields these requests; `Prepare`,
`Compute` and `Finish` stand for the work between them.
"""

import contextlib
import random
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple

from leased_cells import (
    CELLS,
    REPLAYS,
    CellRecord,
    Lease,
    Leased,
    Protocol,
    ReplayRecord,
    Segment,
    checkpoint_key,
    decode,
    encode,
    parse_replay_key,
    start_of,
    worker_of,
)
from object_store import ABSENT, Get, List, Put, Reply, Status


class Wait(NamedTuple):
    """Do nothing for so many seconds."""

    seconds: float


class Prepare(NamedTuple):
    """Compile the program of a cell; once per lease."""


class Compute(NamedTuple):
    """Compute some iterations of a segment."""

    task: str
    start: str
    iterations: int


class Finish(NamedTuple):
    """Write the checkpoint at the end of a segment; the answer is its digest."""

    cell: str
    number: int
    start: str
    kind: str
    replay: bool


class RevokedError(Exception):
    """The worker's key was revoked."""


class LeaseLostError(Exception):
    """Another process has the lease."""


Steps = Generator[Any, Any, Any]


class Worker:
    """One start of a worker."""

    def __init__(
        self,
        protocol: Protocol,
        name: str,
        kind: str,
        clocks: tuple[Callable[[], float], Callable[[], float]],
        rng: random.Random,
    ):
        self.name, self.kind, self.lease = name, kind, None
        self._protocol, self._rng = protocol, rng
        self._clock, self._wall = clocks
        self._seen: dict[str, tuple[str, float]] = {}
        self._records: dict[str, tuple[str, Leased]] = {}

    lease: Lease | None

    def program(self) -> Steps:
        """Work until the key is revoked."""
        try:
            while True:
                self.lease = yield from self._find_work()
                if self.lease is None:
                    yield Wait(self._protocol.poll * (0.5 + self._rng.random()))
                    continue
                with contextlib.suppress(LeaseLostError):
                    yield Prepare()
                    yield from self._train() if self.lease.key.startswith(CELLS) else self._replay()
                self.lease = None
        except RevokedError:
            return

    def _send(self, request: Any) -> Steps:
        reply: Reply = yield request
        if reply.status is Status.FORBIDDEN:
            raise RevokedError
        return reply

    def _find_work(self) -> Steps:
        """A lease on a replay or, if none is open, on a cell."""
        for prefix in (REPLAYS, CELLS):
            sent = self._clock()
            reply = yield from self._send(List(prefix))
            received = self._clock()
            keys = list(reply.listing)
            for key, tag in keys:
                if self._seen.get(key, ("", 0.0))[0] != tag:
                    self._seen[key] = tag, received
            self._rng.shuffle(keys)
            for key, tag in keys:
                record = yield from self._read(key, tag)
                if record is None or not self._is_open(record):
                    continue
                unchanged = sent - self._seen[key][1]
                free = record.holder in ("", self.name)
                if free or self._protocol.lapsed(unchanged, record, self._wall()):
                    lease = yield from self._claim(key, record, tag)
                    if lease is not None:
                        return lease
        return None

    def _read(self, key: str, tag: str) -> Steps:
        """The record with this tag; None if it has another one by now."""
        if self._records.get(key, ("", None))[0] != tag:
            reply = yield from self._send(Get(key))
            if reply.status is not Status.DONE or reply.tag != tag:
                return None
            self._records[key] = tag, decode(_kind_of(key), reply.content)
        return self._records[key][1]

    def _is_open(self, record: Leased) -> bool:
        if isinstance(record, ReplayRecord):
            return self._protocol.may_replay(record, worker_of(self.name), self.kind)
        assert isinstance(record, CellRecord)
        left = self._protocol.segments - len(record.segments)
        return left > 0 and self._protocol.same_kind(record, self.kind)

    def _claim(self, key: str, record: Leased, tag: str) -> Steps:
        """A lease on a free record; None if somebody else was faster."""
        new = self._protocol.claimed(record, self.name, self.kind, self._wall())
        sent = self._clock()
        reply = yield from self._send(Put(key, encode(new), self._protocol.condition(key, tag)))
        received = self._clock()
        if reply.status is Status.UNKNOWN:
            reply = yield from self._send(Get(key))
            if reply.content != encode(new):
                return None
        if reply.status is not Status.DONE:
            return None
        until = self._protocol.trusted_until(sent, received)
        return Lease(key, new.token, new, reply.tag, until, sent)

    def _update(self, change: Callable[[Any], Any]) -> Steps:
        """Write a changed record under the lease, in as many attempts as it takes.

        False if the change does not fit the record any more. After an unknown result the record is
        read again, which shows whether the write was done and whether the lease still exists.
        """
        again = False
        while True:
            if again:
                yield from self._read_again()
            lease = self._held()
            new = change(lease.record)
            if new is None or new is lease.record:
                return new is not None
            sent = self._clock()
            condition = self._protocol.condition(lease.key, lease.tag)
            reply = yield from self._send(Put(lease.key, encode(new), condition))
            if reply.status is Status.DONE:
                until = self._protocol.trusted_until(sent, self._clock())
                self.lease = Lease(lease.key, lease.token, new, reply.tag, until, sent)
                return True
            again = True

    def _read_again(self) -> Steps:
        lease = self._held()
        reply = yield from self._send(Get(lease.key))
        while reply.status is not Status.DONE:
            yield Wait(self._rng.uniform(1.0, 5.0))
            reply = yield from self._send(Get(lease.key))
        record = decode(_kind_of(lease.key), reply.content)
        if not self._protocol.holds(record, self.name, lease):
            raise LeaseLostError
        self.lease = replace(lease, record=record, tag=reply.tag)

    def _held(self) -> Lease:
        assert self.lease is not None
        return self.lease

    def _keep(self) -> Steps:
        """Renew the lease when it is time."""
        if self._clock() - self._held().renewed >= self._protocol.renewal:
            yield from self._update(lambda x: self._protocol.changed(x, self._wall()))

    def _release(self) -> Steps:
        """Give the lease back; the request may be done long before the reply, if there is one."""
        self.lease = replace(self._held(), until=0.0)
        yield from self._update(lambda x: self._protocol.changed(x, self._wall(), holder=""))

    def _train(self) -> Steps:
        """Compute and commit segments until the cell is complete."""
        cell, loaded = self._held().key.removeprefix(CELLS), ""
        while len(segments := self._held().record.segments) < self._protocol.segments:
            index = len(segments)
            start = start_of(cell, segments, index)
            if index and start != loaded and not (yield from self._download(segments[-1])):
                yield Wait(self._protocol.poll)  # the owner will reject this checkpoint
                break
            if not (yield from self._iterate(start, segments)):
                continue  # the owner has rejected a segment before this one
            loaded = yield Finish(cell, index, start, self.kind, False)
            entry = Segment(loaded, worker_of(self.name))
            yield from self._upload(entry)
            yield from self._commit(entry, index, start)
        yield from self._release()

    def _commit(self, entry: Segment, index: int, start: str) -> Steps:
        yield from self._update(
            lambda x: self._protocol.committed(x, entry, index, start, self._wall())
        )

    def _replay(self) -> Steps:
        """Compute a segment again and answer with the digest of its end."""
        cell, index, start = parse_replay_key(self._held().key)
        source = self._held().record.source
        if not source or (yield from self._download(Segment(start, source))):
            yield from self._iterate(start, None)
            digest = yield Finish(cell, index, start, self.kind, True)
            entry = Segment(digest, worker_of(self.name))
            yield from self._update(lambda x: self._protocol.answered(x, entry, self._wall()))
        yield from self._release()

    def _iterate(self, start: str, segments: tuple[Segment, ...] | None) -> Steps:
        """Compute a segment; False if the cell has other segments than before by now."""
        for _ in range(0, self._protocol.iterations, self._protocol.portion):
            yield from self._keep()
            if segments is not None and self._held().record.segments != segments:
                return False
            yield Compute(self._held().key, start, self._protocol.portion)
        return True

    def _upload(self, entry: Segment) -> Steps:
        """Store a checkpoint, in as many attempts as it takes."""
        request = Put(checkpoint_key(entry), entry.digest.encode(), ABSENT)
        while (yield from self._send(request)).status is Status.UNKNOWN:
            yield from self._keep()

    def _download(self, entry: Segment) -> Steps:
        """Read a checkpoint; False if it is not what its digest says."""
        while (reply := (yield from self._send(Get(checkpoint_key(entry))))).status is (
            Status.UNKNOWN
        ):
            yield from self._keep()
        return reply.content == entry.digest.encode()


def _kind_of(key: str) -> Any:
    return CellRecord if key.startswith(CELLS) else ReplayRecord
