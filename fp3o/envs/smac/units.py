"""What the units of the maps can do.

Numbers of the game's base data (Wings of Liberty, unchanged from 4.8 to 5.0.14), which the maps of
SMAC are built on. Times are in seconds of the game, sixteen loops each; speeds in cells a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LOOPS_PER_SECOND = 16
PERIOD_NOISE = (-0.0625, 0.125)
"""Every wait between two attacks is longer by a number drawn from here, in seconds."""
SCAN = 5.0
"""A unit without a target looks for one this far away, or as far as its weapon reaches."""
SLOP = 1.0
"""A target that has been shot at may move away this far beyond the range before it is left."""
SHIELD_PAUSE, SHIELD_REGENERATION = 10.0, 2.0
"""Shields come back so many seconds after the last hit, by so much a second."""
LEAST_DAMAGE = 0.5
"""Armour leaves this much of a hit."""

Number = int | float


@dataclass(frozen=True)
class Lance:
    """A shot that burns everything on a line across its way."""

    half_width: Number
    radius: Number
    delay: Number


@dataclass(frozen=True)
class Unit:
    """One kind of unit."""

    hp: Number
    damage: Number
    period: Number
    """Seconds between two attacks."""
    windup: Number
    """Seconds from the start of an attack to its hit."""
    reach: Number
    """Of the weapon, from edge to edge."""
    speed: Number
    radius: Number
    separation: Number
    """Radius within which no other unit can stand."""
    attributes: frozenset[str]
    shield: Number = 0.0
    armour: Number = 0.0
    bonus: Mapping[str, Number] | None = None
    """Attribute of the target -> additional damage."""
    second: Number = 0.0
    """Seconds from the first to the second hit of an attack that has two, or 0."""
    missile: Number = 0.0
    """Speed of what is shot, cells a second; 0: the hit is at once."""
    lance: Lance | None = None
    blast: Number = 0.0
    """Radius of the explosion in which it attacks, and dies, or 0."""
    regeneration: Number = 0.0
    slop: Number = SLOP
    walks_cliffs: bool = False
    """Whether it steps over cliffs, and over other units."""
    max_cooldown: Number = 15.0
    """What SMAC divides its cooldown by."""


LIGHT = frozenset({"light", "biological"})
ZERG = 0.2734
"""Health a second that units of the swarm get back."""

UNITS: Mapping[str, Unit] = {
    "marine": Unit(45, 6, 0.8608, 0.05, 5, 2.25, 0.375, 0.375, LIGHT),
    "zealot": Unit(
        100, 8, 1.2, 0.0, 0.1, 2.25, 0.5, 0.375, LIGHT, shield=50, armour=1, second=0.28,
        max_cooldown=22,
    ),
    "stalker": Unit(
        80, 10, 1.44, 0.167, 6, 2.9531, 0.625, 0.625, frozenset({"armoured", "mechanical"}),
        shield=80, armour=1, bonus={"armoured": 4}, missile=18.75, max_cooldown=35,
    ),
    "zergling": Unit(
        35, 5, 0.696, 0.167, 0.1, 2.9531, 0.375, 0.375, LIGHT, regeneration=ZERG, max_cooldown=11,
    ),
    "baneling": Unit(
        30, 20, 0.833, 0.0, 0.25, 2.5, 0.375, 0.375, frozenset({"biological"}),
        bonus={"light": 15}, blast=2.2, regeneration=ZERG, max_cooldown=1,
    ),
    "hydralisk": Unit(
        80, 12, 0.83, 0.208, 5, 2.25, 0.625, 0.5, LIGHT, missile=40, regeneration=ZERG,
        max_cooldown=10,
    ),
    "colossus": Unit(
        200, 20, 2.2, 0.0832, 6, 2.25, 1.0, 0.75, frozenset({"armoured", "mechanical", "massive"}),
        shield=150, armour=1, lance=Lance(1.25, 0.15, 0.25), slop=0.0, walks_cliffs=True,
        max_cooldown=24,
    ),
    "spine_crawler": Unit(
        300, 25, 1.6, 0.3332, 7, 0.0, 0.875, 0.875, frozenset({"armoured", "biological"}),
        # Its arm speeds up on the way: 24 cells a second over 4 cells, 29 over 7.
        armour=2, bonus={"armoured": 5}, missile=27, regeneration=ZERG, slop=0.0,
    ),
}  # fmt: skip
"""The kinds by name. SMAC's `max_cooldown` of stalker and colossus look exchanged; we keep them."""
