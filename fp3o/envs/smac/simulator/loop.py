"""The dynamics of a battle: one game loop, and one environment step of eight loops."""

import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.collisions import avoid_others, keep_inside
from fp3o.envs.smac.simulator.combat import resolve_hits, update_attacks
from fp3o.envs.smac.simulator.geometry import pairwise, splits_into_kernels
from fp3o.envs.smac.simulator.healing import follow_patients, heal, select_patients
from fp3o.envs.smac.simulator.movement import desired_step, near_destination
from fp3o.envs.smac.simulator.state import (
    ATTACK,
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    MOVE,
    NO_TARGET,
    Orders,
    Units,
)
from fp3o.envs.smac.simulator.targeting import answer_calls, select_targets


def simulate_step(battle: Battle, units: Units, orders: Orders, key: PRNGKeyArray) -> Units:
    """Give the orders and simulate one environment step of eight game loops."""
    shape = (LOOPS_PER_STEP, battle.num_units)
    noise = jax.random.uniform(key, shape, jnp.float32, minval=-1.0, maxval=1.0)
    battle = battle.of(units)
    units = apply_orders(battle, units, orders)
    if use_battle_kernel(battle):
        from fp3o.envs.smac.simulator.kernel import simulate_in_kernel

        return simulate_in_kernel(battle, units, orders, noise)
    return simulate_loops(battle, units, orders, noise)


def use_battle_kernel(battle: Battle) -> bool:
    """Whether the loops run in one kernel: on a GPU, for battles that the kernel can simulate."""
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    platform = getattr(device, "platform", device) or jax.default_backend()
    if platform != "gpu" or os.environ.get("FP3O_KERNELS", "1") == "0":
        return False
    from fp3o.envs.smac.simulator.kernel import has_kernel
    from fp3o.envs.smac.simulator.kernel_check import battle_kernel_works

    return has_kernel(battle) and battle_kernel_works(battle)


def simulate_loops(
    battle: Battle, units: Units, orders: Orders, noise: Float[Array, "t u"]
) -> Units:
    """Simulate one game loop after another."""
    # Statistics of units become constants of the loop, where they would be computed before it.
    one_loop = jax.jit(partial(simulate_loop, battle))

    def loop(units: Units, noise: Array) -> tuple[Units, None]:
        return one_loop(units, orders, noise), None

    # Accelerators copy part of the state at every turn; on CPUs longer programs are slower.
    return jax.lax.scan(loop, units, noise, unroll=2 if splits_into_kernels() else 1)[0]


def apply_orders(battle: Battle, units: Units, orders: Orders) -> Units:
    """Set targets; a new order cancels the current attack, and the backswing of the last one.

    An order to attack the same target again is not a new one. Calls for help of the last step are
    answered: in the game in the next loop, here half a second later at most.
    """
    if battle.rules.help:
        units = answer_calls(battle, units, pairwise(units).distance)
    commanded = orders.kind != ATTACK_MOVE
    target = jnp.where(orders.kind == ATTACK, orders.target, NO_TARGET)
    target = jnp.where(commanded, target, units.target)
    new = commanded & (target != units.target) | (orders.kind == MOVE)
    cancelled = new & (units.windup > 0)
    units = units._replace(
        target=target,
        windup=jnp.where(cancelled, 0, units.windup),
        cooldown=jnp.where(cancelled, 0.0, units.cooldown),
    )
    if not battle.rules.backswing:
        return units
    channelled = battle.stats.second_hit > 0
    return units._replace(
        backswing=jnp.where(new, 0, units.backswing),
        flight=jnp.where(new & channelled, 0, units.flight),
    )


def simulate_loop(battle: Battle, units: Units, orders: Orders, noise: Float[Array, " u"]) -> Units:
    """Simulate one game loop, a sixteenth of a second; `noise` is drawn from [-1, 1]."""
    alive = units.hp > 0
    targets = select_targets(battle, units, orders)

    steps, patients = desired_step(battle, units, orders, targets), None
    if battle.heals:
        geometry = pairwise(units)
        patients = select_patients(battle, units, orders, geometry.distance)
        steps = follow_patients(battle, patients, orders, geometry, steps)
    step_x, step_y, walks = steps
    walks = walks & (alive & (units.windup == 0) & (units.backswing == 0))
    idle = (orders.kind == ATTACK_MOVE) & ~targets.exists
    arrives = idle & near_destination(battle, units, orders)
    moved_x, moved_y = avoid_others(battle, units, (step_x, step_y), (alive, walks, arrives), noise)
    x, y = keep_inside(battle, units.x + moved_x, units.y + moved_y)

    units = units._replace(x=x, y=y, target=targets.indices)
    units, hits = update_attacks(battle, units, alive & targets.exists, targets.gap, noise)
    units = resolve_hits(battle, units, hits, targets)
    if patients is None:
        return units
    units = heal(battle, units, patients)
    healer = battle.stats.heal > 0
    return units._replace(target=jnp.where(healer, patients.indices, units.target))
