"""The published maps: both teams, their initial positions, the orders of the enemies."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fp3o.envs.smac.random_teams import MAX_EPISODE_STEPS, RandomTeams
from fp3o.envs.smac.terrain import MAP_SIZE
from fp3o.envs.smac.units import UNIT_TYPES, Number

SMAC, SMACV2, STARCRAFT2 = "smac", "smacv2", "starcraft2"
"""Families of tasks: maps and random teams in the simulator, and both in StarCraft II."""
LAYOUTS = ("paper", "smac")
"""Layouts of observations: that of the paper (and of MAPPO), and that of SMAC itself."""
Point = tuple[Number, Number]


@dataclass(frozen=True)
class UnitGroup:
    """Units of one type that are created at one point."""

    unit: str
    count: int
    point: Point


@dataclass(frozen=True)
class Map:
    """A battle scenario."""

    allies: tuple[UnitGroup, ...]
    """In the order of SMAC's agents."""
    enemies: tuple[UnitGroup, ...]
    goal: Point | None
    """Destination of the enemies' attack-move; None: they pursue the nearest ally."""
    max_episode_steps: int
    terrain: str = "field"
    types: tuple[str, ...] = ()
    """Unit types in the order of the one-hot encodings of allies, if there are any."""
    enemy_types: tuple[str, ...] = ()
    """The same for enemies. SMAC swaps stalkers and zealots here."""
    teams: RandomTeams | None = None
    """SMACv2's teams, drawn for every episode; `allies` and `enemies` are empty then."""


LEFT, RIGHT = (9.0, 16.0), (23.0, 16.0)
TYPES: Mapping[frozenset[str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    frozenset({"stalker", "zealot"}): (("stalker", "zealot"), ("zealot", "stalker")),
    frozenset({"colossus", "stalker", "zealot"}): (
        ("colossus", "stalker", "zealot"),
        ("colossus", "stalker", "zealot"),
    ),
}
"""Unit types of a team -> the orders of its one-hot encodings and of the enemies'."""


def _field(
    steps: int, allies: dict[str, int], enemies: dict[str, int], terrain: str = "field"
) -> Map:
    """A map on which allies start on the left and enemies on the right."""
    ours, theirs = (
        tuple(UnitGroup(unit, count, point) for unit, count in side.items())
        for side, point in ((allies, LEFT), (enemies, RIGHT))
    )
    return Map(ours, theirs, LEFT, steps, terrain, *TYPES.get(frozenset(allies), ((), ())))


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
        (UnitGroup("stalker", 1, (11.1208, 10.338)), UnitGroup("stalker", 1, (16.976, 10.3662))),
        (UnitGroup("spine_crawler", 1, (14.0, 20.0)),),
        (14.0, 20.0), 300, "house",
    ),
    "so_many_baneling": Map(
        (UnitGroup("zealot", 7, (11.469, 12.0234)),),
        (UnitGroup("baneling", 32, (27.91, 28.24)),),
        (4.47, 4.3298), 100, "valley",
    ),
    "6h_vs_8z": Map(
        (UnitGroup("hydralisk", 6, (14.5998, 9.49)),),
        (UnitGroup("zealot", 8, (14.41, 16.7597)),),
        (14.5998, 9.49), 150, "arena",
    ),
    "corridor": Map(
        (UnitGroup("zealot", 6, (19.0397, 19.1198)),),
        (UnitGroup("zergling", 24, (27.91, 28.24)),),
        (4.47, 4.3298), 400, "corridor",
    ),
    "bane_vs_bane": Map(
        (UnitGroup("baneling", 4, (16.0, 8.0)), UnitGroup("zergling", 20, (16.0, 11.0))),
        (UnitGroup("zergling", 20, (16.0, 21.0)), UnitGroup("baneling", 4, (16.0, 24.0))),
        (16.0, 8.0), 200, "bowl", ("baneling", "zergling"), ("baneling", "zergling"),
    ),
    "2c_vs_64zg": Map(
        (UnitGroup("colossus", 2, (16.0, 16.0)),),
        (UnitGroup("zergling", 64, (16.0, 9.0)),),
        None, 400, "plateau",
    ),
}  # fmt: skip
"""Maps by name."""


def find_map(name: str) -> Map:
    """A published map, or the flat map with random teams, by name."""
    teams = RandomTeams.parse(name)
    if teams is None:
        return MAPS[name]
    types = teams.race.unit_types
    return Map((), (), None, MAX_EPISODE_STEPS, "flat", types, types, teams)


def map_summary(name: str) -> str:
    """Both teams, `3 marines against 3 marines`."""
    sides = MAPS[name].allies, MAPS[name].enemies
    return " against ".join(map(_team_summary, sides))


def num_agents(name: str) -> int:
    """Number of agents on a map."""
    return len(unit_names(MAPS[name].allies))


def _team_summary(groups: tuple[UnitGroup, ...]) -> str:
    """`3 stalkers, 5 zealots`."""
    plurals = {"colossus": "colossi"}
    counts = Counter(unit_names(groups))
    names = {unit: plurals.get(unit, f"{unit}s").replace("_", " ") for unit in counts}
    return ", ".join(
        f"{n} {names[unit] if n > 1 else unit.replace('_', ' ')}" for unit, n in counts.items()
    )


def unit_names(groups: tuple[UnitGroup, ...]) -> list[str]:
    """The type of every unit."""
    return [group.unit for group in groups for _ in range(group.count)]


def formation(groups: tuple[UnitGroup, ...], free: np.ndarray, mirrored: bool) -> np.ndarray:
    """(u, 2): initial positions, each unit at the free position nearest to its group's point.

    The map files do not say which positions the game chooses. Within a group, units are sorted by
    x, then y, as SMAC sorts its agents. `mirrored` rotates the formation by half a turn, so that
    equal teams on a symmetric map stand symmetrically.
    """
    placed: list[tuple[float, float, float]] = []
    positions: list[np.ndarray] = []
    for group in groups:
        size = UNIT_TYPES[group.unit].separation
        offsets = _spiral(mirrored)
        members: list[tuple[float, float]] = []
        for x, y in np.asarray(group.point) + offsets:
            if len(members) == group.count:
                break
            if _fits(x, y, size, placed, free):
                placed.append((x, y, size))
                members.append((x, y))
        positions.append(np.array(sorted(members)))
    return np.concatenate(positions)


def _spiral(mirrored: bool) -> np.ndarray:
    """Offsets around a point, the nearest ones first."""
    line = np.arange(-6, 6.01, 0.125)
    x, y = (part.ravel() for part in np.meshgrid(line, line, indexing="ij"))
    turn = -1 if mirrored else 1
    order = np.lexsort((turn * y, turn * x, np.round(np.hypot(x, y), 6)))
    return np.stack([x, y], 1)[order]


def _fits(
    x: float, y: float, size: float, placed: list[tuple[float, float, float]], free: np.ndarray
) -> bool:
    corners = [(x + dx, y + dy) for dx in (-size, size) for dy in (-size, size)]
    inside = all(
        0 <= a < MAP_SIZE and 0 <= b < MAP_SIZE and free[int(a), int(b)] for a, b in corners
    )
    return inside and all(np.hypot(x - a, y - b) >= size + s for a, b, s in placed)
