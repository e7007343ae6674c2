"""Observations, states and action masks of SMAC, in the layout of SMAC and in that of the paper.

`smac`: local observations and one state for all agents, as in the SMAC package. `paper`: MAPPO's
version of the environment, which the paper uses. It adds the last actions of all visible allies and
the agent's one-hot index, and has one state per agent; a dead agent's is zero except for the index.

With random teams, ranges depend on the unit type and agents observe where they are, as in SMACv2.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.adjacency import ObservedAgents
from fp3o.envs.smac.actions import (
    FIRST_ATTACK,
    FIRST_MOVE,
    MOVE_DIRECTIONS,
    available_actions,
    distances,
    num_actions,
    ranges,
)
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import Units
from fp3o.envs.smac.terrain import MAP_SIZE


@dataclass(frozen=True, eq=False)
class ObservationBuilder:
    """Computes observations, states and action masks from the state of all units."""

    battle: Battle
    layout: str

    @cached_property
    def num_actions(self) -> int:
        """Number of actions per agent."""
        return num_actions(self.battle)

    def _of(self, units: Units) -> "ObservationBuilder":
        """The builder for the teams of an episode."""
        return self if units.kind is None else replace(self, battle=self.battle.of(units))

    @cached_property
    def _types(self) -> tuple[Any, Any]:
        """One-hot types of allies `(a, b)` and enemies `(v, b)`, in SMAC's orders."""
        battle, n = self.battle, self.battle.num_allies
        ours, theirs = (
            battle.by_unit(_one_hots(battle.unit_types, order))
            for order in (battle.map.types, battle.map.enemy_types)
        )
        return ours[:n], theirs[n:]

    @cached_property
    def _shields(self) -> tuple[int, int]:
        """Number of shield features of allies and of enemies: 1 if the side has shields."""
        shield = self.battle.type_stats.shield
        ours, theirs = (int(shield[kinds].any()) for kinds in self.battle.side_kinds)
        return ours, theirs

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Lengths of an observation and of a state."""
        (ours, theirs), types = self._shields, len(self.battle.map.types)
        n, moves = self.battle.num_allies, len(MOVE_DIRECTIONS)
        enemies, actions = self.battle.num_units - n, self.num_actions
        ally, enemy, own = 5 + ours + types, 5 + theirs + types, 1 + ours + types
        position = 2 if self.battle.map.teams else 0
        if self.layout == "smac":
            state = n * (own + 3 + actions) + enemies * (enemy - 2)
            return moves + enemies * enemy + (n - 1) * ally + own + position, state
        obs = (n - 1) * (ally + actions) + enemies * enemy + moves + 4 + own + actions + n
        # A state adds positions of all units, cooldowns of allies and visibility of enemies.
        return obs + position, obs + (n - 1) * 3 + enemies * 3 + 2

    @cached_property
    def observed_allies(self) -> ObservedAgents:
        """Where observations say which allies an agent sees."""
        (ours, theirs), types = self._shields, len(self.battle.map.types)
        ally, enemy = 5 + ours + types, 5 + theirs + types
        if self.layout == "smac":
            enemies = self.battle.num_units - self.battle.num_allies
            return ObservedAgents(len(MOVE_DIRECTIONS) + enemies * enemy, ally)
        return ObservedAgents(0, ally + self.num_actions)

    def action_mask(self, units: Units) -> Bool[Array, "a c"]:
        """Available actions of every agent."""
        return available_actions(self.battle.of(units), units)

    def build(
        self, units: Units, last_actions: Int[Array, " a"]
    ) -> tuple[Float[Array, "a f"], Float[Array, "a f2"]]:
        """Observations and states; `last_actions` are -1 before the first step."""
        return self._of(units)._build(units, last_actions)

    def _build(self, units: Units, last_actions: Int[Array, " a"]) -> tuple[Array, Array]:
        action_mask = available_actions(self.battle, units).astype(jnp.float32)
        acted = jax.nn.one_hot(last_actions, self.num_actions)
        if self.layout == "smac":
            state = self._smac_state(units, acted)
            return self._smac_obs(units, action_mask), jnp.broadcast_to(
                state, (self.battle.num_allies, state.size)
            )
        return self._paper_obs(units, action_mask, acted), self._paper_state(
            units, action_mask, acted
        )

    def _relations(self, units: Units) -> tuple[Float[Array, "a u 3"], Bool[Array, "a u"]]:
        """Distance, x and y from every agent to all units, and which are alive and visible."""
        n, sight = self.battle.num_allies, ranges(self.battle)[0]
        distance = distances(self.battle, units)
        away = [units.x[None] - units.x[:n, None], units.y[None] - units.y[:n, None]]
        relations = jnp.stack([part / sight for part in (distance, *away)], -1)
        return relations, (distance < sight) & (units.hp > 0)[None]

    def _health(self, units: Units) -> tuple[Array, Array]:
        """Health and shield of allies `(a, 1..2)` and enemies, as shares of their maximum."""
        n, stats = self.battle.num_allies, self.battle.stats
        both = jnp.stack([units.hp / stats.hp, units.shield / jnp.maximum(stats.shield, 1.0)], -1)
        ours, theirs = self._shields
        return both[:n, : 1 + ours], both[n:, : 1 + theirs]

    def _positions(self, units: Units) -> Float[Array, "u 2"]:
        """Positions relative to the centre of the map, in units of its size."""
        return (jnp.stack([units.x, units.y], -1) - MAP_SIZE / 2) / MAP_SIZE

    def _cooldowns(self, units: Units) -> Float[Array, "a 1"]:
        """Shares of SMAC's maximum; healers have energy instead."""
        n, stats, left = self.battle.num_allies, self.battle.stats, units.cooldown
        if units.energy is not None:
            left = jnp.where(stats.heal > 0, units.energy, left)
        return (left[:n] / stats.max_cooldown[:n])[:, None]

    def _own_position(self, units: Units) -> list[Float[Array, "a 2"]]:
        """Where the agents are, in units of the map's size, if they observe it."""
        n = self.battle.num_allies
        seen = self.battle.map.teams is not None
        return [jnp.stack([units.x[:n], units.y[:n]], -1) / MAP_SIZE] if seen else []

    def _attackable(self, action_mask: Array) -> Float[Array, "a v 1"]:
        """The feature of enemies that can be attacked. As in SMACv2, a healer's is the ally's."""
        enemies = self.battle.num_units - self.battle.num_allies
        return action_mask[:, FIRST_ATTACK : FIRST_ATTACK + enemies, None]

    def _smac_obs(self, units: Units, action_mask: Array) -> Float[Array, "a f"]:
        n = self.battle.num_allies
        where, visible = self._relations(units)
        (ours, theirs), (our_types, their_types) = self._health(units), self._types
        enemies = _join(self._attackable(action_mask), where[:, n:], theirs, their_types)
        allies = _join(jnp.ones((n, n, 1)), where[:, :n], ours, our_types)
        parts = [
            action_mask[:, FIRST_MOVE:FIRST_ATTACK],
            _flat(enemies * visible[:, n:, None]),
            _flat(_others(allies * visible[:, :n, None])),
            jnp.concatenate([ours, *self._own_position(units), our_types], 1),
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
        enemies = _join(self._attackable(action_mask), where[:, n:], theirs, their_types)
        own = [ours, *self._own_position(units), our_types, acted]
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
            self._attackable(action_mask), where[:, n:], in_range[:, n:], theirs, their_types,
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


def _one_hots(names: tuple[str, ...], order: tuple[str, ...]) -> np.ndarray:
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
