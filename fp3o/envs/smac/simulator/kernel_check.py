"""Whether the kernel of game loops does on this GPU what XLA's operations do."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.kernel import simulate_in_kernel
from fp3o.envs.smac.simulator.loop import apply_orders, simulate_loops
from fp3o.envs.smac.simulator.state import (
    ATTACK,
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    NO_TARGET,
    STOP,
    Orders,
    Units,
)

CHECKED_BATTLES, CHECKED_STEPS = 64, 3
"""Battles and steps that are compared."""

MIN_EQUAL = 0.98
"""Share of numbers that must be equal after them: rounding may decide otherwise now and then."""


@cache
def battle_kernel_works(battle: Battle) -> bool:
    """Whether battles that are simulated in both ways end alike; if not, XLA simulates them."""
    start = _scattered(battle, np.random.default_rng(0))
    both = jax.jit(
        lambda *start: (
            _fight(simulate_in_kernel, battle, *start),
            _fight(simulate_loops, battle, *start),
        )
    )
    try:
        # Compiled ahead of time, because a program that uses the kernel may be traced just now.
        found, expected = both.lower(*start).compile()(*start)
    except Exception as error:  # compilers of kernels raise errors of many classes
        return _not_used(battle, str(error))
    pairs = zip(*map(jax.tree.leaves, (found, expected)), strict=True)
    equal = min(np.isclose(*pair, rtol=1e-2, atol=1e-2).mean() for pair in pairs)
    if equal >= MIN_EQUAL:
        return True
    return _not_used(battle, f"only {equal:.1%} of its numbers are equal to XLA's")


def _not_used(battle: Battle, reason: str) -> bool:
    message = f"{battle.name} is simulated without a kernel for GPUs, more slowly: {reason}"
    warnings.warn(message, RuntimeWarning, stacklevel=3)
    return False


def _scattered(battle: Battle, random: np.random.Generator) -> tuple[Units, Orders, Any]:
    """Battles in which units stand close together, some dead, with all kinds of orders; noise."""
    assert battle.terrain.rectangle is not None
    left, right, bottom, top = battle.terrain.rectangle
    shape = (CHECKED_BATTLES, battle.num_units)
    size = random.uniform(1.0, 8.0, (CHECKED_BATTLES, 1))

    def place() -> Any:
        x, y = size * random.uniform(-1.0, 1.0, (2, *shape))
        return np.float32((left + right) / 2 + x), np.float32((bottom + top) / 2 + y)

    # Numbers, even if a program that uses the kernel is traced just now.
    with jax.ensure_compile_time_eval():
        units = jax.tree.map(np.asarray, battle.initial_units())
    units = jax.tree.map(lambda value: np.stack([value] * CHECKED_BATTLES), units)
    (x, y), (to_x, to_y) = place(), place()
    health = units.hp * random.uniform(-0.2, 1.0, shape).clip(0.0)
    shield = units.shield * random.uniform(0.0, 1.0, shape)
    kinds: Any = random.integers(STOP, ATTACK_MOVE, shape, endpoint=True)
    allies, enemies = battle.num_allies, battle.num_units - battle.num_allies
    opponents = np.repeat([enemies, allies], [allies, enemies])
    targets: Any = np.where(kinds == ATTACK, random.integers(0, opponents, shape), NO_TARGET)
    orders = Orders(kinds.astype(np.int32), to_x, to_y, targets.astype(np.int32))
    noise = random.uniform(-1.0, 1.0, (shape[0], CHECKED_STEPS, LOOPS_PER_STEP, shape[1]))
    units = units._replace(x=x, y=y, hp=np.float32(health), shield=np.float32(shield))
    return units, orders, np.float32(noise)


def _fight(simulate: Callable, battle: Battle, units: Units, orders: Orders, noise: Array) -> Units:
    """The units of all battles after some steps."""

    def fight(units: Units, orders: Orders, noise: Array) -> Units:
        def step(units: Units, noise: Array) -> tuple[Units, None]:
            return simulate(battle, apply_orders(battle, units, orders), orders, noise), None

        return jax.lax.scan(step, units, noise)[0]

    return jax.vmap(fight)(units, orders, noise)
