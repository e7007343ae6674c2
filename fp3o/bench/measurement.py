"""Measurements: a speed, what it is compared with, and the options of a benchmark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from fp3o.bench.timing import TimedJob, fastest_rates
from fp3o.errors import UserError

STEPS, ITERATION = "steps/s", "ms per iteration"
"""Units."""

Jobs = Mapping[str, TimedJob | str]
"""Jobs by name; in place of a job that cannot be run, the reason."""


@dataclass(frozen=True)
class BenchSettings:
    """Options of a benchmark; empty ones stand for what a topic measures by default."""

    seconds: float = 2.0
    """Time that each number is measured for."""
    quick: bool = False
    """Fewer and smaller cases."""
    tasks: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    sharings: tuple[str, ...] = ()
    seeds: int = 1
    """Seeds trained together."""

    def names(self, family: str, default: Sequence[str]) -> list[str]:
        """The chosen tasks of a family, without its name; else the default ones."""
        chosen = [task.partition("/")[2] for task in self.tasks if task.startswith(f"{family}/")]
        return chosen or [*default]


@dataclass(frozen=True)
class Measurement:
    """The speed of one case, and of what it is compared with."""

    case: str
    rate: float | None
    """Steps or iterations per second; None: not measured."""
    unit: str = STEPS
    peer: str = ""
    """What it is compared with."""
    peer_rate: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the peer."""
        return self.rate / self.peer_rate if self.rate and self.peer_rate else None

    @property
    def values(self) -> tuple[float | None, float | None]:
        """The number of the case and of the peer in the unit."""
        return self._in_unit(self.rate), self._in_unit(self.peer_rate)

    def _in_unit(self, rate: float | None) -> float | None:
        return 1e3 / rate if rate and self.unit == ITERATION else rate

    def as_record(self) -> dict[str, Any]:
        """The content of the JSON file."""
        ours, theirs = self.values
        return {
            "case": self.case, "ours": ours, "peer": theirs, "peer_name": self.peer,
            "ratio": self.ratio, "unit": self.unit, "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True)
class SpeedComparison:
    """Jobs that are measured in turn, and which of them are compared."""

    jobs: Jobs
    pairs: Sequence[tuple[str, str]]
    """Case and peer, by name; without a peer if that is empty."""
    unit: str = STEPS
    notes: Mapping[str, Callable[[], str]] | None = None
    """Notes on cases, made after the measurement."""

    def measure(self, settings: BenchSettings, least: int = 3) -> Iterator[Measurement]:
        """Measure all jobs; a pair whose peer cannot be run has the reason as a note."""
        jobs = {name: job for name, job in self.jobs.items() if isinstance(job, TimedJob)}
        rates = fastest_rates(jobs, settings.seconds, least)
        for case, peer in self.pairs:
            note = (self.notes or {}).get(case, str)()
            reasons = [x for x in (self.jobs[case], self.jobs.get(peer)) if isinstance(x, str)]
            text = "; ".join(filter(None, [note, *reasons]))
            yield Measurement(case, rates.get(case), self.unit, peer, rates.get(peer), text)


def optional_job(package: str, build: Callable[[], TimedJob], extra: str = "") -> TimedJob | str:
    """A job that needs an optional package, or why it cannot be run."""
    module = package.replace("-", "_")
    if find_spec(module) is None:
        return f"not installed: pip install {extra or package}"
    try:
        return build()
    except (UserError, ImportError) as error:
        return str(error)
