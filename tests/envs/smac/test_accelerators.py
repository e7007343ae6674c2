"""The simulator: programs for accelerators, written otherwise, simulate the same."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from smac_arena import attack_moves, facing

from fp3o.envs.smac.env import smac_env
from fp3o.envs.smac.simulator import collisions, geometry, loop, targeting
from fp3o.envs.smac.simulator.battle import Battle, battle_on
from fp3o.envs.smac.simulator.loop import simulate_step
from fp3o.envs.smac.simulator.state import ATTACK, NO_TARGET, STOP, Orders, Units
from fp3o.envs.vectorise import VmapEnv

BATTLES = ["5m_vs_6m", "1c3s5z", "healers", "more healers", "bane_vs_bane", "2c_vs_64zg"]
STEPS = 12
TEAM = {"marine": 4, "medivac": 2}


def heal_far_ally(fight: Battle) -> tuple[Units, Orders]:
    """Healers get an order to heal an ally whose index no enemy has; others stand still."""
    units, healers = fight.initial_units(), fight.stats.heal > 0
    kind = jnp.where(healers, ATTACK, STOP).astype(jnp.int32)
    target = jnp.where(healers, 3, NO_TARGET).astype(jnp.int32)
    units = units._replace(hp=units.hp.at[3].set(20.0), x=units.x.at[3].add(-8.0))
    return units, Orders(kind, units.x, units.y, target)


def battle_after_some_steps(name: str) -> Any:
    """Units in the middle of a battle."""
    if "healers" in name:
        enemies = {"marine": 2} if name == "more healers" else TEAM
        fight = facing(TEAM, enemies, 3.0).battle
    else:
        fight = battle_on(name)
    units, orders = fight.initial_units(), attack_moves(fight)
    if name == "more healers":
        units, orders = heal_far_ally(fight)
    keys = jax.random.split(jax.random.key(0), STEPS)
    step = lambda units, key: (simulate_step(fight, units, orders, key), None)  # noqa: E731
    return jax.device_get(jax.jit(lambda: jax.lax.scan(step, units, keys)[0])()._asdict())


@pytest.mark.parametrize("name", BATTLES)
def test_all_backends_simulate_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gathers instead of masks, columns instead of rows, two loops per turn."""
    expected = battle_after_some_steps(name)
    for module in (geometry, collisions, loop, targeting):
        monkeypatch.setattr(module, "splits_into_kernels", lambda: True)
    found = battle_after_some_steps(name)
    for field, value in expected.items():
        if value is not None:
            np.testing.assert_allclose(found[field], value, rtol=1e-3, atol=1e-3, err_msg=field)


def test_battles_run_in_double_precision() -> None:
    with jax.enable_x64(True):
        env = VmapEnv(smac_env("3m", "paper"), 2)
        state, _ = jax.jit(env.reset)(jax.random.key(0))
        _, now = jax.jit(env.step)(state, np.ones((2, 3, 1), np.int32))
    assert np.isfinite(now.obs).all()
