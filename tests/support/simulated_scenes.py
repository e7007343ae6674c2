"""The scenes of `examples/starcraft2_targets.py` in the simulator instead of the game."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from starcraft2_game import Frame, Order, Point, Unit
from starcraft2_targets import GOAL

from fp3o.envs.smac.maps import Map, UnitGroup
from fp3o.envs.smac.rules import Rules
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.loop import apply_orders, simulate_loop
from fp3o.envs.smac.simulator.state import (
    ATTACK,
    ATTACK_MOVE,
    MOVE,
    NO_TARGET,
    STOP,
    Orders,
    Units,
)

TEAMS = {"3s_vs_3z": ("stalker", "zealot"), "3m": ("marine", "marine")}
EAST = (23.0, 16.0)


@cache
def compiled(units: tuple[str, str], sizes: tuple[int, int], rules: Rules) -> tuple[Battle, Any]:
    """A battle on flat ground, and one loop of it."""
    ours, theirs = (
        (UnitGroup(unit, size, point),)
        for unit, size, point in zip(units, sizes, (GOAL, EAST), strict=True)
    )
    battle = Battle("scene", Map(ours, theirs, GOAL, 100, "flat"), rules)

    def loop(units: Units, orders: Orders) -> Units:
        calm = jnp.zeros(len(battle.units))
        return simulate_loop(battle, apply_orders(battle, units, orders), orders, calm)

    return battle, jax.jit(loop)


class SimulatedGame(AbstractContextManager[Any]):
    """Scenes under some rules."""

    version = "the simulator"

    def __init__(self, rules: Rules, map_name: str) -> None:
        self._rules, self._teams = rules, TEAMS[map_name]

    def __exit__(self, *error: object) -> None:
        pass

    def start(self, enemies: int, places: Sequence[Point]) -> Frame:
        """Enemies stand on the right, the second one two cells to the south."""
        self._battle, self._loop = compiled(self._teams, (len(places), enemies), self._rules)
        x = [EAST[0] + place[0] for place in places] + [EAST[0]] * enemies
        y = [EAST[1] + place[1] for place in places] + [EAST[1] - 2.0 * i for i in range(enemies)]
        start = self._battle.initial_units()
        self._units = start._replace(x=jnp.array(x, jnp.float32), y=jnp.array(y, jnp.float32))
        return self._frame()

    def step(self, orders: Sequence[Order]) -> Frame:
        enemies = len(self._battle.units) - len(orders)
        rows = [*map(simulated_order, orders), *[(ATTACK_MOVE, *GOAL, NO_TARGET)] * enemies]
        kind, x, y, target = (jnp.array(column) for column in zip(*rows, strict=True))
        self._units = self._loop(self._units, Orders(kind, x, y, target))
        return self._frame()

    def _frame(self) -> Frame:
        now, n = self._units, self._battle.num_allies
        x, y, hp, shield = (np.asarray(part) for part in (now.x, now.y, now.hp, now.shield))
        columns = x, y, self._battle.stats.radius, hp + shield
        units = [Unit(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        return Frame(units[n:], units[:n])


def simulated_order(order: Order) -> tuple[int, float, float, int]:
    """Kind, destination and target."""
    if order is None:
        return STOP, 0.0, 0.0, NO_TARGET
    return (ATTACK, 0.0, 0.0, order) if isinstance(order, int) else (MOVE, *order, NO_TARGET)


def simulated(rules: Rules) -> Any:
    """Opens games under some rules."""
    return partial(SimulatedGame, rules)
