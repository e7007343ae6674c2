"""The rules of battle, one by one: duels, travel, splash, shields, healing, walls, fairness."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.smac.battle import (
    ATTACK,
    LOOPS,
    MOVE,
    NOBODY,
    STOP,
    SWEEP,
    Battle,
    Orders,
    Units,
    battle,
    suffer,
)
from fp3o.envs.smac.game import skirmish
from fp3o.envs.smac.maps import MAPS, Group, Map
from fp3o.envs.smac.scripted import at_random
from fp3o.envs.smac.units import PERIOD_NOISE, UNITS

MIDDLE = 16.0


class Arena:
    """A battle of chosen units on flat ground, loop by loop, without noise."""

    def __init__(self, ours: dict[str, int], theirs: dict[str, int], apart: float):
        left, right = (
            tuple(Group(kind, count, (x, MIDDLE)) for kind, count in side.items())
            for side, x in ((ours, MIDDLE - apart / 2), (theirs, MIDDLE + apart / 2))
        )
        self.battle = Battle("arena", Map(left, right, (MIDDLE, MIDDLE), 100, "flat"))
        self.units = self.battle.start()
        self._loop, self._obey = jax.jit(self.battle.loop), self.battle.obey

    def orders(self, kind: int, target: int = NOBODY, x: float = 0.0, y: float = 0.0) -> Orders:
        """One order for our side; theirs stands."""
        n, count = self.battle.num_allies, len(self.battle.units)
        row = lambda value, rest: jnp.array([value] * n + [rest] * (count - n))  # noqa: E731
        return Orders(row(kind, STOP), row(x, 0.0), row(y, 0.0), row(target, NOBODY))

    def play(self, orders: Orders, loops: int) -> list[Units]:
        """Obey, and watch so many loops; the first row is before them."""
        self.units = self._obey(self.units, orders)
        seen = [self.units]
        for _ in range(loops):
            self.units = self._loop(self.units, orders, jnp.zeros(len(self.battle.units)))
            seen.append(self.units)
        return seen

    def put(self, **values: Any) -> None:
        """Set some numbers of the units."""
        new = {name: jnp.asarray(x, getattr(self.units, name).dtype) for name, x in values.items()}
        self.units = self.units._replace(**new)


def hits(seen: list[Units], unit: int) -> list[tuple[int, float]]:
    """Loops at which a unit lost something, and how much."""
    left = [float(u.hp[unit] + u.shield[unit]) for u in seen]
    losses = -np.diff(left)
    return [(i, round(float(loss), 3)) for i, loss in enumerate(losses) if loss > 0.1]


def test_a_marine_kills_a_marine_with_eight_shots() -> None:
    """45 health, 6 a shot; the shots are a period apart."""
    arena = Arena({"marine": 1}, {"marine": 1}, 4.0)
    seen = arena.play(arena.orders(ATTACK, 0), 130)
    lost = hits(seen, 1)
    assert [loss for _, loss in lost] == [6.0] * 7 + [3.0]
    mean_noise = 16 * sum(PERIOD_NOISE) / 2
    waits = np.diff([loop for loop, _ in lost])
    assert abs(waits.mean() - math.ceil(UNITS["marine"].period * 16 + mean_noise)) <= 1
    assert float(seen[-1].hp[1]) == 0


def test_a_zealot_strikes_twice_and_kills_a_marine_in_three_attacks() -> None:
    """8 and 8, the second blow 0.28 seconds later."""
    arena = Arena({"zealot": 1}, {"marine": 1}, 0.9)
    lost = hits(arena.play(arena.orders(ATTACK, 0), 70), 1)
    assert [loss for _, loss in lost] == [8.0] * 5 + [5.0]
    times = [loop for loop, _ in lost]
    assert [b - a for a, b in zip(times[::2], times[1::2], strict=True)] == [4, 4, 4]


def test_shields_first_then_armour_off_every_hit() -> None:
    """A marine takes 6 of a zealot's shield and 5 of its health; one hit can do both."""
    arena = Arena({"marine": 1}, {"zealot": 1}, 4.0)
    arena.put(shield=[0.0, 14.0])
    lost = [loss for _, loss in hits(arena.play(arena.orders(ATTACK, 0), 75), 1)]
    assert lost == [6.0, 6.0, 2.0 + 3.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("raw", "count", "left"),
    [(12.0, 2, (50.0 - 10.0, 0.0)), (0.4, 1, (49.5, 0.0)), (100.0, 1, (0.0, 0.0)), (0, 0, (50, 0))],
)
def test_damage_without_shield(raw: float, count: int, left: tuple[float, float]) -> None:
    """Armour is taken off each hit, half a point always comes through, nobody is less than dead."""
    one = jnp.ones(1)
    found = suffer(50.0 * one, 0.0 * one, raw * one, count * one, one)
    np.testing.assert_allclose(np.ravel(found), left, atol=1e-4)


def test_bonus_damage() -> None:
    """A stalker does 10, and 14 to armoured; a baneling 20, and 35 to light."""
    duel = Battle("duel", Map((Group("stalker", 1, (9, 16)), Group("baneling", 1, (9, 12))),
                              (Group("stalker", 1, (23, 16)), Group("zergling", 1, (23, 12))),
                              None, 10, "flat"))  # fmt: skip
    np.testing.assert_array_equal(duel.damage[:2, 2:], [[14, 10], [20, 35]])


@pytest.mark.parametrize("kind", ["marine", "stalker", "zergling"])
def test_travel(kind: str) -> None:
    """A step of eight loops takes a unit half a second of its speed."""
    arena = Arena({kind: 1}, {"marine": 1}, 16.0)
    start = float(arena.units.y[0])
    arena.play(arena.orders(MOVE, x=float(arena.units.x[0]), y=start + 2.0), LOOPS)
    np.testing.assert_allclose(float(arena.units.y[0]) - start, UNITS[kind].speed / 2, rtol=1e-4)


def test_a_move_ends_where_it_was_ordered_to() -> None:
    """Nobody runs past its goal."""
    arena = Arena({"marine": 1}, {"marine": 1}, 16.0)
    arena.play(arena.orders(MOVE, x=float(arena.units.x[0]), y=17.0), 40)
    np.testing.assert_allclose(float(arena.units.y[0]), 17.0, atol=0.06)


def test_banelings_take_lings_with_them_but_not_banelings() -> None:
    """Everyone of the other side within the blast is hit once; the baneling is gone."""
    arena = Arena({"baneling": 1, "zergling": 1}, {"zergling": 4, "baneling": 1}, 2.2)
    arena.put(x=[15.6, 15.6, 16.5, 16.5, 17.0, 22.0, 16.6], y=[16, 17, 15.5, 16.4, 16, 16, 17])
    order = arena.orders(ATTACK, 0)
    order = order._replace(kind=order.kind.at[1].set(STOP))
    hp = np.asarray(arena.play(order, 6)[-1].hp)
    assert hp[0] == 0 and hp[1] == 35
    assert (hp[2:5] == 0).all() and hp[5] == 35
    np.testing.assert_allclose(hp[6], 10.0, atol=0.2)


def test_a_killed_baneling_explodes_too() -> None:
    """In the loop after its death."""
    arena = Arena({"marine": 1}, {"baneling": 1}, 2.0)
    arena.put(hp=[45.0, 5.0])
    seen = arena.play(arena.orders(ATTACK, 0), 6)
    assert float(seen[-1].hp[1]) == 0
    assert float(seen[-1].hp[0]) == 45 - 35


def test_a_colossus_burns_a_line() -> None:
    """Both lances hit all lings across the shot, within 1.25 to either side, and nobody behind."""
    arena = Arena({"colossus": 1}, {"zergling": 5}, 5.0)
    y = [16, 16, 16.9, 15.1, 18.0, 16]
    arena.put(x=[12, 16, 16, 16, 16, 17.5], y=y)
    hp = np.asarray(arena.play(arena.orders(ATTACK, 0), 12)[-1].hp)
    assert list(hp[1:] > 0) == [False, False, False, True, True]


def test_shields_come_back_ten_seconds_after_the_last_hit() -> None:
    """By 2 a second, up to what they were; health of protoss does not."""
    arena = Arena({"zealot": 1}, {"marine": 1}, 16.0)
    arena.put(shield=[10.0, 0.0], hp=[50.0, 45.0], unhurt=[0.0, 0.0])
    seen = arena.play(arena.orders(STOP), 240)
    assert float(seen[159].shield[0]) == 10.0
    np.testing.assert_allclose(float(seen[161 + 32].shield[0]), 10.0 + 2 * 2.0, atol=0.3)
    assert float(seen[-1].hp[0]) == 50.0


def test_zerg_heal_all_the_time() -> None:
    """0.2734 a second, and not beyond their health."""
    arena = Arena({"zergling": 2}, {"marine": 1}, 16.0)
    arena.put(hp=[20.0, 34.9, 45.0])
    hp = np.asarray(arena.play(arena.orders(STOP), 160)[-1].hp)
    np.testing.assert_allclose(hp, [20.0 + 2.734, 35.0, 45.0], atol=1e-2)


def test_a_new_order_breaks_off_an_attack() -> None:
    """The shot that was not fired costs nothing; the same order again changes nothing."""
    arena = Arena({"stalker": 1}, {"marine": 2}, 5.0)
    arena.play(arena.orders(ATTACK, 0), 1)
    assert int(arena.units.windup[0]) > 0
    arena.play(arena.orders(ATTACK, 0), 1)
    assert int(arena.units.windup[0]) > 0
    arena.play(arena.orders(MOVE, x=9.0, y=16.0), 1)
    assert int(arena.units.windup[0]) == 0 and float(arena.units.cooldown[0]) == 0
    assert (np.asarray(arena.units.hp[1:]) == 45).all()


def test_our_units_only_fight_when_told_to() -> None:
    """Under attack, they stand as ordered."""
    arena = Arena({"marine": 1}, {"marine": 1}, 4.0)
    order = arena.orders(STOP)
    order = order._replace(kind=jnp.array([STOP, SWEEP]))
    units = arena.play(order, 60)[-1]
    assert float(units.hp[0]) < 45 and float(units.hp[1]) == 45


def sweeping(fight: Battle) -> Orders:
    """Both sides attack towards where the other one began."""
    n, count = fight.num_allies, len(fight.units)
    goals = np.where(
        (np.arange(count) < n)[:, None], fight.places[n:].mean(0), fight.places[:n].mean(0)
    )
    x, y = jnp.asarray(goals.T, jnp.float32)
    return Orders(jnp.full(count, SWEEP), x, y, jnp.full(count, NOBODY))


@pytest.mark.parametrize(
    ("name", "games", "steps"),
    [
        ("3m", 256, 40),
        pytest.param("8m", 128, 60, marks=pytest.mark.slow),
        pytest.param("2s3z", 128, 110, marks=pytest.mark.slow),
        pytest.param("bane_vs_bane", 48, 30, marks=pytest.mark.slow),
    ],
)
def test_equal_teams_are_equal(name: str, games: int, steps: int) -> None:
    """Under the same orders either side wins as often, within the interval of 99.9 %."""
    fight = battle(name)
    orders, n = sweeping(fight), fight.num_allies

    def play(key: Any) -> tuple[Any, Any]:
        step = lambda units, key: (fight.advance(units, orders, key), None)  # noqa: E731
        units, _ = jax.lax.scan(step, fight.start(), jax.random.split(key, steps))
        return (units.hp[:n] > 0).any(), (units.hp[n:] > 0).any()

    ours, theirs = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), games))
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    assert won + lost > games / 8
    assert abs(won - lost) < 3.3 * math.sqrt(won + lost)


USUAL = ("3s5z", "6h_vs_8z", "2c_vs_64zg")
"""Maps of the default run: a strip, a round place, routes and cliffs."""


@pytest.mark.parametrize(
    "name",
    [name if name in USUAL else pytest.param(name, marks=pytest.mark.slow) for name in MAPS],
)
def test_nobody_leaves_the_ground_or_stands_in_another(name: str) -> None:
    """Under random orders: all on walkable ground, and overlaps pass."""
    game = skirmish(name, "smac")
    fight, own = game.battle, game.battle.facts
    envs, steps = 8, 60

    def play(key: Any) -> Any:
        def step(state: Any, key: Any) -> tuple[Any, Any]:
            one, two = jax.random.split(key)
            state, _, over, late = game.step(state, at_random(game, state, one), two)
            fresh = game.reset(key)
            state = jax.tree.map(lambda a, b: jnp.where(over | late, a, b), fresh, state)
            return state, (state.units.x, state.units.y, state.units.hp > 0)

        return jax.lax.scan(step, game.reset(key), jax.random.split(key, steps))[1]

    x, y, alive = map(
        np.asarray, jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), envs))
    )
    flies = own.walks_cliffs.astype(bool)
    free = np.where(flies, fight.ground.over_cliffs[x.astype(int), y.astype(int)],
                    fight.ground.walkable[x.astype(int), y.astype(int)])  # fmt: skip
    assert free[alive].all()
    far = np.hypot(x[..., None] - x[..., None, :], y[..., None] - y[..., None, :])
    touch = own.separation[:, None] + own.separation[None]
    both = alive[..., None] & alive[..., None, :] & ~np.eye(len(flies), dtype=bool)
    both &= ~flies[:, None] & ~flies[None]
    deep = both & (far < 0.5 * touch)
    assert deep.sum() < 0.02 * max(both.sum(), 1)
    assert not (deep[:, 4:] & deep[:, 3:-1] & deep[:, 2:-2] & deep[:, 1:-3] & deep[:, :-4]).any()
