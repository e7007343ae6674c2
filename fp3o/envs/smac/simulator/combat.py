"""When attacks hit, by weapon: direct hits, missiles, second hits, lances and explosions."""

from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.damage import apply_damage, regenerate
from fp3o.envs.smac.simulator.state import BySide, Units
from fp3o.envs.smac.simulator.stats import delayed_types
from fp3o.envs.smac.simulator.targeting import at_target, target_masks
from fp3o.envs.smac.terrain import MAP_SIZE
from fp3o.envs.smac.units import LOOPS_PER_SECOND, PERIOD_NOISE


def update_attacks(
    battle: Battle, units: Units, able: Array, gap: Array, noise: Array
) -> tuple[Units, Bool[Array, " u"]]:
    """Advance cooldowns and wind-ups; also returns which units hit in this loop."""
    stats, winding = battle.stats, units.windup > 0
    cooldown = jnp.maximum(units.cooldown - 1, 0.0)
    starts = able & ~winding & (cooldown <= 0) & (gap <= stats.weapon_range)
    windup = jnp.where(starts, stats.windup, units.windup - 1)
    in_range = gap <= stats.weapon_range + stats.range_slop
    hits = able & (starts | winding) & (windup <= 0) & in_range
    low, high = (x * LOOPS_PER_SECOND for x in PERIOD_NOISE)
    wait = stats.period + low + (high - low) * (noise + 1.0) / 2.0
    lost = winding & ~able  # a target that died before the hit costs no cooldown
    windup = jnp.where(lost, 0, jnp.maximum(windup, 0)).astype(jnp.int32)
    cooldown = jnp.where(lost, 0.0, jnp.where(starts, wait, cooldown))
    units = units._replace(windup=windup, cooldown=cooldown)
    if battle.rules.backswing:
        stands = jnp.where(hits, stats.backswing.astype(jnp.int32), units.backswing)
        units = units._replace(backswing=jnp.maximum(stands - 1, 0))
    return units, hits


def resolve_hits(
    battle: Battle, units: Units, hits: Array, mask: BySide, distance: Float[Array, "u u"]
) -> Units:
    """Apply all hits of this loop: damage, deaths, explosions, regeneration."""
    stats, alive = battle.stats, units.hp > 0
    damage, count = _received(battle, units, hits, mask, distance)
    units = _launch(battle, units, hits, mask, distance)
    hp, shield = apply_damage(units.hp, units.shield, damage, count, stats.armour)
    hp = jnp.where(hits & (stats.blast > 0), 0.0, hp)
    since_hit = jnp.where((damage > 0) & alive, 0.0, units.since_hit + 1)
    exploding = alive & (hp <= 0) & (stats.blast > 0) & ~hits
    taken = units.damage_taken + (units.hp - hp) + (units.shield - shield)
    units = units._replace(hp=hp, shield=shield, damage_taken=taken)
    return regenerate(stats, units._replace(since_hit=since_hit, exploding=exploding))


class Received(NamedTuple):
    """What every unit receives in a loop."""

    damage: Float[Array, " u"]
    hits: Int[Array, " u"]
    """Number of hits."""


def _received(battle: Battle, units: Units, hits: Array, mask: BySide, distance: Array) -> Received:
    """Damage and hits of every unit, from all weapons together."""
    stats, types, alive = battle.stats, battle.type_stats, units.hp > 0
    # Missiles of dead units still fly, but dead units deliver no second hit.
    lands = (units.flight == 1) & (alive | ~(stats.second_hit > 0))
    direct = hits & ~(stats.missile_speed > 0) & ~(stats.lance > 0) & ~(stats.blast > 0)
    received = [_hits_on_targets(battle, direct, mask)]
    if delayed_types(types).any():
        later = target_masks(battle, units.last_target)
        received.append(_hits_on_targets(battle, lands & ~(stats.lance > 0), later))
    if types.lance.any():
        received.append(_lance_hits(battle, units, lands))
    if types.blast.any():
        explodes = units.exploding | (hits & (stats.blast > 0))
        received.append(_explosion_hits(battle, explodes, distance))
    damage, count = zip(*received, strict=True)
    return Received(reduce(jnp.add, damage), reduce(jnp.add, count))


def _launch(battle: Battle, units: Units, hits: Array, mask: BySide, distance: Array) -> Units:
    """Launch missiles, lances and second hits, and advance those in flight."""
    stats, launched = battle.stats, hits & battle.delayed
    away, flies = at_target(mask, battle.between_sides(distance)), stats.missile_speed > 0
    wait = jnp.maximum(stats.second_hit, stats.lance)
    time = jnp.where(flies, away / jnp.where(flies, stats.missile_speed, 1), wait)
    left = jnp.maximum(units.flight - 1, 0)
    flight = jnp.where(launched, jnp.maximum(jnp.round(time), 1), left).astype(jnp.int32)
    if battle.type_stats.lance.any():
        line = jnp.where(launched[:, None], _lance_lines(battle, units, mask), units.lance_line)
        units = units._replace(lance_line=line)
    last_target = jnp.where(hits, units.target, units.last_target)
    return units._replace(flight=flight, last_target=last_target)


def _hits_on_targets(battle: Battle, hits: Array, mask: BySide) -> Received:
    """What every unit receives from attacks on one target."""
    n = battle.num_allies
    received = []
    for side, other, targets in (
        (slice(0, n), slice(n, None), mask[0]),
        (slice(n, None), slice(0, n), mask[1]),
    ):
        hit = targets & hits[side, None]
        damage = jnp.where(hit, battle.damage[side, other], 0.0).sum(0)
        received.append((damage, hit.sum(0)))
    return Received(*(jnp.concatenate(pair) for pair in zip(*reversed(received), strict=True)))


def _explosion_hits(battle: Battle, explodes: Array, distance: Array) -> Received:
    """Explosions hit all opponents within their radius."""
    stats = battle.stats
    inside = distance - stats.radius[None] <= stats.blast[:, None]
    hit = explodes[:, None] & battle.opponents & inside
    return Received(jnp.where(hit, battle.damage, 0.0).sum(0), hit.sum(0))


def _lance_lines(battle: Battle, units: Units, mask: BySide) -> Float[Array, "u 4"]:
    """The lines that lances launched now will burn: across the shot, at its target."""
    n = battle.num_allies
    position = lambda p: at_target(  # noqa: E731
        mask, (jnp.broadcast_to(p[None, n:], (n, len(p) - n)),
               jnp.broadcast_to(p[None, :n], (len(p) - n, n)))
    )  # fmt: skip
    x, y = position(units.x), position(units.y)
    to_x, to_y = x - units.x, y - units.y
    length = jnp.maximum(jnp.sqrt(to_x * to_x + to_y * to_y), 1e-6)
    return jnp.stack([x, y, -to_y / length, to_x / length], -1)


def _lance_hits(battle: Battle, units: Units, lands: Array) -> Received:
    """Lances hit every opponent on their line twice, at the height of their target only."""
    stats, lancers = battle.stats, battle.lancers
    x, y, along_x, along_y = units.lance_line[lancers].T[..., None]
    half_width = stats.lance_half_width[lancers, None]
    off_x, off_y = units.x - x, units.y - y
    along = jnp.clip(off_x * along_x + off_y * along_y, -half_width, half_width)
    rest_x, rest_y = off_x - along * along_x, off_y - along * along_y
    reach = stats.lance_radius[lancers, None] + stats.radius
    near = rest_x * rest_x + rest_y * rest_y <= reach * reach
    if battle.heights is not None:
        above = height_at(battle.heights, units.x, units.y) - height_at(battle.heights, x, y)
        near = near & (jnp.abs(above) < 1.0)
    burns = lands[lancers] & (stats.lance[lancers] > 0)
    hit = burns[:, None] & battle.opponents[lancers] & near
    return Received(2 * jnp.where(hit, battle.damage[lancers], 0.0).sum(0), 2 * hit.sum(0))


def height_at(heights: np.ndarray, x: Array, y: Array) -> Array:
    """Heights of positions."""
    cell = tuple(jnp.clip(p.astype(int), 0, MAP_SIZE - 1) for p in (x, y))
    return jnp.asarray(heights, jnp.float32)[cell]
