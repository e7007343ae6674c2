"""Damage per hit: shields first, then armour; regeneration of health and shields."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.simulator.state import Units
from fp3o.envs.smac.simulator.stats import UnitStats
from fp3o.envs.smac.units import LOOPS_PER_SECOND, MIN_DAMAGE, SHIELD_DELAY, SHIELD_REGENERATION


def apply_damage(
    hp: Array, shield: Array, damage: Array, count: Array, armour: Array | np.ndarray
) -> tuple[Array, Array]:
    """Health and shields after `count` hits: shields absorb first, armour reduces the other hits.

    Hits of a loop are taken as equal: the damage left by the shield, in hits rounded up, is the
    number of hits that armour reduces.
    """
    rest = jnp.maximum(damage - shield, 0.0)
    through = jnp.ceil(rest * count / jnp.maximum(damage, 1e-6) - 1e-4)
    wound = jnp.where(rest > 0, jnp.maximum(rest - armour * through, MIN_DAMAGE * through), 0.0)
    left = hp - wound
    return jnp.where(left > 1e-4, left, 0.0), jnp.maximum(shield - damage, 0.0)


def regenerate(stats: UnitStats, units: Units) -> Units:
    """Restore health of living units, and shields of those that were not hit for a while."""
    alive = units.hp > 0
    hp = jnp.where(alive, jnp.minimum(units.hp + stats.regeneration, stats.hp), 0.0)
    rested = units.since_hit > SHIELD_DELAY * LOOPS_PER_SECOND
    restored = jnp.where(rested, SHIELD_REGENERATION, 0.0) / LOOPS_PER_SECOND
    shield = jnp.where(alive, jnp.minimum(units.shield + restored, stats.shield), 0.0)
    gained = jnp.where(alive, (hp - units.hp) + (shield - units.shield), 0.0)
    return units._replace(hp=hp, shield=shield, healed=units.healed + gained)
