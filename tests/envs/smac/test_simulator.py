"""The simulator: duels, movement, area damage, shields, regeneration, walls, symmetry."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.smac.env import SmacEnv, SmacState, smac_env
from fp3o.envs.smac.maps import MAPS, Map, UnitGroup, unit_names
from fp3o.envs.smac.scripted import random_actions
from fp3o.envs.smac.simulator.battle import Battle, battle_on
from fp3o.envs.smac.simulator.damage import apply_damage
from fp3o.envs.smac.simulator.loop import apply_orders, simulate_loop, simulate_step
from fp3o.envs.smac.simulator.state import (
    ATTACK,
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    MOVE,
    NO_TARGET,
    STOP,
    Orders,
    Units,
)
from fp3o.envs.smac.units import PERIOD_NOISE, UNIT_TYPES

MIDDLE = 16.0


class Arena:
    """A battle simulated loop by loop, without noise."""

    def __init__(self, roster: Map):
        self.battle = Battle("arena", roster)
        self.units = self.battle.initial_units()
        self._loop = jax.jit(partial(simulate_loop, self.battle))

    def orders(self, kind: int, target: int = NO_TARGET, x: float = 0.0, y: float = 0.0) -> Orders:
        """The same order for all allies; enemies stand still."""
        n, count = self.battle.num_allies, len(self.battle.units)
        row = lambda value, rest: jnp.array([value] * n + [rest] * (count - n))  # noqa: E731
        return Orders(row(kind, STOP), row(x, 0.0), row(y, 0.0), row(target, NO_TARGET))

    def run(self, orders: Orders, loops: int) -> list[Units]:
        """Simulate a number of loops; the first state is the one before them."""
        self.units = apply_orders(self.units, orders)
        seen, calm = [self.units], jnp.zeros(len(self.battle.units))
        for _ in range(loops):
            self.units = self._loop(self.units, orders, calm)
            seen.append(self.units)
        return jax.tree.map(np.asarray, seen)

    def put(self, **values: Any) -> None:
        """Change the state of the units."""
        new = {name: jnp.asarray(x, getattr(self.units, name).dtype) for name, x in values.items()}
        self.units = self.units._replace(**new)


def facing(ours: dict[str, int], theirs: dict[str, int], apart: float) -> Arena:
    """Two teams on flat ground."""
    left, right = (
        tuple(UnitGroup(unit, count, (x, MIDDLE)) for unit, count in side.items())
        for side, x in ((ours, MIDDLE - apart / 2), (theirs, MIDDLE + apart / 2))
    )
    return Arena(Map(left, right, (MIDDLE, MIDDLE), 100, "flat"))


def hits(seen: list[Units], unit: int) -> list[tuple[int, float]]:
    """Loops at which a unit lost health or shield, and how much."""
    left = [float(u.hp[unit] + u.shield[unit]) for u in seen]
    losses = -np.diff(left)
    return [(i, round(float(loss), 3)) for i, loss in enumerate(losses) if loss > 0.1]


DUELS = {
    ("marine", "marine"): (7 * [6] + [3], 0),
    ("zealot", "marine"): (5 * [8] + [5], 0),
    ("marine", "zealot"): (8 * [6] + [2 + 3] + 19 * [5] + [2], 0),
    ("stalker", "stalker"): (5 * [14] + [10 + 3] + 5 * [13] + [12], 2),
    ("zealot", "stalker"): (10 * [8] + 11 * [7] + [3], 0),
    ("zergling", "marine"): (9 * [5], 0),
    ("hydralisk", "zealot"): (4 * [12] + [2 + 9] + 8 * [11] + [3], 1),
    ("colossus", "stalker"): (2 * [40] + 2 * [38] + [4], 4),
    ("spine_crawler", "stalker"): (2 * [30] + [20 + 9] + 2 * [29] + [13], 1),
    ("stalker", "hydralisk"): (8 * [10] + [12 * 0.2734], 2),
}
"""Attacker and target: damage of every hit, computed by hand, and flight time over two cells.

The last duel needs a ninth shot, because the hydralisk regenerates in the twelve seconds before.
"""


def test_duels() -> None:
    """Every hit lands in its loop with the right damage; the last one kills."""
    pairs, rows = [*DUELS], 2.0 + 3.0 * np.arange(len(DUELS))
    ours, theirs = (
        tuple(UnitGroup(pair[side], 1, (x, y)) for pair, y in zip(pairs, rows, strict=True))
        for side, x in ((0, 8.0), (1, 20.0))
    )
    arena = Arena(Map(ours, theirs, (MIDDLE, MIDDLE), 100, "flat"))
    own, n = arena.battle.stats, len(pairs)
    gap = np.minimum(0.9 * own.weapon_range[:n], 2.0 - own.radius[:n] - own.radius[n:])
    arena.put(x=np.concatenate([np.full(n, 8.0), 8.0 + gap + own.radius[:n] + own.radius[n:]]))
    order = arena.orders(ATTACK)
    seen = arena.run(order._replace(target=jnp.array([*range(n)] + [NO_TARGET] * n)), 440)
    for number, (pair, (losses, flight)) in enumerate(DUELS.items()):
        unit, lost = UNIT_TYPES[pair[0]], hits(seen, n + number)
        np.testing.assert_allclose([loss for _, loss in lost], losses, atol=0.1, err_msg=f"{pair}")
        wait = math.ceil(16 * unit.period + 16 * sum(PERIOD_NOISE) / 2)
        second = [0, round(16 * unit.second_hit)] if unit.second_hit else [0]
        first = round(16 * unit.windup) + flight
        times = [first + wait * i + after for i in range(len(losses)) for after in second]
        assert [loop for loop, _ in lost] == times[: len(losses)], pair
        assert float(seen[lost[-1][0]].hp[n + number]) > 0 == float(seen[-1].hp[n + number])


def test_shields_first_then_armour_off_every_hit() -> None:
    """A marine does 6 to a zealot's shield and 5 to its health; one hit can do both."""
    arena = facing({"marine": 1}, {"zealot": 1}, 4.0)
    arena.put(shield=[0.0, 14.0])
    lost = [loss for _, loss in hits(arena.run(arena.orders(ATTACK, 0), 75), 1)]
    assert lost == [6.0, 6.0, 2.0 + 3.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("raw", "count", "left"),
    [(12.0, 2, (50.0 - 10.0, 0.0)), (0.4, 1, (49.5, 0.0)), (100.0, 1, (0.0, 0.0)), (0, 0, (50, 0))],
)
def test_damage_without_shield(raw: float, count: int, left: tuple[float, float]) -> None:
    """Armour reduces every hit, at least half a point remains, and health is never negative."""
    one = jnp.ones(1)
    found = apply_damage(50.0 * one, 0.0 * one, raw * one, count * one, one)
    np.testing.assert_allclose(np.ravel(found), left, atol=1e-4)


def test_bonus_damage() -> None:
    """A stalker does 10, and 14 to armoured; a baneling 20, and 35 to light."""
    allies = UnitGroup("stalker", 1, (9, 16)), UnitGroup("baneling", 1, (9, 12))
    enemies = UnitGroup("stalker", 1, (23, 16)), UnitGroup("zergling", 1, (23, 12))
    duel = Battle("duel", Map(allies, enemies, None, 10, "flat"))
    np.testing.assert_array_equal(duel.damage[:2, 2:], [[14, 10], [20, 35]])


def test_speeds() -> None:
    """Distances after one step and after four seconds follow from the speed of every unit type."""
    arena = facing(dict.fromkeys(UNIT_TYPES, 1), {"marine": 1}, 24.0)
    y = 3.0 + 3.5 * np.arange(len(UNIT_TYPES) + 1)
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


def test_explosions_hit_all_opponents_in_range_once() -> None:
    """Opponents within the blast radius are hit once; the baneling itself dies."""
    arena = facing({"baneling": 1, "zergling": 1}, {"zergling": 4, "baneling": 1}, 2.2)
    arena.put(x=[15.6, 15.6, 16.5, 16.5, 17.0, 22.0, 16.6], y=[16, 17, 15.5, 16.4, 16, 16, 17])
    order = arena.orders(ATTACK, 0)
    order = order._replace(kind=order.kind.at[1].set(STOP))
    hp = np.asarray(arena.run(order, 6)[-1].hp)
    assert hp[0] == 0 and hp[1] == 35
    assert (hp[2:5] == 0).all() and hp[5] == 35
    np.testing.assert_allclose(hp[6], 10.0, atol=0.2)


def test_a_killed_baneling_explodes_too() -> None:
    """In the loop after its death."""
    arena = facing({"marine": 1}, {"baneling": 1}, 2.0)
    arena.put(hp=[45.0, 5.0])
    seen = arena.run(arena.orders(ATTACK, 0), 6)
    assert float(seen[-1].hp[1]) == 0
    assert float(seen[-1].hp[0]) == 45 - 35


def test_a_colossus_burns_a_line() -> None:
    """Both lances hit all zerglings across the shot, 1.25 to either side, and none behind."""
    arena = facing({"colossus": 1}, {"zergling": 5}, 5.0)
    y = [16, 16, 16.9, 15.1, 18.0, 16]
    arena.put(x=[12, 16, 16, 16, 16, 17.5], y=y)
    hp = np.asarray(arena.run(arena.orders(ATTACK, 0), 12)[-1].hp)
    assert list(hp[1:] > 0) == [False, False, False, True, True]


def test_shields_regenerate_ten_seconds_after_the_last_hit() -> None:
    """By 2 points per second up to the maximum; health of Protoss units does not regenerate."""
    arena = facing({"zealot": 1}, {"marine": 1}, 16.0)
    arena.put(shield=[10.0, 0.0], hp=[50.0, 45.0], since_hit=[0.0, 0.0])
    seen = arena.run(arena.orders(STOP), 240)
    assert float(seen[159].shield[0]) == 10.0
    np.testing.assert_allclose(float(seen[161 + 32].shield[0]), 10.0 + 2 * 2.0, atol=0.3)
    assert float(seen[-1].hp[0]) == 50.0


def test_a_hit_interrupts_shield_regeneration() -> None:
    """A hit on health counts as well: the ten seconds start again."""
    arena = facing({"marine": 1}, {"zealot": 1}, 4.0)
    arena.put(shield=[0.0, 6.0], since_hit=[0.0, 999.0])
    order = arena.orders(ATTACK, 0)
    seen = arena.run(order, 18)  # two shots, in loops 1 and 16
    assert [loop for loop, _ in hits(seen, 1)] == [1, 16]
    shield = [float(units.shield[1]) for units in seen + arena.run(arena.orders(STOP), 170)[1:]]
    assert shield[1] > 6.0 and shield[17] == 0.0
    back = np.flatnonzero(np.diff(shield[17:]) > 0)
    assert back[0] == 160 and shield[-1] < 2.0


def test_zerg_regenerate_continuously() -> None:
    """By 0.2734 points per second, up to the maximum."""
    arena = facing({"zergling": 2}, {"marine": 1}, 16.0)
    arena.put(hp=[20.0, 34.9, 45.0])
    hp = np.asarray(arena.run(arena.orders(STOP), 160)[-1].hp)
    np.testing.assert_allclose(hp, [20.0 + 2.734, 35.0, 45.0], atol=1e-2)


def test_a_new_order_cancels_an_attack() -> None:
    """A cancelled attack costs no cooldown; repeating an order changes nothing."""
    arena = facing({"stalker": 1}, {"marine": 2}, 5.0)
    arena.run(arena.orders(ATTACK, 0), 1)
    assert int(arena.units.windup[0]) > 0
    arena.run(arena.orders(ATTACK, 0), 1)
    assert int(arena.units.windup[0]) > 0
    arena.run(arena.orders(MOVE, x=9.0, y=16.0), 1)
    assert int(arena.units.windup[0]) == 0 and float(arena.units.cooldown[0]) == 0
    assert (np.asarray(arena.units.hp[1:]) == 45).all()


def test_agents_attack_only_when_ordered() -> None:
    """Under attack, units with a stop order stand still."""
    arena = facing({"marine": 1}, {"marine": 1}, 4.0)
    order = arena.orders(STOP)
    order = order._replace(kind=jnp.array([STOP, ATTACK_MOVE]))
    units = arena.run(order, 60)[-1]
    assert float(units.hp[0]) < 45 and float(units.hp[1]) == 45


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


def attack_moves(fight: Battle) -> Orders:
    """Both sides attack-move to the initial positions of the other."""
    n, count = fight.num_allies, len(fight.units)
    positions = fight.initial_positions
    goals = np.where((np.arange(count) < n)[:, None], positions[n:].mean(0), positions[:n].mean(0))
    x, y = jnp.asarray(goals.T, jnp.float32)
    return Orders(jnp.full(count, ATTACK_MOVE), x, y, jnp.full(count, NO_TARGET))


SYMMETRIC = {
    "3m": (256, 40),
    "8m": (256, 60),
    "25m": (128, 60),
    "2s3z": (256, 110),
    "3s5z": (256, 110),
    "1c3s5z": (256, 110),
    "bane_vs_bane": (96, 30),
}
"""Symmetric maps: number of battles to simulate, and their length in steps."""


def usual(names: Iterable[str], chosen: Sequence[str]) -> list[Any]:
    """Parameters of a test; all but the chosen ones are marked slow."""
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.slow)
            for name in names]  # fmt: skip


def test_all_symmetric_maps_are_simulated() -> None:
    """Those on which both sides have the same units."""
    even = {name for name, roster in MAPS.items()
            if sorted(unit_names(roster.allies)) == sorted(unit_names(roster.enemies))}  # fmt: skip
    assert even == {*SYMMETRIC}


@pytest.mark.parametrize("name", usual(SYMMETRIC, ["3m"]))
def test_equal_teams_are_equal(name: str) -> None:
    """Under the same orders either side wins as often, within the interval of 99.9 %."""
    fight, (battles, steps) = battle_on(name), SYMMETRIC[name]
    orders, n = attack_moves(fight), fight.num_allies

    def simulate(key: Any) -> tuple[Any, Any]:
        step = lambda units, key: (simulate_step(fight, units, orders, key), None)  # noqa: E731
        units, _ = jax.lax.scan(step, fight.initial_units(), jax.random.split(key, steps))
        return (units.hp[:n] > 0).any(), (units.hp[n:] > 0).any()

    ours, theirs = jax.jit(jax.vmap(simulate))(jax.random.split(jax.random.key(0), battles))
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    assert won + lost > battles / 8
    assert abs(won - lost) < 3.3 * math.sqrt(won + lost)


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

    return jax.jit(jax.vmap(simulate))(jax.random.split(jax.random.key(1), envs))


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
