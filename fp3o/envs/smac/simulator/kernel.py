"""The game loops of an environment step in one kernel for GPUs; `loop` decides whether it is used.

XLA makes some fifty kernels of them, and starting those takes longer than their work. Here every
program simulates one battle, whose state stays in registers over all loops.

The kernel has no rules of its own: it computes `simulate_loop`, traced for the same battle with
dead units added, because kernels work on blocks whose sizes are powers of two. Constants of the
battle are passed as one array. Without a GPU, kernels are interpreted. The kernel has no derivative
(`FP3O_KERNELS=0` switches it off).
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.geometry import traced_for_kernel
from fp3o.envs.smac.simulator.loop import simulate_loop
from fp3o.envs.smac.simulator.state import Orders, Units
from fp3o.envs.smac.simulator.stats import UnitStats

PADDED_UNITS = 16
"""Number of units of a battle with additional ones, and so the most units that it can have. With 32
there are four times the pairs, which fill the registers: XLA is faster for thousands of these."""

WARPS = 2
"""Warps of a program."""

UNCHANGED = ("lance_line", "exploding", "answer", "kind", "energy")
"""Parts of the state that loops of these battles do not change."""

CHANGED = tuple(name for name in Units._fields if name not in UNCHANGED)


class PaddedBattle(Battle):
    """A battle with additional units: dead, last, with statistics of 0.

    What `simulate_loop` asks for is padded, where the kernel can simulate the battle.
    """

    @cached_property
    def _battle(self) -> Battle:
        return Battle(self.name, self.map, self.rules)

    @cached_property
    def num_units(self) -> int:
        """Number of units of both sides and of additional ones."""
        return PADDED_UNITS

    @cached_property
    def stats(self) -> UnitStats:
        """The statistics of every unit."""
        return UnitStats(*map(self._padded, self._battle.stats))

    @cached_property
    def opponents(self) -> np.ndarray:
        """(u, u): whether two units are on different sides."""
        return self._padded(self._battle.opponents)

    @cached_property
    def passing_sides(self) -> np.ndarray:
        """(u,): the side on which units pass others."""
        return self._padded(self._battle.passing_sides)

    @cached_property
    def damage(self) -> np.ndarray:
        """(u, u): damage per hit."""
        return self._padded(self._battle.damage)

    @cached_property
    def delayed(self) -> np.ndarray:
        """(u,): units whose attacks have a hit that lands later."""
        return self._padded(self._battle.delayed)

    def _padded(self, array: Any) -> np.ndarray:
        return np.pad(array, [(0, self.num_units - size) for size in array.shape])


def has_kernel(battle: Battle) -> bool:
    """Whether the kernel can simulate a battle.

    It looks nothing up by position or type, so the ground is a rectangle and teams are fixed. All
    units attack one target: there are no lances, explosions or healers, nor units that fly.
    """
    if battle.map.teams is not None or battle.num_units > PADDED_UNITS:
        return False
    types = battle.type_stats
    special = types.lance.any() or types.blast.any() or battle.heals
    flat = battle.terrain.rectangle is not None
    return flat and not special and battle.attackable is None


def simulate_in_kernel(
    battle: Battle, units: Units, orders: Orders, noise: Float[Array, "t u"]
) -> Units:
    """The same as `simulate_loops`."""
    padded = PaddedBattle(battle.name, battle.map, battle.rules)
    changed = [getattr(units, name) for name in CHANGED]
    arrays = [*changed, units.answer, *orders]
    loop = _traced_loop(padded, [array.dtype for array in (*arrays, noise)])
    packed, constants = _packed(loop.consts)

    def kernel(*refs: Any) -> None:
        (*inputs, noise_ref, packed_ref), outputs = refs[: -len(changed)], refs[-len(changed) :]
        unit = jnp.arange(padded.num_units)
        not_added = unit < battle.num_units
        values = [_load(ref, (unit,), not_added) for ref in inputs]
        of_battle = [constant.read(packed_ref) for constant in constants]

        def turn(t: Any, changing: list[Array]) -> list[Array]:
            of_loop = _load(noise_ref, (jnp.full_like(unit, t), unit), not_added)
            fixed = values[len(changing) :]
            return eval_jaxpr(loop.jaxpr, of_battle, *changing, *fixed, of_loop)

        results = jax.lax.fori_loop(0, noise.shape[0], turn, values[: len(changed)])
        for ref, result in zip(outputs, results, strict=True):
            triton.store(ref.at[(unit,)], result, mask=not_added)

    on_gpu = jax.default_backend() == "gpu"
    warps = triton.CompilerParams(num_warps=WARPS, num_stages=1)
    results = pl.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in changed],
        interpret=not on_gpu,
        compiler_params=warps if on_gpu else None,
    )(*arrays, noise, packed)
    return units._replace(**dict(zip(CHANGED, results, strict=True)))


def _traced_loop(battle: Battle, dtypes: list[Any]) -> Any:
    """`simulate_loop` as a function of arrays: what changes, answers, orders and noise."""

    def loop(*arrays: Array) -> list[Array]:
        changed, (answer, *orders, noise) = arrays[: len(CHANGED)], arrays[len(CHANGED) :]
        state = dict(zip(CHANGED, changed, strict=True))
        nothing: Any = None
        units = Units(**state, answer=answer, exploding=nothing, lance_line=nothing)
        after = simulate_loop(battle, units, Orders(*orders), noise)
        return [getattr(after, name) for name in CHANGED]

    with traced_for_kernel():
        shapes = [jax.ShapeDtypeStruct((battle.num_units,), dtype) for dtype in dtypes]
        return jax.make_jaxpr(loop)(*shapes)


class PackedConstant(NamedTuple):
    """A constant in the array that is passed to the kernel."""

    offset: int
    shape: tuple[int, ...]
    dtype: Any

    def read(self, ref: Any) -> Array:
        """The constant."""
        index = self.offset
        for axis in range(len(self.shape)):
            step = math.prod(self.shape[axis + 1 :])
            index = index + step * jax.lax.broadcasted_iota(int, self.shape, axis)
        value = triton.load(ref.at[(index,)])
        return value != 0 if self.dtype == bool else value.astype(self.dtype)


def _packed(constants: list[Any]) -> tuple[Float[Array, " c"], list[PackedConstant]]:
    """Constants one after another, equal ones once; integers of a battle are small."""
    offsets: dict[Any, int] = {}
    parts: list[np.ndarray] = []
    entries = []
    for constant in map(np.asarray, constants):
        row = constant.astype(np.float32).ravel()
        if row.tobytes() not in offsets:
            offsets[row.tobytes()] = sum(part.size for part in parts)
            parts.append(row)
        entries.append(PackedConstant(offsets[row.tobytes()], constant.shape, constant.dtype))
    return jnp.asarray(np.concatenate(parts)), entries


def _load(ref: Any, index: tuple[Array, ...], mask: Array) -> Array:
    return triton.load(ref.at[index], mask=mask, other=jnp.zeros((), ref.dtype))
