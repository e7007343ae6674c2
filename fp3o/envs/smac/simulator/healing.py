"""Healing: units that restore the health of a biological ally instead of attacking."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.geometry import Geometry
from fp3o.envs.smac.simulator.state import (
    ATTACK_MOVE,
    MOVE,
    NO_TARGET,
    Orders,
    Units,
)
from fp3o.envs.smac.units import (
    ENERGY_REGENERATION,
    HEAL_COST,
    LOOPS_PER_SECOND,
    MAX_ENERGY,
    MIN_HEAL_ENERGY,
)


class Patients(NamedTuple):
    """Whom every healer heals or follows in a loop."""

    indices: Int[Array, " u"]
    """Index within the own side, or `NO_TARGET`."""
    mask: Bool[Array, "u u"]
    gap: Float[Array, "u u"]
    """Distances from edge to edge of all pairs."""


def select_patients(
    battle: Battle, units: Units, orders: Orders, distance: Float[Array, "u u"]
) -> Patients:
    """The patient that was ordered, or for a healer on attack-move the one in greatest need.

    That is the damaged ally with the smallest share of its health within the scan range; it is
    kept until it is healed.
    """
    stats, alive, first = battle.stats, units.hp > 0, _first_of_side(battle)
    gap = distance - (stats.radius[:, None] + stats.radius[None])
    able = alive & (stats.heal > 0)
    treatable = able[:, None] & ~battle.opponents & (alive & (stats.biological > 0))[None]
    ordered = treatable & ((units.target + first)[:, None] == np.arange(battle.num_units))
    needy = treatable & (units.hp < stats.hp)[None] & (gap <= stats.scan_range[:, None])
    assert units.energy is not None
    needy = needy & (units.energy >= MIN_HEAL_ENERGY)[:, None]
    # Among equal shares, the nearest.
    need = jnp.where(needy, (units.hp / stats.hp)[None] + 1e-4 * gap, jnp.inf)
    neediest = needy & (need.argmin(1)[:, None] == np.arange(battle.num_units))
    kept = ordered & needy
    automatic = jnp.where(kept.any(1)[:, None], kept, neediest)
    mask = jnp.where((orders.kind == ATTACK_MOVE)[:, None], automatic, ordered)
    indices = jnp.where(mask.any(1), mask.argmax(1) - first, NO_TARGET)
    return Patients(indices.astype(jnp.int32), mask, gap)


def follow_patients(
    battle: Battle,
    patients: Patients,
    orders: Orders,
    geometry: Geometry,
    steps: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array]:
    """The steps of all units, where healers walk into range of their patients.

    Without a patient they walk only if they are ordered to: they cannot follow an attack-move.
    """
    stats, (step_x, step_y, walks) = battle.stats, steps
    healer, busy = stats.heal > 0, patients.mask.any(1)
    at_patient = lambda pairs: jnp.where(patients.mask, pairs, 0.0).sum(1)  # noqa: E731
    length = jnp.maximum(at_patient(geometry.distance), 1e-6)
    stride = jnp.minimum(stats.speed, length) / length
    far = busy & (at_patient(patients.gap) > stats.weapon_range)
    walks = jnp.where(healer, far | walks & (orders.kind == MOVE), walks)
    step_x = jnp.where(busy, at_patient(geometry.dx) * stride, step_x)
    return step_x, jnp.where(busy, at_patient(geometry.dy) * stride, step_y), walks


def heal(battle: Battle, units: Units, patients: Patients) -> Units:
    """Restore the health of patients in range, for energy; one healer per patient."""
    stats, alive, energy = battle.stats, units.hp > 0, units.energy
    assert energy is not None
    works = patients.mask & (patients.gap <= stats.weapon_range[:, None])
    works = works & (alive & (energy > 0))[:, None] & alive[None]
    works = works & (jnp.cumsum(works, axis=0) == 1)
    points = jnp.minimum(stats.heal, energy / HEAL_COST)
    given = jnp.where(works, points[:, None], 0.0).sum(0)
    given = jnp.where(alive, jnp.minimum(given, stats.hp - units.hp), 0.0)
    spent = HEAL_COST * jnp.where(works, given[None], 0.0).sum(1)
    energy = energy - spent + ENERGY_REGENERATION / LOOPS_PER_SECOND
    units = units._replace(energy=jnp.clip(energy, 0.0, MAX_ENERGY))
    return units._replace(hp=units.hp + given, healed=units.healed + given)


def _first_of_side(battle: Battle) -> np.ndarray:
    """(u,): index of the first unit of every unit's side."""
    n = battle.num_allies
    return np.where(np.arange(battle.num_units) < n, 0, n)
