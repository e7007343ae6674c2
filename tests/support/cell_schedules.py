"""Random schedules of the protocol of `leased_cells.py`: workers, owners, faults and work done.

One `Schedule` is one simulated experiment. What it must never do is in `cell_laws.py`.
"""

import hashlib
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from cell_laws import Laws
from cell_owner import Owner
from cell_worker import Compute, Finish, Prepare, Wait, Worker
from event_simulation import Events, Process
from leased_cells import CELLS, CHECKPOINTS, EXCLUDED, Protocol, worker_of
from object_store import Get, ObjectStore, Put, Reply, Request, Status

OWNER = "owner"


@dataclass(frozen=True)
class Times:
    """Seconds and bytes of the work; where they come from is in docs/scale.md."""

    iteration: float = 3.6
    prepare: float = 16.0
    """Compiling, after every start of a segment on another worker."""
    checkpoint: float = 0.015
    """Writing a checkpoint."""
    upload_bytes: float = 1.8e6
    """A checkpoint, and the metrics of a segment."""
    bandwidth: float = 1.0e6
    latency: float = 0.1
    timeout: float = 30.0


@dataclass(frozen=True)
class Faults:
    """How often things fail; times in seconds, the rest as probabilities."""

    crash_every: float = 7200.0
    repair: float = 300.0
    stall_every: float = 3600.0
    stall: float = 300.0
    """Mean length of a stall: longer than a lease."""
    lost: float = 0.02
    """Of each: requests lost, replies lost, server errors, requests repeated, slow, very late."""
    skew: float = 1800.0
    """Largest error of a clock that shows the time of day."""
    drift: float = 0.005
    """Largest relative error of the speed of a clock."""
    wrong: float = 0.3
    """Share of wrong segments and replays of a dishonest worker."""
    damaged: float = 0.2
    """Share of damaged uploads of a broken worker."""


NO_FAULTS = Faults(1e12, 0.0, 1e12, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Setting:
    """Who takes part, and under which conditions."""

    protocol: Protocol = field(default_factory=Protocol)
    times: Times = field(default_factory=Times)
    faults: Faults = field(default_factory=Faults)
    cells: int = 4
    kinds: tuple[str, ...] = ("arm", "gpu")
    honest: int = 3
    """Honest workers per kind of machine."""
    dishonest: int = 1
    """Workers that return wrong digests, of the first kind."""
    broken: int = 1
    """Workers whose uploads may be damaged, of the last kind."""
    owners: int = 2
    longest: float = 60.0
    """End of a schedule, as a multiple of the time that one worker needs for everything."""


@dataclass
class Work:
    """Iterations computed, by what became of them, and seconds of workers, by activity."""

    trained: int = 0
    """For cells: all that follow but replays."""
    useful: int = 0
    lost: int = 0
    """Since the last checkpoint of a process that crashed."""
    duplicate: int = 0
    """By a process that no longer had the lease, or from a checkpoint that was rejected."""
    rejected: int = 0
    """Committed, then cut off with a rejected segment."""
    replayed: int = 0
    leases: int = 0
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


class Schedule:
    """One simulated experiment with random faults."""

    def __init__(self, setting: Setting, seed: int):
        self.rng = random.Random(seed)
        if setting.protocol.secret:
            protocol = replace(setting.protocol, secret=self.rng.randbytes(16))
            setting = replace(setting, protocol=protocol)
        self.setting = setting
        self.events, self.store, self.work = Events(), ObjectStore(), Work()
        self.workers: dict[str, Worker] = {}
        self.processes: dict[str, Process] = {}
        self.open: Counter[str] = Counter()
        """Iterations of a process since its last commit."""
        self._tasks: dict[str, tuple[str, str]] = {}
        self._starts: Counter[str] = Counter()
        self._clocks: dict[str, tuple[float, float]] = {}
        self.cells = [f"cell{number}" for number in range(setting.cells)]
        self.laws = Laws(self)
        names = self._names()
        self.dishonest = {name for name in names if name.startswith("dishonest")}
        self.broken = {name for name in names if name.startswith("broken")}
        for name, kind in names.items():
            self._clocks[name] = (
                1 + self.rng.uniform(-1, 1) * setting.faults.drift,
                self.rng.uniform(-1, 1) * setting.faults.skew,
            )
            self._start(name, kind)

    def _names(self) -> dict[str, str]:
        """Workers and owners, with their kinds of machine."""
        setting, names = self.setting, {}
        for kind in setting.kinds:
            names |= {f"honest-{kind}{number}": kind for number in range(setting.honest)}
        names |= {f"dishonest{number}": setting.kinds[0] for number in range(setting.dishonest)}
        names |= {f"broken{number}": setting.kinds[-1] for number in range(setting.broken)}
        return names | {f"{OWNER}{number}": "" for number in range(setting.owners)}

    def run(self) -> "Schedule":
        """Let time pass until all cells are accepted, and check the laws."""
        protocol, times = self.setting.protocol, self.setting.times
        whole = self.setting.cells * protocol.segments * protocol.iterations * times.iteration
        self.events.run(self.setting.longest * whole, self.laws.all_accepted)
        self.work.duplicate += sum(self.open.values())
        self.laws.at_end()
        return self

    def clock(self, name: str) -> float:
        """The clock of a worker that measures durations."""
        return self.events.now * self._clocks[worker_of(name)][0]

    def _wall(self, name: str) -> float:
        return self.events.now + self._clocks[worker_of(name)][1]

    def _start(self, name: str, kind: str) -> None:
        """Start a worker or an owner, with random moments at which it crashes or stalls."""
        self._starts[name] += 1
        process_name = f"{name}.{self._starts[name]}"
        protocol, faults = self.setting.protocol, self.setting.faults

        def wall() -> float:
            return self._wall(name)

        if kind:
            clocks = (lambda: self.clock(name)), wall
            seed = random.Random(self.rng.random())
            worker = Worker(protocol, process_name, kind, clocks, seed)
            program = worker.program()
            self.workers[process_name] = worker
        else:
            program = Owner(protocol, self.cells, wall).program()
        process = Process(process_name, program, self.events, self._serve)
        self.processes[process_name] = process

        def crash() -> None:
            process.kill()
            self.work.lost += self.open.pop(process_name, 0)
            self.workers.pop(process_name, None)
            repair = self.rng.expovariate(1 / faults.repair)
            self.events.after(repair, lambda: self._start(name, kind))

        def stall() -> None:
            if process.alive:
                process.stall(self.rng.expovariate(1 / faults.stall))
                self.events.after(self.rng.expovariate(1 / faults.stall_every), stall)

        self.events.after(self.rng.expovariate(1 / faults.crash_every), crash)
        self.events.after(self.rng.expovariate(1 / faults.stall_every), stall)

    def _serve(self, process: Process, request: Any) -> None:
        """Do what a program asks for."""
        times, seconds = self.setting.times, 0.0
        if isinstance(request, Wait):
            seconds = request.seconds
            process.reply(seconds, None)
        elif isinstance(request, Prepare):
            seconds = times.prepare
            process.reply(seconds, None)
        elif isinstance(request, Compute):
            seconds = request.iterations * times.iteration
            self._compute(process, request, seconds)
        elif isinstance(request, Finish):
            seconds = times.checkpoint
            process.reply(seconds, self._digest(process, request))
        else:
            self._send(process, request)
        if seconds and not process.name.startswith(OWNER):
            self.work.seconds[type(request).__name__] += seconds

    def _compute(self, process: Process, request: Compute, seconds: float) -> None:
        """Count iterations when they are done."""
        task = request.task, request.start
        if self._tasks.get(process.name) != task:
            self.work.duplicate += self.open.pop(process.name, 0)
            self._tasks[process.name] = task

        def done() -> None:
            if process.killed:
                return
            if request.task.startswith(CELLS):
                self.work.trained += request.iterations
                self.open[process.name] += request.iterations
            else:
                self.work.replayed += request.iterations

        self.events.after(seconds, done)
        process.reply(seconds, None)

    def _digest(self, process: Process, request: Finish) -> str:
        """The digest of a checkpoint: right, or one that nobody else would compute."""
        right = hashlib.sha256(f"{request.start} {request.number} {request.kind}".encode())
        wrong = worker_of(process.name) in self.dishonest
        if wrong and self.rng.random() < self.setting.faults.wrong:
            lie = hashlib.sha256(f"{self.rng.random()}".encode()).hexdigest()
            # A clever one cheats only where it expects no replay. It does not know the secret.
            guess = Protocol(secret=b"", replayed=min(0.5, self.setting.protocol.replayed))
            if request.replay or not guess.selected(request.cell, request.number, lie):
                self.laws.lies.add(lie)
                return lie
        return right.hexdigest()

    def _send(self, process: Process, request: Request) -> None:
        """A request on its way: it may be lost, late or repeated, and so may its reply."""
        rng, times, lost = self.rng, self.setting.times, self.setting.faults.lost
        size = times.upload_bytes if getattr(request, "key", "").startswith(CHECKPOINTS) else 0
        transfer = size / times.bandwidth if isinstance(request, Get | Put) else 0.0
        there = rng.expovariate(1 / times.latency) + transfer
        back = rng.expovariate(1 / times.latency)
        limit, fault = times.timeout + transfer, rng.random() / lost if lost else 9.0
        lease = self.setting.protocol.lease
        if fault < 1:  # the request is lost
            there = None
        elif fault < 2:  # the reply is lost
            back = limit
        elif fault < 3:  # a server error, before or after the write
            there = there if rng.random() < 0.5 else None
            limit = back = transfer + times.latency
        elif fault < 4:  # sent again on the way, much later
            again = there + rng.uniform(0, 4 * lease)
            self.events.after(again, lambda: self._apply(process, request))
        elif fault < 5:  # slow in one of the two directions
            delay = rng.uniform(0, limit)
            there, back = (there + delay, back) if rng.random() < 0.5 else (there, back + delay)
        elif fault < 6:  # so late that its sender has given up
            there += limit + rng.uniform(0, 4 * lease)
        self._deliver(process, request, (there, back), limit)

    def _deliver(
        self, process: Process, request: Request, delays: tuple[float | None, float], limit: float
    ) -> None:
        there, back = delays
        answered = there is not None and there + back < limit
        if there is not None:

            def arrive() -> None:
                reply = self._apply(process, request)
                if answered:
                    process.reply(back, reply)

            self.events.after(there, arrive)
        if not answered:
            process.reply(limit, Reply(Status.UNKNOWN))
        if not process.name.startswith(OWNER):
            waited = there + back if answered and there is not None else limit
            transfer = limit > self.setting.times.timeout
            self.work.seconds["Transfer" if transfer else "Request"] += waited

    def _apply(self, process: Process, request: Request) -> Reply:
        """The store does what was asked, unless the key of the worker has been revoked."""
        name = worker_of(process.name)
        if EXCLUDED + name in self.store:
            return Reply(Status.FORBIDDEN)
        uploads = isinstance(request, Put) and request.key.startswith(CHECKPOINTS)
        if uploads and name in self.broken and self.rng.random() < self.setting.faults.damaged:
            request = request._replace(content=b"damaged")
        if not isinstance(request, Put):
            return self.store.apply(request)
        before = self.store.content(request.key)
        reply = self.store.apply(request)
        if reply.status is Status.DONE:
            self.laws.written(process.name, request.key, before, request.content)
        return reply


def draw_setting(seed: int, protocol: Protocol) -> Setting:
    """Random numbers of cells and workers, and random frequencies of all faults."""
    rng = random.Random(f"setting {seed}")
    mean = protocol.iterations * Times.iteration
    faults = Faults(
        crash_every=mean * 2 ** rng.uniform(2, 6),
        repair=mean * rng.uniform(0.1, 1),
        stall_every=mean * 2 ** rng.uniform(1, 5),
        stall=protocol.lease * rng.uniform(0.5, 3),
        lost=rng.choice([0.0, 0.01, 0.04]),
        wrong=rng.uniform(0.1, 1),
    )
    kinds = rng.choice([("cpu",), ("cpu", "gpu")])
    many = rng.randint(0, 2), rng.randint(0, 1)
    return Setting(
        protocol, faults=faults, cells=rng.randint(1, 4), kinds=kinds,
        dishonest=many[0], broken=many[1], owners=rng.randint(1, 2),
    )  # fmt: skip
