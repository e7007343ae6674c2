"""Observations, states and action masks of SMAC, in the layout of SMAC and in that of the paper.

`smac`: local observations and one state for all agents, as in the SMAC package. `paper`: MAPPO's
version of the environment, which the paper uses. It adds the last actions of all visible allies and
the agent's one-hot index, and has one state per agent; a dead agent's is zero except for the index.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.maps import unit_names
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Units
from fp3o.envs.smac.terrain import MAP_SIZE
from fp3o.envs.smac.units import SHOOT_RANGE, SIGHT_RANGE, UNIT_TYPES

FIRST_MOVE = 2
"""Index of the first move. Action 0 does nothing, for dead agents; action 1 stops."""

MOVE_DIRECTIONS = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])
"""North, south, east, west."""

FIRST_ATTACK = FIRST_MOVE + len(MOVE_DIRECTIONS)
"""Index of the attack on the first enemy."""


@dataclass(frozen=True, eq=False)
class ObservationBuilder:
    """Computes observations, states and action masks from the state of all units."""

    battle: Battle
    layout: str

    @cached_property
    def num_actions(self) -> int:
        """Number of actions per agent."""
        return FIRST_ATTACK + self.battle.num_units - self.battle.num_allies

    @cached_property
    def _types(self) -> tuple[np.ndarray, np.ndarray]:
        """One-hot types of allies `(a, b)` and enemies `(v, b)`, in SMAC's orders."""
        roster = self.battle.map
        return (
            _one_hots(unit_names(roster.allies), roster.types),
            _one_hots(unit_names(roster.enemies), roster.enemy_types),
        )

    @cached_property
    def _shields(self) -> tuple[int, int]:
        """Number of shield features of allies and of enemies: 1 if the side has shields."""
        n, shield = self.battle.num_allies, self.battle.stats.shield
        return int(shield[:n].any()), int(shield[n:].any())

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Lengths of an observation and of a state."""
        (ours, theirs), types = self._shields, len(self.battle.map.types)
        n, moves = self.battle.num_allies, len(MOVE_DIRECTIONS)
        enemies, actions = self.battle.num_units - n, self.num_actions
        ally, enemy, own = 5 + ours + types, 5 + theirs + types, 1 + ours + types
        if self.layout == "smac":
            state = n * (own + 3 + actions) + enemies * (enemy - 2)
            return moves + enemies * enemy + (n - 1) * ally + own, state
        obs = (n - 1) * (ally + actions) + enemies * enemy + moves + 4 + own + actions + n
        # A state adds positions of all units, cooldowns of allies and visibility of enemies.
        return obs, obs + (n - 1) * 3 + enemies * 3 + 2

    def action_mask(self, units: Units) -> Bool[Array, "a c"]:
        """Available actions of every agent."""
        n, free = self.battle.num_allies, self.battle.terrain.walkable
        x, y, alive = units.x[:n, None], units.y[:n, None], units.hp > 0
        to_x, to_y = (
            jnp.trunc(p + step).astype(int)
            for p, step in ((x, MOVE_DIRECTIONS[:, 0]), (y, MOVE_DIRECTIONS[:, 1]))
        )
        inside = (to_x >= 0) & (to_x < MAP_SIZE) & (to_y >= 0) & (to_y < MAP_SIZE)
        path = jnp.asarray(free)[jnp.clip(to_x, 0, MAP_SIZE - 1), jnp.clip(to_y, 0, MAP_SIZE - 1)]
        attacks = (self._distance(units)[:, n:] <= SHOOT_RANGE) & alive[None, n:]
        lives = alive[:n, None]
        return jnp.concatenate([~lives, lives, lives & inside & path, lives & attacks], 1)

    def build(
        self, units: Units, last_actions: Int[Array, " a"]
    ) -> tuple[Float[Array, "a f"], Float[Array, "a f2"]]:
        """Observations and states; `last_actions` are -1 before the first step."""
        action_mask = self.action_mask(units).astype(jnp.float32)
        acted = jax.nn.one_hot(last_actions, self.num_actions)
        if self.layout == "smac":
            state = self._smac_state(units, acted)
            return self._smac_obs(units, action_mask), jnp.broadcast_to(
                state, (self.battle.num_allies, state.size)
            )
        return self._paper_obs(units, action_mask, acted), self._paper_state(
            units, action_mask, acted
        )

    def _distance(self, units: Units) -> Float[Array, "a u"]:
        n = self.battle.num_allies
        dx, dy = units.x[None] - units.x[:n, None], units.y[None] - units.y[:n, None]
        return jnp.sqrt(dx * dx + dy * dy)

    def _relations(self, units: Units) -> tuple[Float[Array, "a u 3"], Bool[Array, "a u"]]:
        """Distance, x and y from every agent to all units, and which are alive and visible."""
        n = self.battle.num_allies
        distance = self._distance(units)
        away = [units.x[None] - units.x[:n, None], units.y[None] - units.y[:n, None]]
        relations = jnp.stack([distance, *away], -1) / SIGHT_RANGE
        return relations, (distance < SIGHT_RANGE) & (units.hp > 0)[None]

    def _health(self, units: Units) -> tuple[Array, Array]:
        """Health and shield of allies `(a, 1..2)` and enemies, as shares of their maximum."""
        n, stats = self.battle.num_allies, self.battle.stats
        both = jnp.stack([units.hp / stats.hp, units.shield / np.maximum(stats.shield, 1.0)], -1)
        ours, theirs = self._shields
        return both[:n, : 1 + ours], both[n:, : 1 + theirs]

    def _positions(self, units: Units) -> Float[Array, "u 2"]:
        """Positions relative to the centre of the map, in units of its size."""
        return (jnp.stack([units.x, units.y], -1) - MAP_SIZE / 2) / MAP_SIZE

    def _cooldowns(self, units: Units) -> Float[Array, "a 1"]:
        longest = [UNIT_TYPES[name].max_cooldown for name in unit_names(self.battle.map.allies)]
        return (units.cooldown[: len(longest)] / np.array(longest, np.float32))[:, None]

    def _smac_obs(self, units: Units, action_mask: Array) -> Float[Array, "a f"]:
        n = self.battle.num_allies
        where, visible = self._relations(units)
        (ours, theirs), (our_types, their_types) = self._health(units), self._types
        enemies = _join(action_mask[:, FIRST_ATTACK:, None], where[:, n:], theirs, their_types)
        allies = _join(jnp.ones((n, n, 1)), where[:, :n], ours, our_types)
        parts = [
            action_mask[:, FIRST_MOVE:FIRST_ATTACK],
            _flat(enemies * visible[:, n:, None]),
            _flat(_others(allies * visible[:, :n, None])),
            jnp.concatenate([ours, our_types], 1),
        ]
        return jnp.concatenate(parts, 1) * (units.hp[:n, None] > 0)

    def _smac_state(self, units: Units, acted: Array) -> Float[Array, " f2"]:
        n, (ours, theirs) = self.battle.num_allies, self._health(units)
        positions, (our_types, their_types) = self._positions(units), self._types
        alive = (units.hp > 0)[:, None]
        allies = [ours[:, :1], self._cooldowns(units), positions[:n], ours[:, 1:], our_types]
        enemies = [theirs[:, :1], positions[n:], theirs[:, 1:], their_types]
        rows = (
            jnp.concatenate(allies, 1) * alive[:n],
            jnp.concatenate(enemies, 1) * alive[n:],
            acted,
        )
        return jnp.concatenate([row.ravel() for row in rows])

    def _paper_obs(self, units: Units, action_mask: Array, acted: Array) -> Float[Array, "a f"]:
        n = self.battle.num_allies
        where, visible = self._relations(units)
        (ours, theirs), (our_types, their_types) = self._health(units), self._types
        allies = _join(jnp.ones((n, n, 1)), where[:, :n], ours, our_types, acted)
        enemies = _join(action_mask[:, FIRST_ATTACK:, None], where[:, n:], theirs, their_types)
        own = [ours, our_types, acted]
        return _paper_rows(units, action_mask, (allies, enemies), own, visible)

    def _paper_state(self, units: Units, action_mask: Array, acted: Array) -> Float[Array, "a f"]:
        """The paper's states: as the observations, with all living units, positions, cooldowns."""
        n, count = self.battle.num_allies, self.battle.num_units
        where, visible = self._relations(units)
        alive = jnp.broadcast_to(units.hp[None] > 0, (n, count))
        (ours, theirs), (our_types, their_types) = self._health(units), self._types
        positions = self._positions(units)
        in_range = visible[..., None].astype(jnp.float32)
        own = [ours, positions[:n], our_types, acted]
        allies = _join(in_range[:, :n], where[:, :n], self._cooldowns(units), *own)
        enemies = _join(
            action_mask[:, FIRST_ATTACK:, None], where[:, n:], in_range[:, n:], theirs, their_types,
            positions[n:],
        )  # fmt: skip
        return _paper_rows(units, action_mask, (allies, enemies), own, alive)


def _paper_rows(
    units: Units, action_mask: Array, features: tuple[Array, Array], own: list[Any], shown: Array
) -> Float[Array, "a f"]:
    """Allies, enemies, moves, own features; zero for dead agents except for the one-hot index."""
    n, (allies, enemies) = len(action_mask), features
    agent = jnp.asarray(np.eye(1, 4)).repeat(n, 0)
    parts = [
        _flat(_others(allies * shown[:, :n, None])),
        _flat(enemies * shown[:, n:, None]),
        action_mask[:, FIRST_MOVE:FIRST_ATTACK],
        jnp.concatenate([agent, *own], 1),
    ]
    body = jnp.concatenate(parts, 1) * (units.hp[:n, None] > 0)
    return jnp.concatenate([body, jnp.eye(n)], 1)


def _one_hots(names: list[str], order: tuple[str, ...]) -> np.ndarray:
    rows = [[float(name == other) for other in order] for name in names]
    return np.array(rows, np.float32).reshape(len(names), len(order))


def _join(*parts: Any) -> Array:
    """Features `(a, u, f)` side by side; those equal for all agents are given as `(u, f)`."""
    rows = next(part.shape[0] for part in parts if part.ndim == 3)
    full = [jnp.broadcast_to(part, (rows, *part.shape[-2:])) for part in parts]
    return jnp.concatenate(full, -1)


def _others(x: Float[Array, "a a f"]) -> Float[Array, "a b f"]:
    """The features of all agents except the agent itself."""
    n = x.shape[0]
    before = np.arange(n - 1)[None] < np.arange(n)[:, None]
    return jnp.where(before[..., None], x[:, :-1], x[:, 1:])


def _flat(x: Float[Array, "a u f"]) -> Float[Array, "a g"]:
    return x.reshape(x.shape[0], -1)
