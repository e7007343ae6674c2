"""Battles on flat ground, simulated loop by loop."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.envs.smac.maps import Map, UnitGroup
from fp3o.envs.smac.rules import DEFAULT_RULES, Rules
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.loop import apply_orders, simulate_loop
from fp3o.envs.smac.simulator.state import ATTACK_MOVE, NO_TARGET, STOP, Orders, Units

MIDDLE = 16.0


class Arena:
    """A battle simulated loop by loop, without noise."""

    def __init__(self, roster: Map, rules: Rules = DEFAULT_RULES):
        self.battle = Battle("arena", roster, rules)
        self.units = self.battle.initial_units()
        self._loop = jax.jit(partial(simulate_loop, self.battle))

    def orders(self, kind: int, target: int = NO_TARGET, x: float = 0.0, y: float = 0.0) -> Orders:
        """The same order for all allies; enemies stand still."""
        n, count = self.battle.num_allies, len(self.battle.units)
        row = lambda value, rest: jnp.array([value] * n + [rest] * (count - n))  # noqa: E731
        return Orders(row(kind, STOP), row(x, 0.0), row(y, 0.0), row(target, NO_TARGET))

    def run(self, orders: Orders, loops: int) -> list[Units]:
        """Simulate a number of loops; the first state is the one before them."""
        self.units = apply_orders(self.battle, self.units, orders)
        seen, calm = [self.units], jnp.zeros(len(self.battle.units))
        for _ in range(loops):
            self.units = self._loop(self.units, orders, calm)
            seen.append(self.units)
        return jax.tree.map(np.asarray, seen)

    def put(self, **values: Any) -> None:
        """Change the state of the units."""
        new = {name: jnp.asarray(x, getattr(self.units, name).dtype) for name, x in values.items()}
        self.units = self.units._replace(**new)


def facing(
    ours: dict[str, int], theirs: dict[str, int], apart: float, rules: Rules = DEFAULT_RULES
) -> Arena:
    """Two teams on flat ground."""
    left, right = (
        tuple(UnitGroup(unit, count, (x, MIDDLE)) for unit, count in side.items())
        for side, x in ((ours, MIDDLE - apart / 2), (theirs, MIDDLE + apart / 2))
    )
    return Arena(Map(left, right, (MIDDLE, MIDDLE), 100, "flat"), rules)


def hits(seen: list[Units], unit: int) -> list[tuple[int, float]]:
    """Loops at which a unit lost health or shield, and how much."""
    left = [float(u.hp[unit] + u.shield[unit]) for u in seen]
    losses = -np.diff(left)
    return [(i, round(float(loss), 3)) for i, loss in enumerate(losses) if loss > 0.1]


def attack_moves(fight: Battle) -> Orders:
    """Both sides attack-move to the initial positions of the other."""
    n, count = fight.num_allies, len(fight.units)
    positions = fight.initial_positions
    goals = np.where((np.arange(count) < n)[:, None], positions[n:].mean(0), positions[:n].mean(0))
    x, y = jnp.asarray(goals.T, jnp.float32)
    return Orders(jnp.full(count, ATTACK_MOVE), x, y, jnp.full(count, NO_TARGET))
