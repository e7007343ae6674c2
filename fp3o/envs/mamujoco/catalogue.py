"""Names of the MuJoCo tasks, known without importing MuJoCo.

A name is a body and a partition, such as `HalfCheetah-6x1`; some bodies exist in any length.
"""

from collections.abc import Mapping
from typing import NamedTuple

MAMUJOCO = "mamujoco"

PROFILES = ("paper", "farama")


class BodyEntry(NamedTuple):
    """Description of a body that does not require importing MuJoCo."""

    summary: str
    partitions: tuple[str, ...]
    """Listed partitions."""
    actuators: int
    """Number of actuators; 0: it follows from the partition."""
    profiles: tuple[str, ...] = ("farama",)


BODY_ENTRIES: Mapping[str, BodyEntry] = {
    "Reacher": BodyEntry("an arm of two joints reaches for a point", ("2x1",), 2, PROFILES),
    "Ant": BodyEntry("four legs walk", ("2x4", "2x4d", "4x2"), 8, PROFILES),
    "Walker2d": BodyEntry("two legs walk in the plane", ("2x3",), 6, PROFILES),
    "Hopper": BodyEntry("one leg hops in the plane", ("3x1",), 3, PROFILES),
    "HalfCheetah": BodyEntry("two legs run in the plane", ("6x1", "2x3"), 6, PROFILES),
    "ManyagentSwimmer": BodyEntry("a chain of links swims", ("8x2",), 0, PROFILES),
    "ManySegmentAnt": BodyEntry("a row of pairs of legs walks", ("2x3",), 0),
    "CoupledHalfCheetah": BodyEntry("two cheetahs run side by side, tied together", ("1p1",), 12),
    "Humanoid": BodyEntry("upper and lower body walk upright", ("9p8",), 17),
    "HumanoidStandup": BodyEntry("upper and lower body get up from the floor", ("9p8",), 17),
    "Swimmer": BodyEntry("three links swim", ("2x1",), 2),
    "Pusher": BodyEntry("an arm pushes a cylinder to its goal", ("3p",), 7),
    "InvertedPendulum": BodyEntry("one agent balances a pole", (), 1),
    "InvertedDoublePendulum": BodyEntry("one agent balances a pole on a pole", (), 1),
}
"""Bodies by name."""

PAPER_TASKS = (
    "Reacher-2x1", "Ant-2x4", "Walker2d-2x3", "Hopper-3x1", "HalfCheetah-6x1",
    "ManyagentSwimmer-8x2",
)  # fmt: skip
"""The six tasks of the paper."""

ALIASES = {"ManySegmentSwimmer": "ManyagentSwimmer"}
"""Alternative names of bodies."""


def split_name(name: str) -> tuple[str, str]:
    """Body and partition of a name, in their canonical spelling."""
    body, _, partition = name.partition("-")
    return ALIASES.get(body, body), partition.replace("|", "p")


def canonical_name(name: str) -> str:
    """The canonical spelling of a name."""
    return "-".join(split_name(name))


def body_entry(name: str) -> BodyEntry | None:
    """The entry of a name's body, if it is known; the partition is not checked."""
    return BODY_ENTRIES.get(split_name(name)[0])


def listed_names() -> list[str]:
    """All listed tasks, those of the paper first."""
    every = [f"{body}-{part}" for body, entry in BODY_ENTRIES.items() for part in entry.partitions]
    single = [
        f"{body}-{single_agent_partition(body)}"
        for body, entry in BODY_ENTRIES.items()
        if not entry.partitions
    ]
    return [*PAPER_TASKS, *(name for name in every if name not in PAPER_TASKS), *single]


def single_agent_partition(body: str) -> str:
    """The partition in which one agent has all actuators."""
    return f"1x{BODY_ENTRIES[body].actuators}"


def team_size(name: str) -> int:
    """Number of agents of a partition: `6x1`, `2x4d`, `9p8` or `3p`."""
    partition = split_name(name)[1]
    if partition == "3p":
        return 3
    first, _, _ = partition.partition("x")
    return int(first) if first.isdecimal() else 2
