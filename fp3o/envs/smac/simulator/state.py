"""The state of all units of a battle, and the orders they are given."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int

LOOPS_PER_STEP = 8
"""Game loops per environment step."""

STOP, MOVE, ATTACK, ATTACK_MOVE = range(4)
"""Orders: stand; walk to a point; attack a unit; walk to a point and attack whatever is met."""

NO_TARGET = -1


class Units(NamedTuple):
    """The state of all units. Times are in game loops."""

    x: Float[Array, " u"]
    y: Float[Array, " u"]
    hp: Float[Array, " u"]
    """0: dead."""
    shield: Float[Array, " u"]
    cooldown: Float[Array, " u"]
    """Loops until the next attack may start."""
    windup: Int[Array, " u"]
    """Loops until the current attack hits."""
    target: Int[Array, " u"]
    """Index of the attacked unit within the other side, or of a healer's patient within its own,
    or `NO_TARGET`."""
    flight: Int[Array, " u"]
    """Loops until a delayed hit lands: a missile, a lance or the second hit of an attack."""
    last_target: Int[Array, " u"]
    """Target of the last attack, on which a delayed hit lands."""
    lance_line: Float[Array, "u 4"]
    """Line that a lance burns: its midpoint and its direction."""
    since_hit: Float[Array, " u"]
    """Loops since the unit was last hit."""
    exploding: Bool[Array, " u"]
    """Died in the last loop and explodes in this one."""
    backswing: Int[Array, " u"]
    """Loops for which it still stands after a hit."""
    answer: Int[Array, " u"]
    """Target that it takes if it has none: who hit it or an ally nearby in the last step."""
    damage_taken: Float[Array, " u"]
    """Points of health and shields lost so far; regeneration is not subtracted."""
    healed: Float[Array, " u"]
    """Points of health and shields regenerated so far."""
    kind: Int[Array, " u"] | None = None
    """Type of every unit where teams are drawn for every episode, an index of the battle's types;
    None where teams are fixed."""
    energy: Float[Array, " u"] | None = None
    """Energy of healers; None where there are none."""


class Orders(NamedTuple):
    """One order per unit."""

    kind: Int[Array, " u"]
    x: Float[Array, " u"]
    y: Float[Array, " u"]
    """Destination of `MOVE` and `ATTACK_MOVE`."""
    target: Int[Array, " u"]
    """Target of `ATTACK`, an index within the other side; a healer's within its own."""


class Targets(NamedTuple):
    """The targets of all units in a loop. Without one, positions and distances have no meaning."""

    indices: Int[Array, " u"]
    """Index within the other side, or `NO_TARGET`."""
    exists: Bool[Array, " u"]
    """Whether the unit has a living target."""
    x: Float[Array, " u"]
    y: Float[Array, " u"]
    distance: Float[Array, " u"]
    """From centre to centre."""
    gap: Float[Array, " u"]
    """Distance from edge to edge."""
