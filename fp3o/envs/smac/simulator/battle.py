"""The static description of a battle: unit statistics, damage table, terrain, initial state."""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.maps import MAPS, Map, formation, unit_names
from fp3o.envs.smac.rules import DEFAULT_RULES, Rules
from fp3o.envs.smac.simulator.state import NO_TARGET, BySide, Units
from fp3o.envs.smac.terrain import RAMP, Terrain, clearance, terrain
from fp3o.envs.smac.units import (
    LOOPS_PER_SECOND,
    SCAN_RANGE,
    SHIELD_DELAY,
    UNIT_TYPES,
    Lance,
    Number,
    UnitType,
)


NO_LANCE = Lance(0, 0, 0)


class UnitStats(NamedTuple):
    """Statistics of units or of unit types, one entry each; times in game loops, speeds per loop.

    NumPy arrays where the types of all units are fixed, so that they are constants of a program.
    """

    hp: Any
    shield: Any
    armour: Any
    speed: Any
    radius: Any
    separation: Any
    weapon_range: Any
    range_slop: Any
    scan_range: Any
    period: Any
    windup: Any
    second_hit: Any
    backswing: Any
    missile_speed: Any
    regeneration: Any
    blast: Any
    lance: Any
    """Loops until the lance burns, or 0."""
    lance_half_width: Any
    lance_radius: Any
    walks_cliffs: Any
    max_cooldown: Any


def unit_stats(units: list[UnitType]) -> UnitStats:
    """Convert the statistics of units to arrays, and seconds to game loops."""
    loops = LOOPS_PER_SECOND
    rows = [
        (
            unit.hp, unit.shield, unit.armour, unit.speed / loops, unit.radius, unit.separation,
            unit.weapon_range, unit.range_slop, max(unit.weapon_range, SCAN_RANGE),
            unit.period * loops, round(unit.windup * loops), round(unit.second_hit * loops),
            round(unit.backswing * loops), unit.missile_speed / loops,
            unit.regeneration / loops, unit.blast,
            round(lance.delay * loops), lance.half_width, lance.radius, unit.walks_cliffs,
            unit.max_cooldown,
        )
        for unit in units
        for lance in [unit.lance or NO_LANCE]
    ]  # fmt: skip
    return UnitStats(*(np.array(column, np.float32) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, eq=False)
class Battle:
    """Everything about a battle that does not change during an episode."""

    name: str
    map: Map
    rules: Rules = DEFAULT_RULES
    drawn: Any = None
    """(u,): the type of every unit in `unit_types`, where teams are drawn for every episode."""

    def of(self, units: Units) -> "Battle":
        """The battle of an episode: with the types that were drawn for it, if any."""
        return self if units.kind is None else replace(self, drawn=units.kind)

    @cached_property
    def units(self) -> list[UnitType]:
        """The type of every unit, allies first, on a map with fixed teams."""
        return [UNIT_TYPES[name] for name in self._names]

    @cached_property
    def _names(self) -> list[str]:
        return unit_names(self.map.allies) + unit_names(self.map.enemies)

    @cached_property
    def num_allies(self) -> int:
        """Number of allied units."""
        return len(unit_names(self.map.allies))

    @cached_property
    def num_units(self) -> int:
        """Number of units of both sides."""
        return len(self._names)

    @cached_property
    def unit_types(self) -> tuple[str, ...]:
        """All types that a unit of the battle can have."""
        return tuple(dict.fromkeys(self._names))

    @cached_property
    def type_stats(self) -> UnitStats:
        """The statistics of `unit_types`."""
        return unit_stats([UNIT_TYPES[name] for name in self.unit_types])

    @cached_property
    def kinds(self) -> Any:
        """(u,): the type of every unit, an index of `unit_types`."""
        if self.drawn is not None:
            return self.drawn
        return np.array([self.unit_types.index(name) for name in self._names])

    def by_unit(self, table: np.ndarray) -> Any:
        """The entries of a table of types for every unit."""
        return (table if isinstance(self.kinds, np.ndarray) else jnp.asarray(table))[self.kinds]

    @cached_property
    def stats(self) -> UnitStats:
        """The statistics of every unit."""
        return UnitStats(*map(self.by_unit, self.type_stats))

    @cached_property
    def opponents(self) -> np.ndarray:
        """(u, u): whether two units are on different sides."""
        allied = np.arange(self.num_units) < self.num_allies
        return allied[:, None] != allied[None]

    @cached_property
    def passing_sides(self) -> np.ndarray:
        """(u,): 1 for units that pass others on the left, -1 for those on the right.

        Every second unit of a group. Enemies are counted backwards, because they stand like allies
        after half a turn: equal teams pass others equally.
        """
        ranks = [rank for group in self.map.allies for rank in range(group.count)]
        ranks += [rank for group in self.map.enemies for rank in reversed(range(group.count))]
        return np.where(np.array(ranks) % 2, -1.0, 1.0).astype(np.float32)

    @cached_property
    def damage(self) -> Any:
        """(u, u): damage per hit before armour, attacker first."""
        types = [UNIT_TYPES[name] for name in self.unit_types]
        table = [[one.damage + _bonus(one, other) for other in types] for one in types]
        return self.by_unit(np.array(table, np.float32))[:, self.kinds]

    @cached_property
    def delayed(self) -> Any:
        """(u,): units whose attacks have a hit that lands later."""
        return self.by_unit(delayed_types(self.type_stats))

    @cached_property
    def lancers(self) -> np.ndarray:
        """Indices of the units that may have a lance: of all units, if types are drawn."""
        lance = self.type_stats.lance > 0
        always = isinstance(self.kinds, np.ndarray)
        return np.flatnonzero(lance[self.kinds]) if always else np.arange(self.num_units)

    @cached_property
    def terrain(self) -> Terrain:
        """The terrain of the map."""
        return terrain(self.map.terrain)

    @cached_property
    def walls(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Clearance for walking units, and for those that step over cliffs if there are any."""
        over_cliffs = self.type_stats.walks_cliffs.any()
        low = clearance(self.terrain.walkable)
        return low, clearance(self.terrain.over_cliffs) if over_cliffs else None

    @cached_property
    def heights(self) -> np.ndarray | None:
        """Height of every cell, ramps between the levels; None if all ground is level."""
        level = self.terrain.level
        ground = level[self.terrain.over_cliffs]
        return None if (ground == ground[0]).all() else np.where(level == RAMP, 1.5, level)

    @cached_property
    def initial_positions(self) -> np.ndarray:
        """(u, 2): positions at the start of an episode."""
        free = self.terrain.walkable
        allies = formation(self.map.allies, free, mirrored=False)
        return np.concatenate([allies, formation(self.map.enemies, free, mirrored=True)])

    def initial_units(self) -> Units:
        """All units at their initial positions, with full health and ready to attack."""
        x, y = jnp.asarray(self.initial_positions.T, jnp.float32)
        count, stats = self.num_units, self.stats
        zero, none = jnp.zeros(count, jnp.int32), jnp.full(count, NO_TARGET, jnp.int32)
        return Units(
            x, y, jnp.asarray(stats.hp), jnp.asarray(stats.shield), jnp.zeros(count), zero, none,
            zero, none, jnp.zeros((count, 4)), jnp.full(count, SHIELD_DELAY * LOOPS_PER_SECOND),
            jnp.zeros(count, bool), zero, none, none, jnp.zeros(count), jnp.zeros(count),
        )  # fmt: skip

    def between_sides(self, pairs: Array) -> BySide:
        """The entries of a `(u, u)` array that relate opponents: `(a, v)` and `(v, a)`."""
        n = self.num_allies
        return pairs[:n, n:], pairs[n:, :n]


def delayed_types(stats: UnitStats) -> np.ndarray:
    """Types whose attacks have a hit that lands later."""
    return (stats.second_hit > 0) | (stats.missile_speed > 0) | (stats.lance > 0)


def _bonus(one: UnitType, other: UnitType) -> Number:
    return sum(more for what, more in (one.bonus or {}).items() if what in other.attributes)


@cache
def battle_on(name: str, rules: Rules = DEFAULT_RULES) -> Battle:
    """The battle on a map, by name."""
    return Battle(name, MAPS[name], rules)
