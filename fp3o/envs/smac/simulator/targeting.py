"""Which unit attacks which: ordered targets, and automatic targets of units on attack-move."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import (
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    NO_TARGET,
    BySide,
    Orders,
    Targets,
    Units,
)
from fp3o.envs.smac.terrain import MAP_SIZE


def select_targets(
    battle: Battle, units: Units, orders: Orders, distance: Float[Array, "u u"]
) -> Targets:
    """The targets of all units in this loop."""
    n, alive, radius = battle.num_allies, units.hp > 0, battle.stats.radius
    gap = distance - (radius[:, None] + radius[None])
    can_attack = battle.attackable
    if can_attack is not None:
        gap = jnp.where(can_attack, gap, jnp.inf)
    gaps, opponents_alive = battle.between_sides(gap), (alive[n:], alive[:n])
    automatic = _automatic_targets(battle, units, gaps, opponents_alive)
    ordered = (units.windup > 0) | (orders.kind != ATTACK_MOVE)
    indices = jnp.where(ordered, units.target, automatic)
    mask = target_masks(battle, indices)
    if can_attack is not None:
        mask = mask[0] & can_attack[:n, n:], mask[1] & can_attack[n:, :n]
    exists = _any_target(mask, opponents_alive)
    return Targets(jnp.where(exists, indices, NO_TARGET), mask, exists, at_target(mask, gaps))


def _automatic_targets(
    battle: Battle, units: Units, gaps: BySide, opponents_alive: BySide
) -> Int[Array, " u"]:
    """Keep a target that can be hit, or chase it within the leash until another can be hit.

    Without one, take the nearest opponent within the scan range, or else answer a call for help.
    SMACv2's map orders idle enemies to attack the nearest ally, which they do until it is dead.
    """
    stats, n, leash = battle.stats, battle.num_allies, battle.rules.leash
    targets = []
    sides = slice(0, n), slice(n, None)
    for side, gap, alive in zip(sides, gaps, opponents_alive, strict=True):
        old, scan = units.target[side], stats.scan_range[side]
        if battle.map.goal is None:
            scan = 2.0 * MAP_SIZE
        reachable = jnp.where(alive[None], gap, jnp.inf)
        is_old = old[:, None] == np.arange(gap.shape[1])
        held, nearest = jnp.where(is_old, reachable, jnp.inf).min(1), reachable.min(1)
        keep = held <= stats.weapon_range[side] + stats.range_slop[side]
        keep = keep | (held <= leash) & (nearest > stats.weapon_range[side])
        if battle.map.teams is not None:
            keep = jnp.isfinite(held)
        new = jnp.where(nearest <= scan, reachable.argmin(1).astype(jnp.int32), units.answer[side])
        targets.append(jnp.where(keep, old, new))
    return jnp.concatenate(targets)


def answer_calls(battle: Battle, units: Units, distance: Float[Array, "u u"]) -> Units:
    """Units without a target will attack the nearest opponent that has hit them or an ally nearby.

    Hits of the last step count, and the last attack of every opponent.
    """
    n, radius, victim = battle.num_allies, battle.stats.radius, units.last_target
    hears = distance <= battle.rules.help + radius[:, None] + radius[None]
    hit = units.since_hit < LOOPS_PER_STEP
    struck = (units.hp > 0) & (units.cooldown > 0) & (units.flight == 0) & (victim != NO_TARGET)
    answers = []
    for side, other in ((slice(0, n), slice(n, None)), (slice(n, None), slice(0, n))):
        calls = hears[side, side] & hit[side]
        heard = calls[:, victim[other]] & struck[other]
        nearest = jnp.where(heard, distance[side, other], jnp.inf).argmin(1).astype(jnp.int32)
        answers.append(jnp.where(heard.any(1), nearest, NO_TARGET))
    return units._replace(answer=jnp.concatenate(answers))


def target_masks(battle: Battle, target: Int[Array, " u"]) -> BySide:
    """Target indices as one-hot masks `(a, v)` and `(v, a)`."""
    n, count = battle.num_allies, battle.num_units
    return (
        target[:n, None] == np.arange(count - n)[None],
        target[n:, None] == np.arange(n)[None],
    )


def at_target(mask: BySide, pairs: BySide) -> Float[Array, " u"]:
    """The value of a pairwise quantity at every unit's target; 0 without a target."""
    parts = [jnp.where(m, p, 0.0).sum(1) for m, p in zip(mask, pairs, strict=True)]
    return jnp.concatenate(parts)


def _any_target(mask: BySide, opponents_alive: BySide) -> Bool[Array, " u"]:
    parts = [(m & a[None]).any(1) for m, a in zip(mask, opponents_alive, strict=True)]
    return jnp.concatenate(parts)
