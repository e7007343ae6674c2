"""Cells of an experiment that travel through an object store: records and rules.

| key                         | content                                     | written by         |
|-----------------------------|---------------------------------------------|--------------------|
| `cells/NAME`                | lease and committed segments (`CellRecord`) | workers, the owner |
| `checkpoints/WORKER/DIGEST` | a checkpoint, under its own digest          | this worker, once  |
| `replays/NAME/INDEX/DIGEST` | a segment to be repeated (`ReplayRecord`)   | workers, the owner |
| `decisions/NAME`            | accepted, rejected segments (`Decisions`)   | the owner          |
| `excluded/WORKER`           | the key of the worker is revoked            | the owner          |

A cell is divided into segments of equally many iterations, each of which ends with a checkpoint.
All writes to records are conditional: they succeed only if the record is the one that was read.
This module has no time, randomness or network of its own; `cell_worker.py` and `cell_owner.py` are
the programs that use it.
"""

import hashlib
import hmac
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

CELLS, REPLAYS, DECISIONS, EXCLUDED = "cells/", "replays/", "decisions/", "excluded/"
CHECKPOINTS = "checkpoints/"


class Segment(NamedTuple):
    """The end of a segment: digest of the checkpoint, and the worker that says so."""

    digest: str
    worker: str


@dataclass(frozen=True)
class Leased:
    """A record that one process at a time may change."""

    revision: int = 0
    """Number of writes: without it, a renewed lease would have the tag of the old one."""
    token: int = 0
    """Number of leases so far: a former holder is recognised by its token."""
    holder: str = ""
    """The process that has the lease: worker, dot, number of the start."""
    written: float = 0.0
    """Clock of the last writer, for people: clocks of different machines are never compared."""
    kind: str = ""
    """Kind of machine; of the first worker. Others would compute other bits."""


@dataclass(frozen=True)
class CellRecord(Leased):
    """The state of a cell: its segments so far, accepted or not."""

    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True)
class ReplayRecord(Leased):
    """A segment that other workers should compute again."""

    author: str = ""
    source: str = ""
    """The worker that stored the checkpoint at the beginning; empty if that is the cell's start."""
    wanted: int = 1
    answers: tuple[Segment, ...] = ()


@dataclass(frozen=True)
class Decisions:
    """What the owner has decided about a cell; entries are added, never changed."""

    accepted: tuple[Segment, ...] = ()
    rejected: tuple[Segment, ...] = ()
    """With their workers: the digest may be right, and only its checkpoint damaged."""


Record = TypeVar("Record", CellRecord, ReplayRecord, Decisions)


def encode(record: CellRecord | ReplayRecord | Decisions) -> bytes:
    """A record as JSON."""
    return json.dumps(vars(record)).encode()


def decode(kind: type[Record], content: bytes) -> Record:
    """A record from JSON."""
    fields: dict[str, Any] = json.loads(content)
    for name in {"segments", "answers", "accepted", "rejected"} & {*fields}:
        fields[name] = tuple(Segment(*entry) for entry in fields[name])
    return kind(**fields)


def worker_of(process: str) -> str:
    """The worker to which a process belongs."""
    return process.partition(".")[0]


def first_digest(cell: str) -> str:
    """Stands for the digest of a cell's settings, with which its first segment begins."""
    return hashlib.sha256(cell.encode()).hexdigest()


def start_of(cell: str, segments: tuple[Segment, ...], index: int) -> str:
    """Digest of the checkpoint with which a segment begins."""
    return segments[index - 1].digest if index else first_digest(cell)


@dataclass(frozen=True)
class Lease:
    """A lease as its holder knows it."""

    key: str
    token: int
    record: Any
    tag: str
    until: float
    """Until when the holder may rely on it, by its own clock."""
    renewed: float
    """When the last successful write was sent, by its own clock."""


@dataclass(frozen=True)
class Protocol:
    """Sizes, times (seconds) and rules."""

    segments: int = 5
    """Segments per cell."""
    iterations: int = 60
    """Iterations per segment."""
    portion: int = 10
    """Iterations between two looks at the clock."""
    lease: float = 180.0
    margin: float = 0.01
    """Largest relative error of the speed of a clock."""
    renewal: float = 45.0
    poll: float = 45.0
    """Seconds between two looks at the store of a worker without work, and of the owner."""
    replayed: float = 0.25
    """Share of segments that another worker computes again."""
    secret: bytes = b"of the owner"
    """Decides which segments are replayed; workers must not know it. Schedules draw their own."""

    def lapsed(self, unchanged: float, record: Leased, wall: float) -> bool:
        """Whether a lease may be taken over, its record having been seen unchanged for so long.

        Measured by the observer's clock alone, from the reply to the first look to the beginning
        of the last one.
        """
        return unchanged > self.lease * (1 + self.margin)

    def trusted_until(self, sent: float, received: float) -> float:
        """When a lease may end, by the holder's clock: nobody saw the write before it was sent."""
        return sent + self.lease * (1 - self.margin)

    def condition(self, key: str, tag: str) -> str | None:
        """The condition of a write to a record that was read with this tag."""
        return tag

    def changed(self, record: Any, wall: float, **fields: Any) -> Any:
        """A record with other fields, as a new revision."""
        return replace(record, revision=record.revision + 1, written=wall, **fields)

    def claimed(self, record: Any, process: str, kind: str, wall: float) -> Any:
        """The record with a new lease."""
        token = record.token + 1
        return self.changed(record, wall, token=token, holder=process, kind=record.kind or kind)

    def holds(self, record: Leased, process: str, lease: Lease) -> bool:
        """Whether a record that was read again still belongs to this lease."""
        return record.holder == process and record.token == lease.token

    def committed(
        self, record: CellRecord, entry: Segment, index: int, start: str, wall: float
    ) -> CellRecord | None:
        """The record with one more segment; as it is if it has it; None if it does not fit."""
        if record.segments[index:] == (entry,):
            return record
        if len(record.segments) != index or (index and record.segments[-1].digest != start):
            return None
        return self.changed(record, wall, segments=(*record.segments, entry))

    def answered(self, record: ReplayRecord, entry: Segment, wall: float) -> ReplayRecord:
        """The record with one more answer; as it is if it has it."""
        if entry in record.answers:
            return record
        return self.changed(record, wall, answers=(*record.answers, entry))

    def may_replay(self, record: ReplayRecord, worker: str, kind: str) -> bool:
        """Whether a worker should compute a segment again."""
        known = {record.author, *(answer.worker for answer in record.answers)}
        return (
            len(record.answers) < record.wanted
            and worker not in known
            and self.same_kind(record, kind)
        )

    def same_kind(self, record: Leased, kind: str) -> bool:
        """Whether a machine computes the same bits as those before it."""
        return record.kind in ("", kind)

    def selected(self, cell: str, index: int, digest: str) -> bool:
        """Whether a segment is replayed: drawn with the owner's secret, alike at every look."""
        text = f"{cell} {index} {digest}".encode()
        number = int.from_bytes(hmac.digest(self.secret, text, "sha256")[:8], "big")
        return number < self.replayed * 2**64

    def agreed(self, claim: Segment, answers: tuple[Segment, ...]) -> str | None:
        """The digest that two different workers have computed; None: one more is needed."""
        by_worker = {entry.worker: entry.digest for entry in (*answers, claim)}
        digest, number = Counter(by_worker.values()).most_common(1)[0]
        return digest if number > 1 else None

    def intact(self, stored: str, digest: str) -> bool:
        """Whether the checksum of a stored checkpoint is the one that was committed."""
        return stored == digest


def losers(claim: Segment, answers: tuple[Segment, ...], digest: str) -> list[str]:
    """The workers whose digest is not the one that was agreed on."""
    return sorted({entry.worker for entry in (claim, *answers) if entry.digest != digest})


def checkpoint_key(entry: Segment) -> str:
    """The key of a checkpoint: every worker has a folder that only it can write to."""
    return f"{CHECKPOINTS}{entry.worker}/{entry.digest}"


def replay_key(cell: str, index: int, start: str) -> str:
    """The key of a replay: the same for all attempts at a segment from the same checkpoint."""
    return f"{REPLAYS}{cell}/{index}/{start}"


def parse_replay_key(key: str) -> tuple[str, int, str]:
    """Cell, index and first checkpoint of a replay."""
    cell, index, start = key.removeprefix(REPLAYS).split("/")
    return cell, int(index), start
