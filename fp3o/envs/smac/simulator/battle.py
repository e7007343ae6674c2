"""The description of a battle: types and statistics of its units, terrain, initial state."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.maps import Map, find_map, formation, unit_names
from fp3o.envs.smac.rules import DEFAULT_RULES, Rules
from fp3o.envs.smac.simulator.state import NO_TARGET, Units
from fp3o.envs.smac.simulator.stats import UnitStats, bonus_damage, delayed_types, unit_stats
from fp3o.envs.smac.terrain import RAMP, Terrain, clearance, terrain
from fp3o.envs.smac.units import (
    INITIAL_ENERGY,
    LOOPS_PER_SECOND,
    SHIELD_DELAY,
    UNIT_TYPES,
    Number,
    UnitType,
)


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
        return self if units.kind is None else self.with_types(units.kind)

    def with_types(self, kinds: Any) -> "Battle":
        """The battle with the types that were drawn."""
        return replace(self, drawn=kinds)

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
        teams = self.map.teams
        return teams.num_allies if teams else len(unit_names(self.map.allies))

    @cached_property
    def num_units(self) -> int:
        """Number of units of both sides."""
        teams = self.map.teams
        return teams.num_allies + teams.num_enemies if teams else len(self._names)

    @cached_property
    def unit_types(self) -> tuple[str, ...]:
        """All types that a unit of the battle can have."""
        teams = self.map.teams
        return teams.race.unit_types if teams else tuple(dict.fromkeys(self._names))

    @cached_property
    def type_stats(self) -> UnitStats:
        """The statistics of `unit_types`."""
        return unit_stats([UNIT_TYPES[name] for name in self.unit_types])

    @cached_property
    def kinds(self) -> Any:
        """(u,): the type of every unit, an index of `unit_types`."""
        if self.map.teams is not None:
            assert self.drawn is not None, (
                "the types of the units are those of an episode: use of()"
            )
            return self.drawn
        return np.array([self.unit_types.index(name) for name in self._names])

    @cached_property
    def side_kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """Types that allies can have, and enemies."""
        if self.map.teams is not None:
            return np.arange(len(self.unit_types)), np.arange(len(self.unit_types))
        return self.kinds[: self.num_allies], self.kinds[self.num_allies :]

    def by_unit(self, table: np.ndarray) -> Any:
        """The entries of a table of types for every unit."""
        return (table if isinstance(self.kinds, np.ndarray) else jnp.asarray(table))[self.kinds]

    @cached_property
    def stats(self) -> UnitStats:
        """The statistics of every unit."""
        return UnitStats(*map(self.by_unit, self.type_stats))

    @property
    def sides(self) -> tuple[tuple[slice, slice], ...]:
        """Units of either side, and their opponents."""
        allies, enemies = slice(0, self.num_allies), slice(self.num_allies, self.num_units)
        return (allies, enemies), (enemies, allies)

    @cached_property
    def opponents(self) -> np.ndarray:
        """(u, u): whether two units are on different sides."""
        allied = np.arange(self.num_units) < self.num_allies
        return allied[:, None] != allied[None]

    @cached_property
    def passing_sides(self) -> np.ndarray:
        """(u,): 1 for units that pass others on the left, -1 for those on the right.

        Every second unit of a group. Enemies are counted backwards, because they stand like allies
        after half a turn: equal teams pass others equally. Random teams are mirrored instead.
        """
        if self.map.teams is not None:
            every_second = np.where(np.arange(self.num_units) % 2, -1.0, 1.0).astype(np.float32)
            return np.where(self.opponents[0], -every_second, every_second)
        ranks = [rank for group in self.map.allies for rank in range(group.count)]
        ranks += [rank for group in self.map.enemies for rank in reversed(range(group.count))]
        return np.where(np.array(ranks) % 2, -1.0, 1.0).astype(np.float32)

    @cached_property
    def damage(self) -> Any:
        """(u, u): damage per hit before armour, attacker first."""
        return self._by_pair(lambda one, other: one.damage + bonus_damage(one, other), np.float32)

    @cached_property
    def attackable(self) -> Any:
        """(u, u): which units can attack which; None if all can attack all."""
        if not any(UNIT_TYPES[name].flies for name in self.unit_types):
            return None
        can = lambda one, other: not one.heal and (one.hits_air or not other.flies)  # noqa: E731
        return self._by_pair(can, bool)

    def _by_pair(self, value: Callable[[UnitType, UnitType], Number], dtype: Any) -> Any:
        """(u, u): a function of the types of two units."""
        types = [UNIT_TYPES[name] for name in self.unit_types]
        table = np.array([[value(one, other) for other in types] for one in types], dtype)
        return self.by_unit(table)[:, self.kinds]

    @cached_property
    def delayed(self) -> Any:
        """(u,): units whose attacks have a hit that lands later."""
        return self.by_unit(delayed_types(self.type_stats))

    @cached_property
    def heals(self) -> bool:
        """Whether there can be units that heal allies."""
        return bool(self.type_stats.heal.any())

    def units_with(self, table: np.ndarray) -> np.ndarray:
        """Indices of the units for which a statistic of types may be above 0."""
        if isinstance(self.kinds, np.ndarray):
            return np.flatnonzero(table[self.kinds] > 0)
        return np.arange(self.num_units)

    @cached_property
    def terrain(self) -> Terrain:
        """The terrain of the map."""
        return terrain(self.map.terrain)

    @cached_property
    def walls(self) -> np.ndarray:
        """(l, s, s, 3): clearance for walking units, and for those that step over cliffs if any."""
        layers = [clearance(self.terrain.walkable)]
        if self.type_stats.walks_cliffs.any():
            layers.append(clearance(self.terrain.over_cliffs))
        return np.stack(layers)

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
        return self.units_at(x, y)

    def units_at(self, x: Array, y: Array) -> Units:
        """Units at given positions, with full health and ready to attack."""
        count, stats = self.num_units, self.stats
        zero, none = jnp.zeros(count, jnp.int32), jnp.full(count, NO_TARGET, jnp.int32)
        return Units(
            x, y, jnp.asarray(stats.hp), jnp.asarray(stats.shield), jnp.zeros(count), zero, none,
            zero, none, jnp.zeros((count, 4)), jnp.full(count, SHIELD_DELAY * LOOPS_PER_SECOND),
            jnp.zeros(count, bool), zero, none, jnp.zeros(count), jnp.zeros(count),
            self.drawn, jnp.full(count, INITIAL_ENERGY) if self.heals else None,
        )  # fmt: skip


@cache
def battle_on(name: str, rules: Rules = DEFAULT_RULES) -> Battle:
    """The battle on a map, by name."""
    return Battle(name, find_map(name), rules)
