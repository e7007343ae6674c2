"""The names of the MuJoCo tasks, known without importing MuJoCo.

A name is a body and a partition, such as `HalfCheetah-6x1`; longer bodies exist in any length.
"""

from collections.abc import Mapping
from typing import NamedTuple

FAMILY = "mamujoco"
LIMIT = 1000
"""The longest an episode can be."""
PROFILES = ("paper", "farama")


class Entry(NamedTuple):
    """What is offered of a body."""

    summary: str
    partitions: tuple[str, ...]
    """Those with a name of their own."""
    motors: int
    """How many there are for one agent that drives them all; 0: as many as the partition says."""
    profiles: tuple[str, ...] = ("farama",)


ENTRIES: Mapping[str, Entry] = {
    "Reacher": Entry("an arm of two joints reaches for a point", ("2x1",), 2, PROFILES),
    "Ant": Entry("four legs walk", ("2x4", "2x4d", "4x2"), 8, PROFILES),
    "Walker2d": Entry("two legs walk in the plane", ("2x3",), 6, PROFILES),
    "Hopper": Entry("one leg hops in the plane", ("3x1",), 3, PROFILES),
    "HalfCheetah": Entry("two legs run in the plane", ("6x1", "2x3"), 6, PROFILES),
    "ManyagentSwimmer": Entry("a chain of links swims", ("8x2",), 0, PROFILES),
    "ManySegmentAnt": Entry("a row of pairs of legs walks", ("2x3",), 0),
    "CoupledHalfCheetah": Entry("two cheetahs run side by side, tied together", ("1p1",), 12),
    "Humanoid": Entry("upper and lower body walk upright", ("9p8",), 17),
    "HumanoidStandup": Entry("upper and lower body get up from the floor", ("9p8",), 17),
    "Swimmer": Entry("three links swim", ("2x1",), 2),
    "Pusher": Entry("an arm pushes a cylinder to its goal", ("3p",), 7),
    "InvertedPendulum": Entry("one agent balances a pole", (), 1),
    "InvertedDoublePendulum": Entry("one agent balances a pole on a pole", (), 1),
}
"""The bodies by name."""

PAPER_TASKS = (
    "Reacher-2x1", "Ant-2x4", "Walker2d-2x3", "Hopper-3x1", "HalfCheetah-6x1",
    "ManyagentSwimmer-8x2",
)  # fmt: skip
"""The paper's six."""

ALIASES = {"ManySegmentSwimmer": "ManyagentSwimmer"}
"""Other names of the same body."""


def parse(name: str) -> tuple[str, str]:
    """Body and partition; other spellings are understood."""
    body, _, partition = name.partition("-")
    return ALIASES.get(body, body), partition.replace("|", "p")


def canonical(name: str) -> str:
    """The spelling used everywhere."""
    return "-".join(parse(name))


def known(name: str) -> bool:
    """Whether the body is; the partition may still be wrong."""
    return parse(name)[0] in ENTRIES


def names() -> list[str]:
    """Every task with a name of its own, the paper's first."""
    every = [f"{body}-{part}" for body, entry in ENTRIES.items() for part in entry.partitions]
    alone = [f"{body}-{whole(body)}" for body, entry in ENTRIES.items() if not entry.partitions]
    return [*PAPER_TASKS, *(name for name in every if name not in PAPER_TASKS), *alone]


def whole(body: str) -> str:
    """The partition in which one agent drives everything."""
    return f"1x{ENTRIES[body].motors}"


def profiles(name: str) -> tuple[str, ...]:
    """The profiles of a task."""
    return ENTRIES[parse(name)[0]].profiles


def summary(name: str) -> str:
    """A task in a few words."""
    return ENTRIES[parse(name)[0]].summary


def agents(name: str) -> int:
    """How many agents a partition has by its name: `6x1`, `2x4d`, `9p8` or `3p`."""
    partition = parse(name)[1]
    if partition == "3p":
        return 3
    first, _, _ = partition.partition("x")
    return int(first) if first.isdecimal() else 2
