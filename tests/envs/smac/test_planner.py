"""6h_vs_8z can be won: a planner that tries its plans in the simulator wins most battles."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from smac_planner import Planner

from fp3o.envs.smac.env import SmacEnv
from fp3o.envs.smac.simulator.battle import battle_on
from fp3o.envs.smac.units import UNIT_TYPES

BATTLES, MAX_STEPS = 8, 90
"""The map allows 150 steps; most victories of the planner take 50 to 70."""


def victories() -> int:
    """Number of battles that the planner wins."""
    env = SmacEnv("6h_vs_8z")
    end = Planner(env, BATTLES, seed=0).play(MAX_STEPS)[-1]
    return int(np.asarray(jax.vmap(env.episode_metrics)(end))[:, 0].sum())


def test_hydralisks_defeat_more_zealots() -> None:
    """While one leads the zealots, which are not faster, around the arena, the others shoot."""
    assert victories() >= 6


def test_zealots_of_a_wrong_speed_are_not_defeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above would fail: 3.15 cells is their speed in a second of a faster clock."""
    zealot = UNIT_TYPES["zealot"]
    monkeypatch.setitem(UNIT_TYPES, "zealot", replace(zealot, speed=1.4 * zealot.speed))
    monkeypatch.setattr("fp3o.envs.smac.env.battle_on", battle_on.__wrapped__)  # not the cached one
    assert victories() <= 1
