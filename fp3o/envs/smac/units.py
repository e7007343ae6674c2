"""Unit types of the maps: health, weapons, speed.

The numbers are those of the game's base data (Wings of Liberty, unchanged from 4.8 to 5.0.14), on
which the maps of SMAC are built. Times are in seconds of game time, sixteen loops each; speeds are
in cells per second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LOOPS_PER_SECOND = 16
PERIOD_NOISE = (-0.0625, 0.125)
"""Range of the uniform noise added to the time between two attacks, in seconds."""
SIGHT_RANGE, SHOOT_RANGE = 9.0, 6.0
"""Distances within which agents observe units and may attack, for all unit types."""
SCAN_RANGE = 5.0
"""Distance within which a unit selects targets automatically, if its range is not larger."""
RANGE_SLOP = 1.0
"""Distance beyond the weapon range at which a target under attack is still hit."""
SHIELD_DELAY, SHIELD_REGENERATION = 10.0, 2.0
"""Seconds after the last hit until shields regenerate, and points per second from then on."""
MIN_DAMAGE = 0.5
"""Minimum damage of a hit after armour."""
MIN_ATTACK_RANGE = 2.0
"""Smallest distance up to which agents may attack in SMACv2, where it depends on the type."""
INITIAL_ENERGY, MAX_ENERGY, ENERGY_REGENERATION = 50.0, 200.0, 0.5625
"""Energy of a healer at the start and at most, and points that it gains per second."""
HEAL_COST, MIN_HEAL_ENERGY = 0.33, 5.0
"""Energy per point of health that is restored, and energy to begin healing without an order."""
BACKSWING = 0.5
"""Seconds for which a unit stands after a hit, where the data of its weapon say nothing else."""

Number = int | float


@dataclass(frozen=True)
class Lance:
    """A beam that hits every opponent on a line across the direction of the shot."""

    half_width: Number
    radius: Number
    delay: Number


@dataclass(frozen=True)
class UnitType:
    """Statistics of one type of unit."""

    hp: Number
    damage: Number
    period: Number
    """Seconds between two attacks."""
    windup: Number
    """Seconds from the start of an attack to its hit."""
    weapon_range: Number
    """From edge to edge."""
    speed: Number
    radius: Number
    separation: Number
    """Radius for collisions between units."""
    attributes: frozenset[str]
    shield: Number = 0.0
    armour: Number = 0.0
    bonus: Mapping[str, Number] | None = None
    """Attribute of the target -> additional damage."""
    second_hit: Number = 0.0
    """Seconds from the first to the second hit of attacks with two hits, or 0."""
    missile_speed: Number = 0.0
    """Cells per second; 0: the attack hits immediately."""
    lance: Lance | None = None
    blast: Number = 0.0
    """Radius of the explosion with which it attacks and dies, or 0."""
    regeneration: Number = 0.0
    backswing: Number = BACKSWING
    """Seconds for which it stands after a hit, unless it gets a new order."""
    range_slop: Number = RANGE_SLOP
    walks_cliffs: bool = False
    """Whether it steps, or flies, over cliffs and over other units."""
    max_cooldown: Number = 15.0
    """SMAC's divisor of the cooldown in observations."""
    sight: Number = SIGHT_RANGE
    """Distance within which agents observe units in SMACv2; in SMAC it is the same for all."""
    attack_range: Number = 0.0
    """SMACv2's distance up to which agents may attack; 0: the weapon range."""
    scan_range: Number = SCAN_RANGE
    heal: Number = 0.0
    """Health points per second that it restores to an ally, instead of attacking, or 0."""
    flies: bool = False
    hits_air: bool = False


_LIGHT = frozenset({"light", "biological"})
_ZERG = 0.2734
"""Health points per second that Zerg units regenerate."""

UNIT_TYPES: Mapping[str, UnitType] = {
    "marine": UnitType(
        45, 6, 0.8608, 0.05, 5, 2.25, 0.375, 0.375, _LIGHT, backswing=0.75, hits_air=True,
    ),
    "marauder": UnitType(
        125, 10, 1.5, 0.0, 6, 2.25, 0.5625, 0.5, frozenset({"armoured", "biological"}), armour=1,
        bonus={"armoured": 10}, missile_speed=20, backswing=0.0, max_cooldown=25, sight=10,
    ),
    "medivac": UnitType(
        # Its weapon range is that of healing.
        150, 0, 1.0, 0.0, 4, 2.75, 0.75, 0.75, frozenset({"armoured", "mechanical"}), armour=1,
        walks_cliffs=True, max_cooldown=MAX_ENERGY, sight=11, scan_range=6, heal=9, flies=True,
    ),
    "zealot": UnitType(
        100, 8, 1.2, 0.0, 0.1, 2.25, 0.5, 0.375, _LIGHT, shield=50, armour=1, second_hit=0.28,
        max_cooldown=22,
    ),
    "stalker": UnitType(
        80, 10, 1.44, 0.167, 6, 2.9531, 0.625, 0.625, frozenset({"armoured", "mechanical"}),
        shield=80, armour=1, bonus={"armoured": 4}, missile_speed=18.75, max_cooldown=35, sight=10,
        hits_air=True,
    ),
    "zergling": UnitType(
        35, 5, 0.696, 0.167, 0.1, 2.9531, 0.375, 0.375, _LIGHT, regeneration=_ZERG, max_cooldown=11,
        sight=8,
    ),
    "baneling": UnitType(
        30, 20, 0.833, 0.0, 0.25, 2.5, 0.375, 0.375, frozenset({"biological"}),
        bonus={"light": 15}, blast=2.2, regeneration=_ZERG, max_cooldown=1, sight=8,
    ),
    "hydralisk": UnitType(
        80, 12, 0.83, 0.208, 5, 2.25, 0.625, 0.5, _LIGHT, missile_speed=40, regeneration=_ZERG,
        max_cooldown=10, hits_air=True,
    ),
    "colossus": UnitType(
        200, 20, 2.2, 0.0832, 6, 2.25, 1.0, 0.75, frozenset({"armoured", "mechanical", "massive"}),
        shield=150, armour=1, lance=Lance(1.25, 0.15, 0.25), range_slop=0.0, walks_cliffs=True,
        max_cooldown=24, sight=10, attack_range=7,
    ),
    "spine_crawler": UnitType(
        300, 25, 1.6, 0.3332, 7, 0.0, 0.875, 0.875, frozenset({"armoured", "biological"}),
        # Its arm accelerates: 24 cells per second over 4 cells, 29 over 7.
        armour=2, bonus={"armoured": 5}, missile_speed=27, regeneration=_ZERG, range_slop=0.0,
    ),
}  # fmt: skip
"""Unit types by name. `max_cooldown` of stalker and colossus seem swapped in SMAC; kept here."""
