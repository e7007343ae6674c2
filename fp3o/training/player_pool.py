"""A pool of players, processes that play blocks: failed ones are replaced, their blocks replayed.

Every block has a home, so that environments which cannot be restored stay where they are. Only
while a replaced player starts do others play its blocks, if their environments can be restored.
"""

import time
import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple, Protocol, runtime_checkable

from fp3o.errors import SettingError, UserError
from fp3o.training.players import BlockInput, BlockReply

Request = tuple[Any, Mapping[int, BlockInput]]
"""Parameters of the policies, and the input of every block to be played."""


class PlayerPoolError(UserError, RuntimeError):
    """A player that cannot be started, or fails again and again."""


class PlayerFailureError(Exception):
    """A player has died; the message says how."""


@runtime_checkable
class PlayerHandle(Protocol):
    """One player, seen from the process that learns. It does one thing at a time."""

    ready: Future[Any]
    """Done when the player has made its environments; raises like `ask`."""

    def ask(self, request: Request) -> Future[dict[int, BlockReply]]:
        """Let it play; the result raises `PlayerFailureError` if it dies."""
        ...

    def end(self) -> None:
        """End it, whatever it does."""
        ...


class PlayerLimits(NamedTuple):
    """How long to wait for players, and how often to replace one."""

    seconds: float | None = None
    """For a rollout; None: `RELATIVE` times the median so far, and at least `LEAST_SECONDS`."""
    start: float = 600.0
    """Seconds to start a player, where nothing can be played meanwhile."""
    replacements: int = 3
    """Of a player, in succession, without a rollout in between."""


LEAST_SECONDS, FIRST_SECONDS, RELATIVE = 60.0, 600.0, 10.0
"""Of the limit of a rollout: the smallest one, that of the first rollout, which includes compiling
(and that of a reset), and the multiple of the median."""


class _Job(NamedTuple):
    blocks: list[int]
    future: Future[dict[int, BlockReply]]
    started: float
    deadline: float


@dataclass
class _Slot:
    """A place in the pool: the blocks at home there, and the player that is there now."""

    number: int
    blocks: range
    handle: PlayerHandle | None = None
    job: _Job | None = None
    started: float = 0.0
    replaced: bool = False
    failures: int = 0
    """Since its last rollout."""

    @property
    def is_ready(self) -> bool:
        """Whether its player has started."""
        ready = self.handle.ready if self.handle else None
        return ready is not None and ready.done() and ready.exception() is None

    def end(self) -> None:
        """End its player, if there is one."""
        handle, self.handle, self.job = self.handle, None, None
        if handle is not None:
            handle.end()


class PlayerPool:
    """Some players with equal numbers of blocks, started when they are first needed."""

    def __init__(
        self,
        start: Callable[[], PlayerHandle],
        num_players: int,
        blocks: int,
        limits: PlayerLimits = PlayerLimits(),  # noqa: B008
        say: Callable[[str], None] = warnings.warn,
    ):
        check_players(num_players, blocks)
        share = blocks // num_players
        self.failures: Counter[str] = Counter()
        self._start, self._limits, self._say = start, limits, say
        self._slots = [_Slot(i, range(i * share, (i + 1) * share)) for i in range(num_players)]
        self._seconds: deque[float] = deque(maxlen=100)  # of rollouts, not of resets
        self._is_reset = False
        self._restorable: bool | None = None
        weakref.finalize(self, _end_all, self._slots)

    def play(self, params: Any, inputs: Mapping[int, BlockInput]) -> dict[int, BlockReply]:
        """Play all blocks, and wait for all; an error of an environment ends all players."""
        replies: dict[int, BlockReply] = {}
        self._is_reset = params is None
        try:
            while left := {block: x for block, x in inputs.items() if block not in replies}:
                self._hand_out(params, left)
                # Otherwise one that starts may take its time: others play its blocks meanwhile.
                all_wait = not any(slot.job for slot in self._slots)
                self._wait()
                for slot in self._slots:
                    replies |= self._settle(slot, all_wait)
        except BaseException:
            self.close()
            raise
        for text, category in [x for reply in replies.values() for x in reply.warnings]:
            warnings.warn(text, category, stacklevel=2)
        return replies

    def close(self) -> None:
        """End all players; a later request starts new ones."""
        _end_all(self._slots)

    def _hand_out(self, params: Any, left: Mapping[int, BlockInput]) -> None:
        """Give every idle player its blocks, or one of a player that is not there."""
        now = time.monotonic()
        for slot in self._slots:
            if slot.handle is None:
                slot.handle, slot.started = self._start(), now
        busy = {block for slot in self._slots if slot.job for block in slot.job.blocks}
        waiting = [block for block in left if block not in busy]
        for slot in self._slots:
            if slot.job or not slot.is_ready:
                continue
            blocks = [b for b in waiting if b in slot.blocks] or self._stranded(waiting)[:1]
            if blocks and slot.handle:
                future = slot.handle.ask((params, {block: left[block] for block in blocks}))
                deadline = now + self._limit() * 2**slot.failures
                slot.job = _Job(blocks, future, now, deadline)
                waiting = [block for block in waiting if block not in blocks]

    def _stranded(self, waiting: list[int]) -> list[int]:
        """Blocks that others may play, because the player at their home is being replaced."""
        away = [s.blocks for s in self._slots if s.replaced and not s.is_ready]
        return [b for b in waiting if self._restorable and any(b in blocks for blocks in away)]

    def _wait(self) -> None:
        """Wait until something is done or late."""
        jobs = [slot.job for slot in self._slots if slot.job]
        starting = [s for s in self._slots if s.handle and not s.handle.ready.done()]
        deadlines = [job.deadline for job in jobs] or [
            slot.started + self._limits.start for slot in starting
        ]
        futures = [job.future for job in jobs] + [s.handle.ready for s in starting if s.handle]
        left = max(0.0, min(deadlines, default=0.0) - time.monotonic())
        wait(futures, timeout=left, return_when=FIRST_COMPLETED)

    def _settle(self, slot: _Slot, all_wait: bool) -> dict[int, BlockReply]:
        """What a player has done, if it has finished; a failed or late one is replaced."""
        now, job = time.monotonic(), slot.job
        assert slot.handle
        future: Future[Any] = job.future if job else slot.handle.ready
        try:
            if future.done():
                result = future.result()
            elif job and now >= job.deadline:
                raise TimeoutError(f"gave no reply in {now - job.started:.0f} s")
            elif all_wait and now >= slot.started + self._limits.start:
                raise TimeoutError(f"did not start in {now - slot.started:.0f} s")
            else:
                return {}
        except TimeoutError as late:
            self._replace(slot, "env_hung", str(late))
            return {}
        except PlayerFailureError as failure:
            self._replace(slot, "env_crashed", str(failure))
            return {}
        if job is None:  # it has started
            return {}
        slot.job, slot.failures = None, 0
        if not self._is_reset:
            self._seconds.append(now - job.started)
        self._restorable = all(reply.report.restorable for reply in result.values())
        return result

    def _limit(self) -> float:
        if self._limits.seconds is not None:
            return self._limits.seconds
        if self._is_reset or not self._seconds:
            return FIRST_SECONDS
        return max(LEAST_SECONDS, RELATIVE * median(self._seconds))

    def _replace(self, slot: _Slot, reason: str, details: str) -> None:
        slot.end()
        slot.replaced, slot.failures = True, slot.failures + 1
        if slot.failures > self._limits.replacements:
            raise PlayerPoolError(
                f"player {slot.number} failed {slot.failures} times in succession; the last time "
                f"it {details}. `--players 0` plays all blocks in one process"
            )
        effect = "its blocks are played again, with the same result"
        if self._restorable is False:
            # These are not in the metrics of environments that lose nothing.
            self.failures.update({reason: 1, "env_restarts": 1})
            effect = "the running episodes of its environments are truncated"
        self._say(f"player {slot.number} {details} and is replaced: {effect}")


def check_players(num_players: int, blocks: int) -> None:
    """Refuse a number of players that cannot have equal numbers of blocks."""
    possible = [number for number in range(1, blocks + 1) if blocks % number == 0]
    if num_players not in possible:
        raise SettingError(
            f"{num_players} players cannot share {blocks} blocks of environments equally: possible "
            f"numbers are {', '.join(map(str, possible))}. A new run with blocks={num_players} can "
            "use them; it has other random streams"
        )


def _end_all(slots: list[_Slot]) -> None:
    for slot in slots:
        slot.end()
