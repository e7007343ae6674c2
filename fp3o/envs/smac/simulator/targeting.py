"""Which unit attacks which: ordered targets, and automatic targets of units on attack-move."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.geometry import (
    PLAIN_LOOP,
    compared_units,
    first_opponents,
    length,
    of_targets,
    opponents_at,
    splits_into_kernels,
)
from fp3o.envs.smac.simulator.state import (
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    NO_TARGET,
    Orders,
    Targets,
    Units,
)
from fp3o.envs.smac.terrain import MAP_SIZE


def select_targets(battle: Battle, units: Units, orders: Orders) -> Targets:
    """The targets of all units in this loop."""
    ordered = (units.windup > 0) | (orders.kind != ATTACK_MOVE)
    indices = jnp.where(ordered, units.target, _automatic_targets(battle, units))
    return targets_at(battle, units, indices)


def _automatic_targets(battle: Battle, units: Units) -> Int[Array, " u"]:
    """Keep a target that can be hit, or chase it within the leash until another can be hit.

    Without one, take the nearest opponent within the scan range, or else answer a call for help.
    SMACv2's map orders idle enemies to attack the nearest ally, which they do until it is dead.
    """
    stats, old = battle.stats, targets_at(battle, units, units.target)
    scan = stats.scan_range if battle.map.goal is not None else 2.0 * MAP_SIZE + stats.scan_range
    targets = []
    for side, other in compared_units(battle):
        nearest, index = _nearest_opponents(battle, units, side, other)
        keep = old.gap[side] <= (stats.weapon_range + stats.range_slop)[side]
        keep = keep | (old.gap[side] <= battle.rules.leash) & (nearest > stats.weapon_range[side])
        if battle.map.teams is not None:
            keep = True
        new = jnp.where(nearest <= scan[side], index, units.answer[side])
        targets.append(jnp.where(keep & old.exists[side], units.target[side], new))
    return jnp.concatenate(targets)


def _nearest_opponents(
    battle: Battle, units: Units, side: slice, other: slice
) -> tuple[Float[Array, " s"], Int[Array, " s"]]:
    """Distance of units to the nearest opponent, edge to edge, and its index within its side."""
    axis = 0 if other.stop - other.start < PLAIN_LOOP and splits_into_kernels() else 1
    gaps = edge_gaps(battle, units, side, other, axis)
    index = gaps.argmin(axis).astype(jnp.int32)
    return gaps.min(axis), index + (other.start - first_opponents(battle)[side])


def edge_gaps(
    battle: Battle, units: Units, side: slice, other: slice, axis: int = 1
) -> Float[Array, "_ _"]:
    """Distances of units to others, edge to edge, infinite to those they cannot attack.

    The others are along `axis`.
    """

    def own(values: Any) -> Array:
        return jnp.expand_dims(values[side], axis)

    def their(values: Any) -> Array:
        return jnp.expand_dims(values[other], 1 - axis)

    radius, attackable = battle.stats.radius, battle.opponents[side, other]
    if battle.attackable is not None:
        attackable = attackable & battle.attackable[side, other]
    alive = their(units.hp > 0) & (attackable if axis == 1 else attackable.T)
    distance = length(their(units.x) - own(units.x), their(units.y) - own(units.y))
    return jnp.where(alive, distance - (own(radius) + their(radius)), jnp.inf)


def targets_at(battle: Battle, units: Units, indices: Int[Array, " u"]) -> Targets:
    """Targets with these indices, as far as they live and can be attacked."""
    radius = battle.stats.radius
    x, y, hp, other_radius = of_targets(battle, indices, units.x, units.y, units.hp, radius)
    exists = (indices != NO_TARGET) & (hp > 0)
    if battle.attackable is not None:
        unit = opponents_at(battle, indices)[:, None]
        exists = exists & jnp.take_along_axis(jnp.asarray(battle.attackable), unit, 1)[:, 0]
    distance = length(x - units.x, y - units.y)
    gap = distance - (radius + other_radius)
    return Targets(jnp.where(exists, indices, NO_TARGET), exists, x, y, distance, gap)


def answer_calls(battle: Battle, units: Units, distance: Float[Array, "u u"]) -> Units:
    """Units without a target will attack the nearest opponent that has hit them or an ally nearby.

    Hits of the last step count, and the last attack of every opponent.
    """
    radius, victim = battle.stats.radius, units.last_target
    hears = distance <= battle.rules.help + radius[:, None] + radius[None]
    hit = units.since_hit < LOOPS_PER_STEP
    struck = (units.hp > 0) & (units.cooldown > 0) & (units.flight == 0) & (victim != NO_TARGET)
    answers = []
    for side, other in battle.sides:
        calls = hears[side, side] & hit[side]
        heard = calls[:, victim[other]] & struck[other]
        nearest = jnp.where(heard, distance[side, other], jnp.inf).argmin(1).astype(jnp.int32)
        answers.append(jnp.where(heard.any(1), nearest, NO_TARGET))
    return units._replace(answer=jnp.concatenate(answers))
