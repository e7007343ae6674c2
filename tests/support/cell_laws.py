"""Laws of the protocol of `leased_cells.py`, checked at every write and at the end."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from leased_cells import (
    CELLS,
    DECISIONS,
    EXCLUDED,
    REPLAYS,
    CellRecord,
    Decisions,
    Leased,
    ReplayRecord,
    checkpoint_key,
    decode,
)

if TYPE_CHECKING:
    from cell_schedules import Schedule

LAWS = {
    "lost": "every cell is accepted in the end",
    "twice": "a decision is final: one accepted result per cell, and nothing accepted is dropped",
    "back": "a cell always begins with its accepted segments",
    "fence": "only the holder of a lease changes a record, and it only adds",
    "exclusive": "nobody gets a lease on which another worker still relies",
    "found": "no segment drawn for a replay is accepted with a wrong digest",
    "blamed": "no honest worker is excluded",
    "usable": "the checkpoint of every accepted segment is in the store",
    "bounded": "a lease or a rejection costs at most one segment of uncommitted work",
}


class Laws:
    """Violations of the laws so far, and what is needed to find them."""

    def __init__(self, schedule: "Schedule"):
        self._schedule = schedule
        self.broken: Counter[str] = Counter()
        self.lies: set[str] = set()
        """Wrong digests that were returned."""
        self.decided: dict[str, tuple[bool, bool]] = {}
        """Wrong segments: whether they were drawn for a replay, and whether they were accepted."""
        self.decisions: dict[str, Decisions] = {}
        self._complete: set[str] = set()
        self.committed = 0
        self.rejections = 0

    def all_accepted(self) -> bool:
        """Whether every cell has an accepted result."""
        return len(self._complete) == len(self._schedule.cells)

    def written(self, process: str, key: str, before: bytes, after: bytes) -> None:
        """Check a write that the store has done."""
        if key.startswith(DECISIONS):
            self._decision(key.removeprefix(DECISIONS), decode(Decisions, after))
        elif key.startswith(CELLS):
            old = decode(CellRecord, before) if before else CellRecord()
            self._cell(process, key, old, decode(CellRecord, after))
        elif key.startswith(REPLAYS) and before:
            old, new = decode(ReplayRecord, before), decode(ReplayRecord, after)
            self._leased(process, key, old, new)
            self._require("fence", new.answers[: len(old.answers)] == old.answers)
        elif key.startswith(EXCLUDED):
            self._require("blamed", not key.removeprefix(EXCLUDED).startswith("honest"))

    def _require(self, law: str, holds: bool) -> None:
        assert law in LAWS
        if not holds:
            self.broken[law] += 1

    def _decision(self, cell: str, new: Decisions) -> None:
        """Decisions are only added, and no accepted segment was drawn and is wrong."""
        old = self.decisions.get(cell, Decisions())
        self._require("twice", new.accepted[: len(old.accepted)] == old.accepted)
        self._require("twice", new.rejected[: len(old.rejected)] == old.rejected)
        self.decisions[cell] = new
        protocol = self._schedule.setting.protocol
        if len(new.accepted) == protocol.segments:
            self._complete.add(cell)
        for index, segment in enumerate(new.accepted):
            stored = self._schedule.store.content(checkpoint_key(segment)).decode()
            self._require("usable", stored == segment.digest)
            if segment.digest in self.lies and segment.digest not in self.decided:
                drawn = protocol.selected(cell, index, segment.digest)
                self.decided[segment.digest] = drawn, True
                self._require("found", not drawn)
        for digest, _ in new.rejected[len(old.rejected) :]:
            self.rejections += 1
            if digest in self.lies:
                # The accepted segments precede the rejected one.
                drawn = protocol.selected(cell, len(new.accepted), digest)
                self.decided[digest] = drawn, False
        self._begins_with_accepted(cell)

    def _cell(self, process: str, key: str, old: CellRecord, new: CellRecord) -> None:
        kept = new.segments[: len(old.segments)] == old.segments
        self._require("fence", kept or process.startswith("owner"))
        self._leased(process, key, old, new)
        added = len(new.segments) - len(old.segments)
        if added > 0:
            self.committed += added
            iterations = added * self._schedule.setting.protocol.iterations
            if self._schedule.processes[process].killed:  # its work had been counted as lost
                self._schedule.work.lost -= iterations
            else:
                self._schedule.open[process] -= iterations
        self._begins_with_accepted(key.removeprefix(CELLS))

    def _begins_with_accepted(self, cell: str) -> None:
        content = self._schedule.store.content(CELLS + cell)
        segments = decode(CellRecord, content).segments
        accepted = self.decisions.get(cell, Decisions()).accepted
        self._require("back", segments[: len(accepted)] == accepted)

    def _leased(self, process: str, key: str, old: Leased, new: Leased) -> None:
        """A new lease is given when nobody relies on the old one; other writes need the lease."""
        if process.startswith("owner"):
            self._require("fence", (new.holder, new.token) == (old.holder, old.token))
            return
        if new.holder == process and new.token == old.token + 1:
            self._schedule.work.leases += key.startswith(CELLS)
            for name, worker in self._schedule.workers.items():
                lease: Any = worker.lease
                if name != process and lease is not None and lease.key == key:
                    alive = self._schedule.processes[name].alive
                    relied_on = self._schedule.clock(name) < lease.until
                    self._require("exclusive", not (alive and relied_on))
            return
        self._require("fence", old.holder == process and new.token == old.token)

    def at_end(self) -> None:
        """Check what holds at the end, and add up the work."""
        schedule, protocol = self._schedule, self._schedule.setting.protocol
        self._require("lost", self.all_accepted())
        work = schedule.work
        accepted = sum(len(x.accepted) for x in self.decisions.values())
        work.useful = accepted * protocol.iterations
        work.rejected = self.committed * protocol.iterations - work.useful
        if not self.broken:  # otherwise the sums need not make sense
            assert work.trained == work.useful + work.rejected + work.lost + work.duplicate
        most = (work.leases + self.rejections) * protocol.iterations
        self._require("bounded", work.lost + work.duplicate <= most)
