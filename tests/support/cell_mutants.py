"""Variants of the protocol of `leased_cells.py` with one mistake each, which the laws must find."""

from dataclasses import dataclass, replace
from typing import Any

from leased_cells import CELLS, DECISIONS, Lease, Leased, Protocol, Segment


class WithoutFencing(Protocol):
    """A worker that comes back writes as if it still had the lease."""

    def holds(self, record: Leased, process: str, lease: Lease) -> bool:
        return True


class UnconditionalCommits(Protocol):
    """Leases and segments are written whatever is there by now."""

    def condition(self, key: str, tag: str) -> str | None:
        return None if key.startswith(CELLS) else tag


class UnconditionalAcceptance(Protocol):
    """Decisions are written whatever is there by now."""

    def condition(self, key: str, tag: str) -> str | None:
        return None if key.startswith(DECISIONS) else tag


class WithoutRevision(Protocol):
    """A renewed lease has the tag of the old one."""

    def changed(self, record: Any, wall: float, **fields: Any) -> Any:
        return replace(record, **fields)


class OtherClocks(Protocol):
    """The age of a lease is the time of day here minus the time of day there."""

    def lapsed(self, unchanged: float, record: Leased, wall: float) -> bool:
        return wall - record.written > self.lease * (1 + self.margin)


class FromTheReply(Protocol):
    """A holder counts from the reply to its renewal, not from the request."""

    def trusted_until(self, sent: float, received: float) -> float:
        return received + self.lease * (1 - self.margin)


class NeverLapses(Protocol):
    """The lease of a worker that crashed stays."""

    def lapsed(self, unchanged: float, record: Leased, wall: float) -> bool:
        return False


class StartsOver(Protocol):
    """A new holder begins with the first segment."""

    def claimed(self, record: Any, process: str, kind: str, wall: float) -> Any:
        new = super().claimed(record, process, kind, wall)
        return replace(new, segments=()) if hasattr(new, "segments") else new


class WithoutReplays(Protocol):
    """No segment is replayed."""

    def selected(self, cell: str, index: int, digest: str) -> bool:
        return False


@dataclass(frozen=True)
class KnownDraw(Protocol):
    """Workers know which segments will be replayed."""

    secret: bytes = b""


class BelievesTheReplay(Protocol):
    """Of two different digests, that of the replay is taken for right."""

    def agreed(self, claim: Segment, answers: tuple[Segment, ...]) -> str | None:
        return answers[0].digest if answers else None


class BelievesTheAuthor(Protocol):
    """Of two different digests, that of the author is taken for right."""

    def agreed(self, claim: Segment, answers: tuple[Segment, ...]) -> str | None:
        return claim.digest if answers else None


class AnyMachine(Protocol):
    """Segments are replayed on other kinds of machines, which compute other bits."""

    def same_kind(self, record: Leased, kind: str) -> bool:
        return True


class UncheckedUploads(Protocol):
    """A segment is accepted without a look at its checkpoint."""

    def intact(self, stored: str, digest: str) -> bool:
        return True


PROBABILITY = "probability"
"""Not a law of single schedules: wrong segments are found as often as stated."""

MUTANTS: dict[type[Protocol], str] = {
    WithoutFencing: "fence",
    UnconditionalCommits: "fence",
    UnconditionalAcceptance: "twice",
    WithoutRevision: "exclusive",
    OtherClocks: "exclusive",
    FromTheReply: "exclusive",
    NeverLapses: "lost",
    StartsOver: "back",
    WithoutReplays: PROBABILITY,
    KnownDraw: PROBABILITY,
    BelievesTheReplay: "blamed",
    BelievesTheAuthor: "found",
    AnyMachine: "blamed",
    UncheckedUploads: "usable",
}
"""Each with what it breaks, one of `cell_laws.LAWS` or the probability."""
