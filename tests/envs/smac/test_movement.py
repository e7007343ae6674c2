"""The simulator: speeds, destinations, walls, overlaps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optimised import optimised_jit
from smac_arena import facing

from fp3o.envs.smac.env import SmacEnv, SmacState, smac_env
from fp3o.envs.smac.maps import MAPS
from fp3o.envs.smac.scripted import random_actions
from fp3o.envs.smac.simulator.loop import simulate_step
from fp3o.envs.smac.simulator.state import ATTACK_MOVE, LOOPS_PER_STEP, MOVE, STOP, Orders
from fp3o.envs.smac.units import UNIT_TYPES


def test_speeds() -> None:
    """Distances after one step and after four seconds follow from the speed of every unit type."""
    arena = facing(dict.fromkeys(UNIT_TYPES, 1), {"marine": 1}, 24.0)
    y = 2.5 + 2.7 * np.arange(len(UNIT_TYPES) + 1)
    arena.put(x=[4.0] * len(UNIT_TYPES) + [28.0], y=y)
    order = arena.orders(MOVE, x=30.0)._replace(y=jnp.asarray(y, jnp.float32))
    seen = arena.run(order, 64)
    speed = np.array([unit.speed for unit in UNIT_TYPES.values()])
    for loop in (LOOPS_PER_STEP, 64):
        gone = np.asarray(seen[loop].x[:-1]) - 4.0
        np.testing.assert_allclose(gone, speed * loop / 16, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(seen[-1].y), y, atol=1e-4)


def test_a_move_ends_where_it_was_ordered_to() -> None:
    """Units do not overshoot their destination."""
    arena = facing({"marine": 1}, {"marine": 1}, 16.0)
    arena.run(arena.orders(MOVE, x=float(arena.units.x[0]), y=17.0), 40)
    np.testing.assert_allclose(float(arena.units.y[0]), 17.0, atol=0.06)


def test_a_team_stands_around_its_destination() -> None:
    """Units do not overlap, and none has stopped far away."""
    arena = facing({"marine": 8}, {"marine": 1}, 20.0)
    goal = (16.0, 22.0)
    arena.put(hp=[45.0] * 8 + [0.0])
    units = arena.run(arena.orders(ATTACK_MOVE, x=goal[0], y=goal[1]), 160)[-1]
    x, y = units.x[:8], units.y[:8]
    assert np.hypot(x - goal[0], y - goal[1]).max() < 2.0
    apart = np.hypot(x[:, None] - x, y[:, None] - y) + 9.0 * np.eye(8)
    assert apart.min() > 0.8 * 2 * UNIT_TYPES["marine"].separation


USUAL = ("3s5z", "6h_vs_8z", "2c_vs_64zg")
"""Maps of the default run: a strip, a round area, routes and cliffs."""
OVERLAP, MAX_STEPS = 0.5, 6
"""Units closer than this share of their sizes overlap; most steps an overlap may last."""


class Violations(NamedTuple):
    """Counts of overlaps and of units outside of the terrain in one battle."""

    overlap: Any
    """(u, u): number of steps for which two units have overlapped."""
    longest: Any
    deep: Any
    """Number of overlaps, over pairs and steps."""
    pairs: Any
    """Number of pairs and steps in which there could have been one."""
    outside: Any
    """Number of units on cells that are not walkable."""


def watched(env: SmacEnv, state: SmacState, seen: Violations) -> Violations:
    """Add the violations of one more step."""
    (units, *_), own, terrain = state, env.battle.stats, env.battle.terrain
    alive, strides = units.hp > 0, own.walks_cliffs.astype(bool)
    here = jnp.floor(units.x).astype(int), jnp.floor(units.y).astype(int)
    free = [jnp.asarray(np.pad(cells, 1))[here[0] + 1, here[1] + 1]
            for cells in (terrain.over_cliffs, terrain.walkable)]  # fmt: skip
    outside = (alive & ~jnp.where(strides, *free)).sum()
    far = jnp.hypot(units.x[:, None] - units.x[None], units.y[:, None] - units.y[None])
    solid = alive & ~strides
    both = solid[:, None] & solid[None] & ~np.eye(len(alive), dtype=bool)
    deep = both & (far < OVERLAP * (own.separation[:, None] + own.separation[None]))
    overlap = jnp.where(deep, seen.overlap + 1, 0)
    return Violations(
        overlap, jnp.maximum(seen.longest, overlap.max()), seen.deep + deep.sum(),
        seen.pairs + both.sum(), seen.outside + outside,
    )  # fmt: skip


def wander(env: SmacEnv, envs: int, steps: int) -> Violations:
    """Random available actions in some environments, with automatic resets."""

    def step(
        carry: tuple[SmacState, Violations], key: Any
    ) -> tuple[tuple[SmacState, Violations], None]:
        state, seen = carry
        one, two = jax.random.split(key)
        new, _, over, late = env.step(state, random_actions(env, state, one), two)
        seen = watched(env, new, seen)
        done = over | late
        pick = lambda a, b: jnp.where(done, a, b)  # noqa: E731
        seen = seen._replace(overlap=pick(0, seen.overlap))
        return (jax.tree.map(pick, env.reset(key), new), seen), None

    def simulate(key: Any) -> Violations:
        count, zero = len(env.battle.units), jnp.zeros((), int)
        fresh = Violations(jnp.zeros((count, count), int), zero, zero, zero, zero)
        return jax.lax.scan(step, (env.reset(key), fresh), jax.random.split(key, steps))[0][1]

    return optimised_jit(jax.vmap(simulate))(jax.random.split(jax.random.key(1), envs))


def check(seen: Violations) -> None:
    """No unit outside, no long overlap, and few overlaps."""
    assert not np.asarray(seen.outside).any()
    assert np.max(seen.longest) <= MAX_STEPS
    assert np.sum(seen.deep) < 0.01 * max(np.sum(seen.pairs), 1)


@pytest.mark.parametrize("name", USUAL)
def test_units_stay_on_the_terrain_and_do_not_overlap(name: str) -> None:
    """Under random actions, units stay on walkable cells and overlaps are short."""
    check(wander(smac_env(name, "smac"), 4, 60))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_ten_thousand_steps(name: str) -> None:
    """The same on every map."""
    check(wander(smac_env(name, "smac"), 40, 250))


def test_buildings_are_not_pushed() -> None:
    """Stalkers that walk into the spine crawler do not move it."""
    env = smac_env("2s_vs_1sc", "paper")
    fight = env.battle
    units = fight.initial_units()
    x, y = units.x.at[:2].set(jnp.asarray([13.0, 15.0])), units.y.at[:2].set(19.2)
    units = units._replace(x=x, y=y)
    goal = jnp.asarray([14.0, 14.0, 14.0]), jnp.asarray([22.0, 22.0, 20.0])
    orders = Orders(jnp.asarray([MOVE, MOVE, STOP]), *goal, jnp.full(3, -1))
    for key in jax.random.split(jax.random.key(0), 5):
        units = simulate_step(fight, units, orders, key)
    np.testing.assert_allclose((units.x[2], units.y[2]), (14.0, 20.0), atol=1e-5)
