"""When attacks hit, by weapon: direct hits, missiles, second hits, lances and explosions."""

from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.damage import apply_damage, regenerate
from fp3o.envs.smac.simulator.geometry import (
    compared_units,
    first_opponents,
    inverse_length,
    length,
)
from fp3o.envs.smac.simulator.state import Targets, Units
from fp3o.envs.smac.simulator.stats import delayed_types
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


def resolve_hits(battle: Battle, units: Units, hits: Array, targets: Targets) -> Units:
    """Apply all hits of this loop: damage, deaths, explosions, regeneration."""
    stats, alive = battle.stats, units.hp > 0
    damage, count = _received(battle, units, hits, targets)
    units = _launch(battle, units, hits, targets)
    hp, shield = apply_damage(units.hp, units.shield, damage, count, stats.armour)
    hp = jnp.where(hits & (stats.blast > 0), 0.0, hp)
    since_hit = jnp.where((damage > 0) & alive, 0.0, units.since_hit + 1)
    if battle.type_stats.blast.any():
        exploding = alive & (hp <= 0) & (stats.blast > 0) & ~hits
        units = units._replace(exploding=exploding)
    taken = units.damage_taken + (units.hp - hp) + (units.shield - shield)
    units = units._replace(hp=hp, shield=shield, damage_taken=taken)
    return regenerate(stats, units._replace(since_hit=since_hit))


class Received(NamedTuple):
    """What every unit receives in a loop."""

    damage: Float[Array, " u"]
    hits: Int[Array, " u"]
    """Number of hits."""


def _received(battle: Battle, units: Units, hits: Array, targets: Targets) -> Received:
    """Damage and hits of every unit, from all weapons together."""
    stats, types, alive = battle.stats, battle.type_stats, units.hp > 0
    # Missiles of dead units still fly, but dead units deliver no second hit.
    lands = (units.flight == 1) & (alive | ~(stats.second_hit > 0))
    direct = hits & ~(stats.missile_speed > 0) & ~(stats.lance > 0) & ~(stats.blast > 0)
    received = [_hits_on_targets(battle, direct, targets.indices)]
    if delayed_types(types).any():
        later = lands & ~(stats.lance > 0)
        received.append(_hits_on_targets(battle, later, units.last_target))
    if types.lance.any():
        received.append(_lance_hits(battle, units, lands))
    if types.blast.any():
        explodes = units.exploding | (hits & (stats.blast > 0))
        received.append(_explosion_hits(battle, units, explodes))
    damage, count = zip(*received, strict=True)
    return Received(reduce(jnp.add, damage), reduce(jnp.add, count))


def _launch(battle: Battle, units: Units, hits: Array, targets: Targets) -> Units:
    """Launch missiles, lances and second hits, and advance those in flight."""
    stats, launched = battle.stats, hits & battle.delayed
    flies = stats.missile_speed > 0
    wait = jnp.maximum(stats.second_hit, stats.lance)
    time = jnp.where(flies, targets.distance / jnp.where(flies, stats.missile_speed, 1), wait)
    left = jnp.maximum(units.flight - 1, 0)
    flight = jnp.where(launched, jnp.maximum(jnp.floor(time + 0.5), 1), left).astype(jnp.int32)
    if battle.type_stats.lance.any():
        line = jnp.where(launched[:, None], _lance_lines(units, targets), units.lance_line)
        units = units._replace(lance_line=line)
    last_target = jnp.where(hits, units.target, units.last_target)
    return units._replace(flight=flight, last_target=last_target)


def _hits_on_targets(battle: Battle, hits: Array, indices: Int[Array, " u"]) -> Received:
    """What every unit receives from attacks on one target."""
    received, units_hit = [], indices + first_opponents(battle)
    for side, other in compared_units(battle):
        is_target = units_hit[side, None] == np.arange(other.start, other.stop)
        hit = hits[side, None] & is_target & battle.opponents[side, other]
        damage = jnp.where(hit, battle.damage[side, other], 0.0).sum(0)
        received.append((damage, hit.sum(0)))
    return Received(*(jnp.concatenate(pair) for pair in zip(*reversed(received), strict=True)))


def _explosion_hits(battle: Battle, units: Units, explodes: Array) -> Received:
    """Explosions hit all opponents within their radius."""
    bombs, stats = battle.units_with(battle.type_stats.blast), battle.stats
    dx, dy = units.x - units.x[bombs, None], units.y - units.y[bombs, None]
    inside = length(dx, dy) - stats.radius <= stats.blast[bombs, None]
    hit = explodes[bombs, None] & battle.opponents[bombs] & inside
    return Received(jnp.where(hit, battle.damage[bombs], 0.0).sum(0), hit.sum(0))


def _lance_lines(units: Units, targets: Targets) -> Float[Array, "u 4"]:
    """The lines that lances launched now will burn: across the shot, at its target."""
    to_x, to_y = targets.x - units.x, targets.y - units.y
    inverse = inverse_length(to_x, to_y)
    return jnp.stack([targets.x, targets.y, -to_y * inverse, to_x * inverse], -1)


def _lance_hits(battle: Battle, units: Units, lands: Array) -> Received:
    """Lances hit every opponent on their line twice, at the height of their target only."""
    stats, lancers = battle.stats, battle.units_with(battle.type_stats.lance)
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
