"""The published maps: who fights whom, where they start and what the enemies are told."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fp3o.envs.smac.terrain import SIZE
from fp3o.envs.smac.units import UNITS, Number

FAMILY, REAL = "smac", "starcraft2"
"""The simulator, and the same maps in the game itself."""
LAYOUTS = ("paper", "smac")
"""Of what agents see: the paper's (MAPPO's), and that of SMAC itself."""
Point = tuple[Number, Number]


@dataclass(frozen=True)
class Group:
    """Units of a kind that are created at one point."""

    kind: str
    count: int
    point: Point


@dataclass(frozen=True)
class Map:
    """A scenario."""

    allies: tuple[Group, ...]
    """In the order of SMAC's agents."""
    enemies: tuple[Group, ...]
    goal: Point | None
    """Where the enemies are sent to, attacking what they meet; None: they hunt the allies."""
    limit: int
    """Steps of an episode."""
    ground: str = "field"
    types: tuple[str, ...] = ()
    """Kinds in the order of the one-hots of allies, if there are any."""
    enemy_types: tuple[str, ...] = ()
    """The same for enemies. In SMAC stalkers and zealots change places here."""


LEFT, RIGHT = (9.0, 16.0), (23.0, 16.0)
TYPES: Mapping[frozenset[str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    frozenset({"stalker", "zealot"}): (("stalker", "zealot"), ("zealot", "stalker")),
    frozenset({"colossus", "stalker", "zealot"}): (
        ("colossus", "stalker", "zealot"),
        ("colossus", "stalker", "zealot"),
    ),
}
"""Kinds of a team -> the orders of its one-hots and of the enemies'."""


def _field(
    limit: int, allies: dict[str, int], enemies: dict[str, int], ground: str = "field"
) -> Map:
    """From left and right."""
    ours, theirs = (
        tuple(Group(kind, count, point) for kind, count in side.items())
        for side, point in ((allies, LEFT), (enemies, RIGHT))
    )
    return Map(ours, theirs, LEFT, limit, ground, *TYPES.get(frozenset(allies), ((), ())))


MAPS: Mapping[str, Map] = {
    "3m": _field(60, {"marine": 3}, {"marine": 3}),
    "8m": _field(120, {"marine": 8}, {"marine": 8}),
    "25m": _field(150, {"marine": 25}, {"marine": 25}),
    "5m_vs_6m": _field(70, {"marine": 5}, {"marine": 6}),
    "8m_vs_9m": _field(120, {"marine": 8}, {"marine": 9}),
    "10m_vs_11m": _field(150, {"marine": 10}, {"marine": 11}),
    "27m_vs_30m": _field(180, {"marine": 27}, {"marine": 30}),
    "2s3z": _field(120, {"stalker": 2, "zealot": 3}, {"stalker": 2, "zealot": 3}),
    "3s5z": _field(150, {"stalker": 3, "zealot": 5}, {"stalker": 3, "zealot": 5}),
    "3s5z_vs_3s6z": _field(170, {"stalker": 3, "zealot": 5}, {"stalker": 3, "zealot": 6}),
    "1c3s5z": _field(
        180, {"colossus": 1, "stalker": 3, "zealot": 5}, {"colossus": 1, "stalker": 3, "zealot": 5}
    ),
    "3s_vs_3z": _field(150, {"stalker": 3}, {"zealot": 3}, "flat"),
    "3s_vs_4z": _field(200, {"stalker": 3}, {"zealot": 4}, "flat"),
    "3s_vs_5z": _field(250, {"stalker": 3}, {"zealot": 5}, "flat"),
    "2s_vs_1sc": Map(
        (Group("stalker", 1, (11.1208, 10.338)), Group("stalker", 1, (16.976, 10.3662))),
        (Group("spine_crawler", 1, (14.0, 20.0)),),
        (14.0, 20.0), 300, "house",
    ),
    "so_many_baneling": Map(
        (Group("zealot", 7, (11.469, 12.0234)),),
        (Group("baneling", 32, (27.91, 28.24)),),
        (4.47, 4.3298), 100, "valley",
    ),
    "6h_vs_8z": Map(
        (Group("hydralisk", 6, (14.5998, 9.49)),),
        (Group("zealot", 8, (14.41, 16.7597)),),
        (14.5998, 9.49), 150, "arena",
    ),
    "corridor": Map(
        (Group("zealot", 6, (19.0397, 19.1198)),),
        (Group("zergling", 24, (27.91, 28.24)),),
        (4.47, 4.3298), 400, "corridor",
    ),
    "bane_vs_bane": Map(
        (Group("baneling", 4, (16.0, 8.0)), Group("zergling", 20, (16.0, 11.0))),
        (Group("zergling", 20, (16.0, 21.0)), Group("baneling", 4, (16.0, 24.0))),
        (16.0, 8.0), 200, "bowl", ("baneling", "zergling"), ("baneling", "zergling"),
    ),
    "2c_vs_64zg": Map(
        (Group("colossus", 2, (16.0, 16.0)),),
        (Group("zergling", 64, (16.0, 9.0)),),
        None, 400, "plateau",
    ),
}  # fmt: skip
"""The maps by name."""


def summary(name: str) -> str:
    """Who fights whom, in words."""
    sides = MAPS[name].allies, MAPS[name].enemies
    return " against ".join(map(_words, sides))


def agents(name: str) -> int:
    """The size of the team."""
    return len(kinds(MAPS[name].allies))


def _words(groups: tuple[Group, ...]) -> str:
    """`3 stalkers, 5 zealots`."""
    plurals = {"colossus": "colossi"}
    counts = Counter(kinds(groups))
    names = {kind: plurals.get(kind, f"{kind}s").replace("_", " ") for kind in counts}
    return ", ".join(
        f"{n} {names[kind] if n > 1 else kind.replace('_', ' ')}" for kind, n in counts.items()
    )


def kinds(groups: tuple[Group, ...]) -> list[str]:
    """The kind of every unit."""
    return [group.kind for group in groups for _ in range(group.count)]


def formation(groups: tuple[Group, ...], free: np.ndarray, mirrored: bool) -> np.ndarray:
    """(u, 2): each unit at the nearest free place to its point, one after another.

    Which places the game chooses is not in the files. Inside of a group units are sorted by x,
    then y, as SMAC sorts its agents. `mirrored` turns the formation by half a circle, so that
    equal teams on a symmetric map stand symmetrically.
    """
    placed: list[tuple[float, float, float]] = []
    found: list[np.ndarray] = []
    for group in groups:
        size = UNITS[group.kind].separation
        offsets = _spiral(mirrored)
        own: list[tuple[float, float]] = []
        for x, y in np.asarray(group.point) + offsets:
            if len(own) == group.count:
                break
            if _fits(x, y, size, placed, free):
                placed.append((x, y, size))
                own.append((x, y))
        found.append(np.array(sorted(own)))
    return np.concatenate(found)


def _spiral(mirrored: bool) -> np.ndarray:
    """Places around a point, the nearest ones first."""
    line = np.arange(-6, 6.01, 0.125)
    x, y = (part.ravel() for part in np.meshgrid(line, line, indexing="ij"))
    turn = -1 if mirrored else 1
    order = np.lexsort((turn * y, turn * x, np.round(np.hypot(x, y), 6)))
    return np.stack([x, y], 1)[order]


def _fits(
    x: float, y: float, size: float, placed: list[tuple[float, float, float]], free: np.ndarray
) -> bool:
    corners = [(x + dx, y + dy) for dx in (-size, size) for dy in (-size, size)]
    inside = all(0 <= a < SIZE and 0 <= b < SIZE and free[int(a), int(b)] for a, b in corners)
    return inside and all(np.hypot(x - a, y - b) >= size + s for a, b, s in placed)
