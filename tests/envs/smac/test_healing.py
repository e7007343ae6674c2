"""Terran units of SMACv2: marauders, medivacs; and whom enemies of random teams pursue."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from smac_arena import facing, hits

from fp3o.envs.smac.random_env import random_teams_env
from fp3o.envs.smac.simulator.loop import simulate_step
from fp3o.envs.smac.simulator.state import ATTACK, ATTACK_MOVE, NO_TARGET, STOP, Orders, Units

RATE, COST, GAIN = 9 / 16, 0.33, 0.5625 / 16
"""Health per loop of healing, energy per point of health, energy gained per loop."""


def energy(units: Units) -> np.ndarray:
    """The energy of all units."""
    return np.asarray(units.energy)


def test_marauders_hit_armoured_units_harder() -> None:
    """Every 25 loops (1.5 s and the mean noise) 20 less 1 of armour, and 10 to a marine."""
    arena = facing({"marauder": 2}, {"marauder": 1, "marine": 1}, 6.0)
    arena.put(x=[12.0, 12.0, 17.0, 17.0], y=[12.0, 20.0, 12.0, 20.0])
    order = arena.orders(ATTACK)._replace(target=jnp.array([0, 1, NO_TARGET, NO_TARGET]))
    seen = arena.run(order, 60)
    # A missile flies 20 cells per second: 5 cells in four loops, after the loop of its launch.
    assert hits(seen, 2) == [(4, 19.0), (29, 19.0), (54, 19.0)]
    assert hits(seen, 3) == [(4, 10.0), (29, 10.0), (54, 10.0)]


def test_only_marines_hit_medivacs() -> None:
    """Grenades cannot reach units in the air; a marine does 6 less 1 of armour."""
    arena = facing({"marauder": 1}, {"medivac": 1, "marauder": 1}, 5.0)
    assert hits(arena.run(arena.orders(ATTACK, 0), 40), 1) == []
    assert float(arena.units.x[0]) == pytest.approx(13.5, abs=0.1)  # it does not even follow
    arena = facing({"marine": 1}, {"medivac": 1}, 4.0)
    assert {loss for _, loss in hits(arena.run(arena.orders(ATTACK, 0), 40), 1)} == {5.0}


def test_marauders_on_attack_move_ignore_medivacs() -> None:
    """They take the nearest unit on the ground."""
    arena = facing({"marauder": 1}, {"medivac": 1, "marine": 1}, 4.0)
    arena.put(x=[12.0, 14.0, 17.0])
    units = arena.run(arena.orders(ATTACK_MOVE, x=20.0, y=16.0), 10)[-1]
    assert units.target[0] == 1 and units.hp[2] < 45 and units.hp[1] == 150


def test_a_medivac_heals_for_energy() -> None:
    """9 points per second for 0.33 energy each, up to full health; energy returns at 0.5625/s."""
    arena = facing({"medivac": 1, "marine": 1}, {"marine": 1}, 20.0)
    arena.put(x=[6.0, 9.0, 26.0], hp=[150.0, 20.0, 45.0])
    order = arena.orders(STOP)
    order = order._replace(kind=order.kind.at[0].set(ATTACK), target=order.target.at[0].set(1))
    seen = arena.run(order, 60)
    for loops in (1, 16, 40):
        assert seen[loops].hp[1] == pytest.approx(20 + RATE * loops, abs=1e-3)
        assert energy(seen[loops])[0] == pytest.approx(50 - loops * (COST * RATE - GAIN), abs=1e-3)
    assert seen[-1].hp[1] == 45
    assert energy(seen[-1])[0] == pytest.approx(50 - COST * 25 + 60 * GAIN, abs=1e-3)


def test_who_is_healed() -> None:
    """No machines, no enemies, nobody dead; one medivac per patient; none without energy."""
    arena = facing({"medivac": 3, "marine": 2}, {"marine": 1}, 20.0)
    arena.put(x=[6.0, 7.0, 8.0, 9.0, 9.0, 26.0], y=[14.0, 16.0, 18.0, 15.0, 17.0, 16.0])
    arena.put(hp=[100.0, 150.0, 150.0, 10.0, 0.0, 5.0], energy=[50.0, 50.0, 0.0, 0, 0, 0])
    order = arena.orders(STOP)
    kinds = jnp.array([ATTACK, ATTACK, ATTACK, STOP, STOP, STOP])
    seen = arena.run(order._replace(kind=kinds, target=jnp.array([3, 3, 4, 0, 0, 0])), 16)
    np.testing.assert_allclose(seen[-1].hp, [100, 150, 150, 19, 0, 5], atol=1e-3)
    assert energy(seen[-1])[0] < 50 < energy(seen[-1])[1]
    order = order._replace(kind=kinds, target=jnp.array([1, 3, 3, 0, 0, 0]))
    arena.put(energy=[50.0, 0.0, 0.0, 0, 0, 0])
    seen = arena.run(order, 16)
    assert seen[-1].hp[0] == 100 and seen[-1].hp[3] == pytest.approx(19 + 16 * GAIN / COST, abs=0.2)


def test_an_ordered_medivac_follows_its_patient() -> None:
    """Until it is within four cells, edge to edge, and over other units."""
    arena = facing({"medivac": 1, "marine": 1, "marauder": 1}, {"marine": 1}, 20.0)
    arena.put(x=[6.0, 16.0, 8.0, 26.0], hp=[150.0, 20.0, 125.0, 45.0], y=[16.0] * 4)
    order = arena.orders(STOP)
    order = order._replace(kind=order.kind.at[0].set(ATTACK), target=order.target.at[0].set(1))
    seen = arena.run(order, 64)
    assert seen[16].x[0] == pytest.approx(6 + 2.75, abs=1e-2) and seen[16].hp[1] == 20
    assert seen[-1].x[0] == pytest.approx(16 - 4 - 0.75 - 0.375, abs=0.2)
    assert seen[-1].hp[1] > 20 and seen[-1].x[2] == 8


def test_enemy_medivacs_heal_the_weakest_in_sight_and_stand_otherwise() -> None:
    """The smallest share of health within six cells; they do not follow an attack-move."""
    arena = facing({"marine": 1}, {"medivac": 1, "marine": 3}, 20.0)
    arena.put(x=[2.0, 16.0, 18.0, 16.0, 29.0], y=[2.0, 16.0, 16.0, 20.0, 29.0])
    arena.put(hp=[45.0, 150.0, 30.0, 20.0, 10.0])
    calm = jnp.array([STOP, ATTACK_MOVE, STOP, STOP, STOP])
    order = arena.orders(STOP)._replace(kind=calm)
    seen = arena.run(order, 100)
    assert seen[16].hp.tolist() == pytest.approx([45, 150, 30, 29, 10], abs=1e-3)
    assert seen[-1].hp.tolist() == pytest.approx([45, 150, 45, 45, 10], abs=1e-3)
    assert (seen[-1].x[1], seen[-1].y[1]) == (16, 16) and seen[-1].target[1] == NO_TARGET


def test_enemies_of_random_teams_pursue_one_agent_until_it_is_dead() -> None:
    """However near others are. They choose the nearest, however far."""
    env = random_teams_env("zerg_2_vs_1", "smac")
    # A zergling pursues a hydralisk across the map, past another one.
    units = env.battle.with_types(jnp.array([1, 1, 0])).units_at(
        jnp.array([20.0, 14.0, 28.0]), jnp.array([16.0, 19.0, 16.0])
    )
    step = jax.jit(lambda units, order: simulate_step(env.battle, units, order, jax.random.key(1)))
    away = Orders(
        jnp.array([1, STOP, ATTACK_MOVE]), jnp.array([2.0, 0, 0]), jnp.array([16.0, 0, 0]),
        jnp.full(3, NO_TARGET),
    )  # fmt: skip
    nearer = 0
    for _ in range(12):
        units: Units = step(units, away)
        assert units.target[2] == 0
        gap = jnp.hypot(units.x[:2] - units.x[2], units.y[:2] - units.y[2])
        nearer += int(gap[1] < gap[0])
    assert nearer >= 2
    units = step(units._replace(hp=units.hp.at[0].set(0.0)), away)
    assert units.target[2] == 1


def test_a_side_of_medivacs_is_beaten() -> None:
    """If both sides have nothing else left, ours."""
    env = random_teams_env("terran_2_vs_2", "smac")
    state = env.reset(jax.random.key(0))
    battle = env.battle.with_types(jnp.array([0, 2, 0, 2]))
    units = battle.units_at(jnp.array([4.0, 4.0, 28.0, 28.0]), jnp.array([4.0, 20.0, 4.0, 20.0]))
    step = jax.jit(env.step)
    stop = jnp.ones((2, 1), int)
    for dead, over, won in (((2,), True, 1), ((0,), True, 0), ((0, 2), True, 0), ((3,), False, 0)):
        hp = units.hp.at[jnp.array(dead)].set(0.0)
        action = stop.at[0].set(int(0 not in dead))
        new, reward, *ends = step(
            state._replace(units=units._replace(hp=hp)), action, jax.random.key(0)
        )
        assert (bool(ends[0]), int(env.episode_metrics(new)[0])) == (over, won)
        assert (float(reward[0]) > 0) == bool(won)
