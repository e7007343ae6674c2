"""The simulator: neither side has an advantage between equal teams."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from optimised import optimised_jit
from smac_arena import attack_moves

from fp3o.envs.smac.maps import MAPS, unit_names
from fp3o.envs.smac.simulator.battle import battle_on
from fp3o.envs.smac.simulator.loop import simulate_step
from fp3o.envs.smac.simulator.random_start import draw_units
from fp3o.envs.smac.simulator.state import ATTACK_MOVE, NO_TARGET, Orders

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

    ours, theirs = optimised_jit(jax.vmap(simulate))(jax.random.split(jax.random.key(0), battles))
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    assert won + lost > battles / 8
    assert abs(won - lost) < 3.3 * math.sqrt(won + lost)


@pytest.mark.parametrize("name", usual(["protoss_5_vs_5", "terran_5_vs_5", "zerg_5_vs_5"], []))
def test_reflected_teams_are_equal(name: str) -> None:
    """Teams that are drawn and reflected win as often as their mirror image."""
    fight, count = battle_on(name), 10
    nowhere = jnp.zeros(count)
    orders = Orders(jnp.full(count, ATTACK_MOVE), nowhere, nowhere, jnp.full(count, NO_TARGET))

    def simulate(key: Any) -> tuple[Any, Any]:
        units = draw_units(fight, key)
        mirrored = jnp.allclose(jnp.sort(units.x[:5]), jnp.sort(32 - units.x[5:]), atol=1e-3)
        step = lambda units, key: (simulate_step(fight, units, orders, key), None)  # noqa: E731
        units, _ = jax.lax.scan(step, units, jax.random.split(key, 120))
        fighters = (units.hp > 0) & (fight.of(units).stats.heal == 0)
        return mirrored & fighters[:5].any(), mirrored & fighters[5:].any()

    ours, theirs = optimised_jit(jax.vmap(simulate))(jax.random.split(jax.random.key(0), 512))
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    assert won + lost > 100
    assert abs(won - lost) < 3.3 * math.sqrt(won + lost)
