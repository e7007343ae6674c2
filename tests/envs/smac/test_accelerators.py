"""The simulator: programs for accelerators, written otherwise, simulate the same."""

from typing import Any

import jax
import numpy as np
import pytest
from smac_arena import attack_moves, facing

from fp3o.envs.smac.simulator import collisions, geometry, loop, targeting
from fp3o.envs.smac.simulator.battle import battle_on
from fp3o.envs.smac.simulator.loop import simulate_step

STEPS = 12
TEAM = {"marine": 4, "medivac": 2}


def battle_after_some_steps(name: str) -> Any:
    """Units in the middle of a battle."""
    fight = facing(TEAM, TEAM, 6.0).battle if name == "healers" else battle_on(name)
    orders, keys = attack_moves(fight), jax.random.split(jax.random.key(0), STEPS)
    step = lambda units, key: (simulate_step(fight, units, orders, key), None)  # noqa: E731
    units = jax.jit(lambda: jax.lax.scan(step, fight.initial_units(), keys)[0])()
    return jax.device_get(units._asdict())


@pytest.mark.parametrize("name", ["5m_vs_6m", "1c3s5z", "healers", "bane_vs_bane", "2c_vs_64zg"])
def test_all_backends_simulate_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gathers instead of masks, columns instead of rows, two loops per turn."""
    expected = battle_after_some_steps(name)
    for module in (geometry, collisions, loop, targeting):
        monkeypatch.setattr(module, "splits_into_kernels", lambda: True)
    found = battle_after_some_steps(name)
    for field, value in expected.items():
        if value is not None:
            np.testing.assert_allclose(found[field], value, rtol=1e-3, atol=1e-3, err_msg=field)
