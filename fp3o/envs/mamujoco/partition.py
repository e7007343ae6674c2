"""Who owns which joints of a body, and what each agent therefore sees.

A *column* names one number that can be read from a simulation: a source and a place in it, such as
`("q", 3)` for qpos[3]. A body is a graph of joints. An agent sees its own joints in full, then the
joints at distance 1, 2, ... up to k (sorted by name at each distance), then what everyone sees.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Column = tuple[str, int]
"""Source and place."""

PER_BODY = ("inertia", "spin", "contact", "impact")
"""Sources an agent sees once for each body, however many of its joints touch that body."""


@dataclass(frozen=True)
class Joint:
    """A joint with a motor, and the columns it offers in each category."""

    label: str
    motor: int
    """The actuator that drives it."""
    columns: Mapping[str, tuple[Column, ...]]
    copy: bool = field(default=False)
    """A second node of the same joint (a quirk of one body's graph)."""

    def __hash__(self) -> int:
        return hash((self.label, self.copy))


@dataclass(frozen=True)
class Graph:
    """Joints, which of them are neighbours, what is seen of them, and of the body as a whole."""

    teams: Mapping[str, tuple[tuple[Joint, ...], ...]]
    """Partition -> the joints of each agent."""
    edges: tuple[tuple[Joint, ...], ...]
    """Sets of joints that are neighbours of each other."""
    root: tuple[Column, ...]
    """What every agent sees behind its joints."""
    state: tuple[Column, ...]
    """What a critic sees."""
    own: tuple[str, ...] = ("qpos", "qvel")
    """Categories of an agent's own joints."""
    near: tuple[str, ...] = ("qpos",)
    """Categories of other joints."""


def joint(label: str, q: int, v: int, motor: int, **more: tuple[Column, ...]) -> Joint:
    """A joint seen by its position and velocity, where `more` does not say otherwise."""
    return Joint(label, motor, {"qpos": (("q", q),), "qvel": (("v", v),), **more})


def block(source: str, *places: int) -> tuple[Column, ...]:
    """Several places of one source."""
    return tuple((source, place) for place in places)


def span(source: str, start: int, stop: int) -> tuple[Column, ...]:
    """Neighbouring places of one source."""
    return block(source, *range(start, stop))


def bodies(source: str, width: int, ids: Sequence[int]) -> tuple[Column, ...]:
    """All numbers of some bodies in a source with `width` numbers a body."""
    return tuple(column for i in ids for column in span(source, width * i, width * (i + 1)))


def distances(own: Sequence[Joint], graph: Graph, reach: int) -> Iterator[list[Joint]]:
    """The joints at distance 0, 1, ..., `reach` of an agent's, by name at each distance."""
    seen, front = {*own}, {*own}
    for _ in range(reach + 1):
        # Equal names keep the order of the graph, not that of memory.
        yield sorted(front, key=lambda found: (found.label, found.motor))
        near = {other for edge in graph.edges for one in front if one in edge for other in edge}
        front = near - seen
        seen |= front


def sees(own: Sequence[Joint], graph: Graph, reach: int) -> list[Column]:
    """The columns of an agent's observation, in order."""
    columns: list[Column] = []
    for distance, joints in enumerate(distances(own, graph, reach)):
        for found in joints:
            for category in graph.near if distance else graph.own:
                for column in found.columns.get(category, ()):
                    if column[0] not in PER_BODY or column not in columns:
                        columns.append(column)
    return columns + list(graph.root)
