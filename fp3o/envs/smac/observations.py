"""What the agents of a battle see and may do, in SMAC's own layout and in the paper's.

`smac`: own observation and one state for all, as the package gives them. `paper`: with the last
actions of everyone in sight, the agent's own one-hot, and a state for each agent that is all zeros
but for the one-hot when it is dead (MAPPO's version of the environment, which the paper uses).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.maps import kinds
from fp3o.envs.smac.simulator import Battle, Units
from fp3o.envs.smac.terrain import SIZE
from fp3o.envs.smac.units import UNITS

SIGHT, SHOT = 9.0, 6.0
"""How far every agent sees, and attacks may be ordered, whatever its kind."""

STILL = 2
"""Actions that do not move: nothing, for the dead, and stop."""

HEADINGS = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])
"""North, south, east, west."""

FIRST = STILL + len(HEADINGS)
"""The first attack."""


@dataclass(frozen=True, eq=False)
class Eyes:
    """Turns units into observations."""

    battle: Battle
    layout: str

    @cached_property
    def num_actions(self) -> int:
        """Choices of an agent."""
        return FIRST + len(self.battle.units) - self.battle.num_allies

    @cached_property
    def _types(self) -> tuple[np.ndarray, np.ndarray]:
        """One-hots of the allies' kinds `(a, b)` and the enemies' `(v, b)`; SMAC's orders."""
        roster = self.battle.map
        return (
            _one_hots(kinds(roster.allies), roster.types),
            _one_hots(kinds(roster.enemies), roster.enemy_types),
        )

    @cached_property
    def _shields(self) -> tuple[int, int]:
        """Whether shields are shown: 1 for a side that has them."""
        n, shield = self.battle.num_allies, self.battle.facts.shield
        return int(shield[:n].any()), int(shield[n:].any())

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Lengths of an observation and of a state."""
        (ours, theirs), types = self._shields, len(self.battle.map.types)
        n, moves = self.battle.num_allies, len(HEADINGS)
        enemies, acts = len(self.battle.units) - n, self.num_actions
        ally, enemy, own = 5 + ours + types, 5 + theirs + types, 1 + ours + types
        if self.layout == "smac":
            state = n * (own + 3 + acts) + enemies * (enemy - 2)
            return moves + enemies * enemy + (n - 1) * ally + own, state
        obs = (n - 1) * (ally + acts) + enemies * enemy + moves + 4 + own + acts + n
        # A state adds where everyone is, and cooldowns and who is in sight to what is seen.
        return obs, obs + (n - 1) * 3 + enemies * 3 + 2

    def action_mask(self, units: Units) -> Bool[Array, "a c"]:
        """What every agent may do."""
        n, free = self.battle.num_allies, self.battle.ground.walkable
        x, y, alive = units.x[:n, None], units.y[:n, None], units.hp > 0
        to_x, to_y = (
            jnp.trunc(p + step).astype(int)
            for p, step in ((x, HEADINGS[:, 0]), (y, HEADINGS[:, 1]))
        )
        inside = (to_x >= 0) & (to_x < SIZE) & (to_y >= 0) & (to_y < SIZE)
        path = jnp.asarray(free)[jnp.clip(to_x, 0, SIZE - 1), jnp.clip(to_y, 0, SIZE - 1)]
        shots = (self._far(units)[:, n:] <= SHOT) & alive[None, n:]
        lives = alive[:n, None]
        return jnp.concatenate([~lives, lives, lives & inside & path, lives & shots], 1)

    def look(
        self, units: Units, last: Int[Array, " a"]
    ) -> tuple[Float[Array, "a f"], Float[Array, "a f2"]]:
        """Observations and states; `last` are the last actions, -1 before the first."""
        action_mask = self.action_mask(units).astype(jnp.float32)
        acted = jax.nn.one_hot(last, self.num_actions)
        if self.layout == "smac":
            state = self._common_state(units, acted)
            return self._plain_obs(units, action_mask), jnp.broadcast_to(
                state, (self.battle.num_allies, state.size)
            )
        return self._rich(units, action_mask, acted, whole=False), self._rich(
            units, action_mask, acted, whole=True
        )

    def _far(self, units: Units) -> Float[Array, "a u"]:
        n = self.battle.num_allies
        dx, dy = units.x[None] - units.x[:n, None], units.y[None] - units.y[:n, None]
        return jnp.sqrt(dx * dx + dy * dy)

    def _relations(self, units: Units) -> tuple[Float[Array, "a u 3"], Bool[Array, "a u"]]:
        """Distance, x and y from every agent to everyone, and who is alive and in sight."""
        n = self.battle.num_allies
        far = self._far(units)
        away = [units.x[None] - units.x[:n, None], units.y[None] - units.y[:n, None]]
        return jnp.stack([far, *away], -1) / SIGHT, (far < SIGHT) & (units.hp > 0)[None]

    def _bodies(self, units: Units) -> tuple[Array, Array]:
        """Health and shield of allies `(a, 1..2)` and of enemies, as parts of the whole."""
        n, own = self.battle.num_allies, self.battle.facts
        both = jnp.stack([units.hp / own.hp, units.shield / np.maximum(own.shield, 1.0)], -1)
        ours, theirs = self._shields
        return both[:n, : 1 + ours], both[n:, : 1 + theirs]

    def _centred(self, units: Units) -> Float[Array, "u 2"]:
        return (jnp.stack([units.x, units.y], -1) - SIZE / 2) / SIZE

    def _waits(self, units: Units) -> Float[Array, "a 1"]:
        most = [UNITS[kind].max_cooldown for kind in kinds(self.battle.map.allies)]
        return (units.cooldown[: len(most)] / np.array(most, np.float32))[:, None]

    def _plain_obs(self, units: Units, action_mask: Array) -> Float[Array, "a f"]:
        n = self.battle.num_allies
        where, seen = self._relations(units)
        (ours, theirs), (own_type, their_type) = self._bodies(units), self._types
        enemies = _join(action_mask[:, FIRST:, None], where[:, n:], theirs, their_type)
        allies = _join(jnp.ones((n, n, 1)), where[:, :n], ours, own_type)
        parts = [
            action_mask[:, STILL:FIRST],
            _flat(enemies * seen[:, n:, None]),
            _flat(_others(allies * seen[:, :n, None])),
            jnp.concatenate([ours, own_type], 1),
        ]
        return jnp.concatenate(parts, 1) * (units.hp[:n, None] > 0)

    def _common_state(self, units: Units, acted: Array) -> Float[Array, " f2"]:
        n, (ours, theirs) = self.battle.num_allies, self._bodies(units)
        place, (own_type, their_type) = self._centred(units), self._types
        lives = (units.hp > 0)[:, None]
        allies = [ours[:, :1], self._waits(units), place[:n], ours[:, 1:], own_type]
        enemies = [theirs[:, :1], place[n:], theirs[:, 1:], their_type]
        rows = (
            jnp.concatenate(allies, 1) * lives[:n],
            jnp.concatenate(enemies, 1) * lives[n:],
            acted,
        )
        return jnp.concatenate([row.ravel() for row in rows])

    def _rich(
        self, units: Units, action_mask: Array, acted: Array, whole: bool
    ) -> Float[Array, "a f"]:
        """The paper's observations, or its states: `whole`, with all units in sight or not."""
        n, count = self.battle.num_allies, len(self.battle.units)
        where, seen = self._relations(units)
        shown = jnp.broadcast_to(units.hp[None] > 0, (n, count)) if whole else seen
        (ours, theirs), (own_type, their_type) = self._bodies(units), self._types
        place = self._centred(units)
        visible = seen[..., None].astype(jnp.float32)
        ally: list[Any] = [visible[:, :n] if whole else jnp.ones((n, n, 1)), where[:, :n]]
        enemy: list[Any] = [action_mask[:, FIRST:, None], where[:, n:]]
        own: list[Any] = [jnp.asarray(np.eye(1, 4)).repeat(n, 0), ours]
        if whole:
            ally += [self._waits(units), ours, place[:n], own_type, acted]
            enemy += [visible[:, n:], theirs, their_type, place[n:]]
            own += [place[:n], own_type, acted]
        else:
            ally += [ours, own_type, acted]
            enemy += [theirs, their_type]
            own += [own_type, acted]
        parts = [
            _flat(_others(_join(*ally) * shown[:, :n, None])),
            _flat(_join(*enemy) * shown[:, n:, None]),
            action_mask[:, STILL:FIRST],
            jnp.concatenate(own, 1),
        ]
        body = jnp.concatenate(parts, 1) * (units.hp[:n, None] > 0)
        return jnp.concatenate([body, jnp.eye(n)], 1)


def _one_hots(names: list[str], order: tuple[str, ...]) -> np.ndarray:
    rows = [[float(name == kind) for kind in order] for name in names]
    return np.array(rows, np.float32).reshape(len(names), len(order))


def _join(*parts: Any) -> Array:
    """Features `(a, u, f)` side by side; what everyone sees alike is given as `(u, f)`."""
    rows = next(part.shape[0] for part in parts if part.ndim == 3)
    full = [jnp.broadcast_to(part, (rows, *part.shape[-2:])) for part in parts]
    return jnp.concatenate(full, -1)


def _others(x: Float[Array, "a a f"]) -> Float[Array, "a b f"]:
    """Without oneself."""
    n = x.shape[0]
    before = np.arange(n - 1)[None] < np.arange(n)[:, None]
    return jnp.where(before[..., None], x[:, :-1], x[:, 1:])


def _flat(x: Float[Array, "a u f"]) -> Float[Array, "a g"]:
    return x.reshape(x.shape[0], -1)
