"""Joint graphs: the joints that an agent controls, and the columns that it observes.

A *column* is one number that can be read from a simulation: a source and an index, such as
`("qpos", 3)`. A body is a graph of joints. An agent observes its own joints in full, then the
joints at distance 1, 2, ... up to k (sorted by name), then what all agents observe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Column = tuple[str, int]
"""Source and index."""

PER_BODY_SOURCES = ("inertia", "velocity", "clipped_force", "force")
"""Sources that an agent observes once per body, however many of its joints touch that body."""


@dataclass(frozen=True)
class Joint:
    """A joint with an actuator, and its columns by category."""

    label: str
    actuator: int
    columns: Mapping[str, tuple[Column, ...]]
    copy: bool = field(default=False)
    """A second node of the same joint, as the graph of one body has."""

    def __hash__(self) -> int:
        return hash((self.label, self.copy))


@dataclass(frozen=True)
class JointGraph:
    """The joints of a body, their neighbours, and what is observed of them and of the body."""

    partitions: Mapping[str, tuple[tuple[Joint, ...], ...]]
    """Partition -> the joints of each agent."""
    edges: tuple[tuple[Joint, ...], ...]
    """Sets of joints that are neighbours of each other."""
    common: tuple[Column, ...]
    """Columns that all agents observe after those of joints."""
    state: tuple[Column, ...]
    """Columns of the critic's state."""
    own: tuple[str, ...] = ("qpos", "qvel")
    """Categories that an agent observes of its own joints."""
    near: tuple[str, ...] = ("qpos",)
    """Categories that an agent observes of other joints."""


def make_joint(
    label: str, position: int, velocity: int, actuator: int, /, **more: tuple[Column, ...]
) -> Joint:
    """A joint observed by its position and velocity, and by further or other categories."""
    categories = {"qpos": (("qpos", position),), "qvel": (("qvel", velocity),), **more}
    return Joint(label, actuator, categories)


def columns_at(source: str, *indices: int) -> tuple[Column, ...]:
    """Some columns of one source."""
    return tuple((source, index) for index in indices)


def column_range(source: str, start: int, stop: int) -> tuple[Column, ...]:
    """Consecutive columns of one source."""
    return columns_at(source, *range(start, stop))


def body_columns(source: str, width: int, ids: Sequence[int]) -> tuple[Column, ...]:
    """All columns of some bodies in a source with `width` columns per body."""
    return tuple(c for i in ids for c in column_range(source, width * i, width * (i + 1)))


def observed_columns(own: Sequence[Joint], graph: JointGraph, reach: int) -> list[Column]:
    """The columns of an agent's observation, in order; `reach` is the distance k."""
    columns: list[Column] = []
    for distance, joints in enumerate(_joints_by_distance(own, graph, reach)):
        for joint in joints:
            for category in graph.near if distance else graph.own:
                for column in joint.columns.get(category, ()):
                    if column[0] not in PER_BODY_SOURCES or column not in columns:
                        columns.append(column)
    return columns + list(graph.common)


def neighbouring_agents(
    team: Sequence[Sequence[Joint]], graph: JointGraph
) -> tuple[tuple[int, ...], ...]:
    """The neighbours of every agent: the agents with a joint next to one of its own."""
    # By actuator, since an edge may hold the second node of a joint.
    edges = [{joint.actuator for joint in edge} for edge in graph.edges]
    reach = [
        {actuator for edge in edges for joint in own if joint.actuator in edge for actuator in edge}
        for own in team
    ]
    return tuple(
        tuple(
            j
            for j, other in enumerate(team)
            if j != i and not reach[i].isdisjoint(joint.actuator for joint in other)
        )
        for i in range(len(team))
    )


def _joints_by_distance(
    own: Sequence[Joint], graph: JointGraph, reach: int
) -> Iterator[list[Joint]]:
    """The joints at distance 0, 1, ..., `reach` from an agent's, sorted by name."""
    visited, front = {*own}, {*own}
    for _ in range(reach + 1):
        if not front:
            return  # no joint is farther away
        # Ties are broken by actuator, so that the order does not depend on hashes.
        yield sorted(front, key=lambda joint: (joint.label, joint.actuator))
        near = {other for edge in graph.edges for one in front if one in edge for other in edge}
        front = near - visited
        visited |= front
