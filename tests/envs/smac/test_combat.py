"""The simulator: duels, damage, area damage, shields, regeneration, orders."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from smac_arena import MIDDLE, Arena, facing, hits

from fp3o.envs.smac.maps import Map, UnitGroup
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.damage import apply_damage
from fp3o.envs.smac.simulator.state import ATTACK, ATTACK_MOVE, MOVE, NO_TARGET, STOP
from fp3o.envs.smac.units import PERIOD_NOISE, UNIT_TYPES

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


def test_damage_and_healing_are_counted_separately() -> None:
    """Two shots at a shield, ten seconds of rest, six to get the 12 points back, another shot."""
    arena = facing({"marine": 1}, {"zealot": 1}, 4.0)

    def after(order: int, loops: int) -> tuple[float, float]:
        units = arena.run(arena.orders(order, 0), loops)[-1]
        assert not units.damage_taken[0] and not units.healed[0]
        return float(units.damage_taken[1]), float(units.healed[1])

    assert after(ATTACK, 18) == (12, 0)  # the last hit is in loop 16
    assert after(STOP, 159) == (12, 0)
    assert after(STOP, 16) == (12, 2)
    assert after(STOP, 100) == (12, 12)  # and no more: the shield is full
    assert after(ATTACK, 2) == (18, 12)
    assert float(arena.units.shield[1]) == 50 - 18 + 12


def test_the_dead_lose_no_more_points_than_they_had() -> None:
    """Banelings that explode lose theirs, too, as SMAC's rewards count it."""
    arena = facing({"marine": 4}, {"marine": 1}, 4.0)
    arena.put(hp=[45.0] * 4 + [20.0])
    units = arena.run(arena.orders(ATTACK, 0), 8)[-1]  # four hits of 6
    assert not units.hp[4] and list(units.damage_taken) == [0, 0, 0, 0, 20]
    arena = facing({"zealot": 1}, {"baneling": 1}, 1.0)
    order = arena.orders(STOP)._replace(kind=jnp.array([STOP, ATTACK_MOVE]))
    units = arena.run(order, 8)[-1]
    assert list(units.damage_taken) == [35, 30]


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
