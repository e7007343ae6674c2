"""Statistics of units as arrays."""

from typing import Any, NamedTuple

import numpy as np

from fp3o.envs.smac.units import LOOPS_PER_SECOND, MIN_ATTACK_RANGE, Lance, Number, UnitType

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
    sight: Any
    attack_range: Any
    heal: Any
    biological: Any


def unit_stats(units: list[UnitType]) -> UnitStats:
    """Convert the statistics of units to arrays, and seconds to game loops."""
    loops = LOOPS_PER_SECOND
    rows = [
        (
            unit.hp, unit.shield, unit.armour, unit.speed / loops, unit.radius, unit.separation,
            unit.weapon_range, unit.range_slop, max(unit.weapon_range, unit.scan_range),
            unit.period * loops, round(unit.windup * loops), round(unit.second_hit * loops),
            round(unit.backswing * loops), unit.missile_speed / loops,
            unit.regeneration / loops, unit.blast,
            round(lance.delay * loops), lance.half_width, lance.radius, unit.walks_cliffs,
            unit.max_cooldown, unit.sight,
            max(unit.attack_range or unit.weapon_range, MIN_ATTACK_RANGE), unit.heal / loops,
            "biological" in unit.attributes,
        )
        for unit in units
        for lance in [unit.lance or NO_LANCE]
    ]  # fmt: skip
    return UnitStats(*(np.array(column, np.float32) for column in zip(*rows, strict=True)))


def delayed_types(stats: UnitStats) -> np.ndarray:
    """Types whose attacks have a hit that lands later."""
    return (stats.second_hit > 0) | (stats.missile_speed > 0) | (stats.lance > 0)


def bonus_damage(one: UnitType, other: UnitType) -> Number:
    """Additional damage of a hit of one type on another."""
    return sum(more for what, more in (one.bonus or {}).items() if what in other.attributes)
