"""Crowds in battles: how deep units overlap, and whether they slip through closed gates and rings.

    python tests/support/smac_crowds.py

prints all measurements. Depths of overlaps are shares of the sum of both separation radii.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from optimised import optimised_jit

from fp3o.envs.smac.env import smac_env
from fp3o.envs.smac.maps import Map, UnitGroup
from fp3o.envs.smac.scripted import smac_baselines
from fp3o.envs.smac.simulator.battle import Battle, battle_on
from fp3o.envs.smac.simulator.loop import apply_orders, simulate_loop
from fp3o.envs.smac.simulator.state import (
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    MOVE,
    NO_TARGET,
    STOP,
    Orders,
    Units,
)
from fp3o.envs.smac.simulator.targeting import edge_gaps
from fp3o.envs.smac.units import LOOPS_PER_SECOND, UNIT_TYPES

DEPTHS = (0.0, 0.1, 0.25, 0.5)
"""Overlaps are counted beyond each of these depths."""


class Overlaps(NamedTuple):
    """Overlaps in a battle, of one side or of opponents."""

    touching: float
    """Pairs that overlap, per loop and living unit."""
    deeper: tuple[float, ...]
    """Shares of them deeper than each of `DEPTHS[1:]`."""
    deepest: float


def overlaps_in_battles(name: str, battles: int, steps: int) -> tuple[Overlaps, Overlaps]:
    """Overlaps of units of one side, and of opponents; the team attacks the nearest enemy."""
    env = smac_env(name, "smac")
    fight = env.battle
    team = {each.name: each for each in smac_baselines(env)}["nearest"]
    sides = np.stack([~fight.opponents, fight.opponents])

    def loop(units: Units, given: tuple[Orders, Any]) -> tuple[Units, Any]:
        orders, noise = given
        units = simulate_loop(fight, units, orders, noise)
        depth = jnp.where(sides, overlap_depth(fight, units), 0.0)
        beyond = jnp.stack([(depth > least).sum((1, 2)) for least in DEPTHS])
        return units, (beyond, depth.max((1, 2)), (units.hp > 0).sum())

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        orders = env.orders(state.units, team.act(state, key)[:, 0])  # pyright: ignore
        shape = LOOPS_PER_STEP, len(fight.units)
        noise = jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)
        given = jax.tree.map(lambda x: jnp.broadcast_to(x, (LOOPS_PER_STEP, *x.shape)), orders)
        units, seen = jax.lax.scan(loop, apply_orders(fight, state.units, orders), (given, noise))
        both = jnp.stack(env.any_alive(units)).all()
        return state._replace(units=units), jax.tree.map(lambda x: x * both, seen)

    def battle(key: Any) -> Any:
        return jax.lax.scan(step, env.reset(key), jax.random.split(key, steps))[1]

    found = optimised_jit(jax.vmap(battle))(jax.random.split(jax.random.key(0), battles))
    beyond, deepest, alive = (np.asarray(x) for x in found)
    beyond, deepest = beyond.sum((0, 1, 2)) / 2, deepest.max((0, 1, 2))
    one, other = (
        Overlaps(beyond[0, i] / alive.sum(), tuple(beyond[1:, i] / max(beyond[0, i], 1)), far)
        for i, far in enumerate(deepest)
    )
    return one, other


def overlap_depth(fight: Battle, units: Units) -> Any:
    """(u, u): how deep two living units that collide overlap, else 0 or less."""
    own, alive = fight.stats, units.hp > 0
    high = own.walks_cliffs
    solid = (high[:, None] == high[None]) & ~np.eye(len(high), dtype=bool)
    far = jnp.hypot(units.x[:, None] - units.x[None], units.y[:, None] - units.y[None])
    depth = 1.0 - far / (own.separation[:, None] + own.separation[None])
    return jnp.where(solid & alive[:, None] & alive[None], depth, 0.0)


class Positions(NamedTuple):
    """Positions of all units after every loop, `(loops, u)`."""

    x: Any
    y: Any


def simulate(fight: Battle, start: Units, orders: Orders, seconds: float) -> Positions:
    """Simulate units under constant orders; nobody dies."""
    shape = round(seconds * LOOPS_PER_SECOND), len(fight.units)
    noise = jax.random.uniform(jax.random.key(0), shape, minval=-1.0, maxval=1.0)

    def loop(units: Units, noise: Any) -> tuple[Units, Positions]:
        units = simulate_loop(fight, units, orders, noise)._replace(hp=start.hp)
        return units, Positions(units.x, units.y)

    run = optimised_jit(
        lambda units: jax.lax.scan(loop, apply_orders(fight, units, orders), noise)[1]
    )
    return jax.tree.map(np.asarray, run(start))


def orders_of(fight: Battle, ours: tuple[int, Any], theirs: tuple[int, Any]) -> Orders:
    """One kind of order and one destination per side."""
    n, count = fight.num_allies, len(fight.units)
    first = np.arange(count) < n
    kind = np.where(first, ours[0], theirs[0])
    goal = np.where(first[:, None], np.asarray(ours[1], float), np.asarray(theirs[1], float))
    x, y = jnp.asarray(goal.T, jnp.float32)
    return Orders(jnp.asarray(kind), x, y, jnp.full(count, NO_TARGET))


def placed(fight: Battle, positions: Any) -> Units:
    """The initial units, with the first of them at other positions."""
    units = fight.initial_units()
    x, y = np.asarray(positions, np.float32).T
    return units._replace(x=units.x.at[: len(x)].set(x), y=units.y.at[: len(y)].set(y))


MIDDLE = np.array([16.0, 16.0])


def facing(ours: UnitGroup, theirs: UnitGroup) -> Battle:
    """A battle of two groups on flat ground."""
    return Battle("crowd", Map((ours,), (theirs,), (16.0, 16.0), 100, "flat"))


def ring(inner: str, outer: str, count: int, attacking: bool, angle: float) -> float:
    """How far a unit gets in three seconds that walks out of a ring of opponents, at an angle.

    The ring stands as closely as it attacks; it stands still, or pursues the unit.
    """
    reach = UNIT_TYPES[inner].radius + UNIT_TYPES[outer].radius + UNIT_TYPES[outer].weapon_range
    fight = facing(UnitGroup(inner, 1, (16.0, 16.0)), UnitGroup(outer, count, (16.0, 16.0)))
    turn = 2 * np.pi * np.arange(count) / count
    around = MIDDLE + 0.99 * reach * np.stack([np.cos(turn), np.sin(turn)], 1)
    away = MIDDLE + 10.0 * np.array([np.cos(angle), np.sin(angle)])
    orders = orders_of(fight, (MOVE, away), (ATTACK_MOVE if attacking else STOP, MIDDLE))
    seen = simulate(fight, placed(fight, [MIDDLE, *around]), orders, 3.0)
    return float(np.hypot(seen.x[-1, 0] - MIDDLE[0], seen.y[-1, 0] - MIDDLE[1]))


GATE = np.array([(12.6, 13.5), (13.5, 13.5), (14.4, 13.5)])
"""Three zealots that close the gate of `corridor`: gaps of 0.15, and 0.225 to the walls."""
BEHIND_GATE = (4.47, 4.33)


def passed_gate(closed: bool, kind: int, seconds: float) -> np.ndarray:
    """(loops,): how many of 24 zerglings have passed the gate of `corridor`."""
    fight = battle_on("corridor")
    units = placed(fight, [*GATE, *fight.initial_positions[3:6]])
    standing = (np.arange(len(fight.units)) < 3) & closed
    dead = (np.arange(len(fight.units)) < fight.num_allies) & ~standing
    units = units._replace(hp=jnp.where(dead, 0.0, units.hp))
    orders = orders_of(fight, (STOP, BEHIND_GATE), (kind, BEHIND_GATE))
    seen = simulate(fight, units, orders, seconds)
    return (seen.y[:, fight.num_allies :] < 12.0).sum(1)


def up_the_ramps(seconds: float) -> np.ndarray:
    """(loops,): how many of 64 zerglings have reached the high ground of `2c_vs_64zg`."""
    fight = battle_on("2c_vs_64zg")
    orders = orders_of(fight, (STOP, MIDDLE), (ATTACK_MOVE, MIDDLE))
    seen = simulate(fight, placed(fight, fight.initial_positions), orders, seconds)
    return (seen.y[:, 2:] > 13.5).sum(1)


def attackers_around(count: int, seconds: float) -> np.ndarray:
    """(loops,): how many zerglings reach a standing zealot that they approach from one side."""
    fight = facing(UnitGroup("zealot", 1, (16.0, 16.0)), UnitGroup("zergling", count, (24.0, 16.0)))
    orders = orders_of(fight, (STOP, MIDDLE), (ATTACK_MOVE, MIDDLE))
    seen = simulate(fight, placed(fight, fight.initial_positions), orders, seconds)
    far = np.hypot(seen.x[:, 1:] - seen.x[:, :1], seen.y[:, 1:] - seen.y[:, :1])
    return (far <= 0.5 + 0.375 + 0.1 + 1e-3).sum(1)


def attackers_in_battles(battles: int, steps: int) -> np.ndarray:
    """(steps,): zerglings in reach of the zealots on `corridor`, which attack the nearest, mean."""
    env = smac_env("corridor", "smac")
    team = {each.name: each for each in smac_baselines(env)}["nearest"]
    sides, reach = env.battle.sides[1], env.battle.stats.weapon_range[env.battle.num_allies :]

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        new = env.step(state, team.act(state, key), key)[0]  # pyright: ignore
        near = edge_gaps(env.battle, new.units, *sides).min(1) <= reach + 1e-3
        return new, (near & (new.units.hp[sides[0]] > 0)).sum()

    def battle(key: Any) -> Any:
        return jax.lax.scan(step, env.reset(key), jax.random.split(key, steps))[1]

    found = optimised_jit(jax.vmap(battle))(jax.random.split(jax.random.key(0), battles))
    return np.asarray(found).mean(0)


def crossing(unit: str, count: int, seconds: float) -> np.ndarray:
    """(loops,): how many units of two teams that walk through each other are on the other side."""
    fight = facing(UnitGroup(unit, count, (10.0, 16.0)), UnitGroup(unit, count, (22.0, 16.0)))
    orders = orders_of(fight, (MOVE, (26.0, 16.0)), (MOVE, (6.0, 16.0)))
    seen = simulate(fight, placed(fight, fight.initial_positions), orders, seconds)
    return (seen.x[:, :count] > 20).sum(1) + (seen.x[:, count:] < 12).sum(1)


def main() -> None:
    """Print all measurements."""
    loops = LOOPS_PER_SECOND
    for name, steps in (("corridor", 80), ("bane_vs_bane", 30), ("2c_vs_64zg", 80), ("3s5z", 60)):
        for who, seen in zip(
            ("own side", "opponents"), overlaps_in_battles(name, 8, steps), strict=True
        ):
            shares = ", ".join(f"{100 * share:.1f}" for share in seen.deeper)
            print(f"{name:13} {who:9} pairs per unit {seen.touching:.2f}; deeper than 10, 25, 50 %:"
                  f" {shares} %; deepest {seen.deepest:.2f}", flush=True)  # fmt: skip
    for inner, outer, count in (("zealot", "zergling", 8), ("marine", "zealot", 6)):
        for attacking in (False, True):
            far = [ring(inner, outer, count, attacking, x) for x in np.arange(5) * np.pi / 20]
            print(f"{inner} in {count} {outer}s, {'pursuing' if attacking else 'standing'}: "
                  f"{np.round(far, 2)}", flush=True)  # fmt: skip
    for kind, what in ((MOVE, "move"), (ATTACK_MOVE, "attack-move")):
        print(f"closed gate, {what}: {passed_gate(True, kind, 60.0)[-1]} of 24 in a minute")
    for what, seen, most in (
        ("open gate", passed_gate(False, MOVE, 30.0), 24),
        ("ramps", up_the_ramps(40.0), 64),
        ("12 marines through 12", crossing("marine", 12, 40.0), 24),
        ("24 zerglings through 24", crossing("zergling", 24, 40.0), 48),
    ):
        when = [float(np.argmax(seen >= part * most) / loops) for part in (0.5, 0.9, 1.0)]
        print(f"{what}: {seen[-1]} of {most}; half, 90 %, all after {when} s", flush=True)
    for count in (6, 12, 24):
        seen = attackers_around(count, 12.0)
        print(f"{count} zerglings around a zealot: {seen[[4 * loops, 6 * loops, 8 * loops, -1]]}")
    print(f"24 zerglings in reach of 6 zealots: {attackers_in_battles(16, 40).round(1)}")


if __name__ == "__main__":
    main()
