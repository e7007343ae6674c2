"""The paper's layout of observations in NumPy, for StarCraft II itself.

The features and their order are those of `ObservationBuilder` in the layout `paper`. Worker
processes import this module, so it needs NumPy only.
"""

from typing import Any, NamedTuple

import numpy as np

MOVE_ACTIONS = slice(2, 6)
"""Indices of the move actions."""


class SideFeatures(NamedTuple):
    """Features of the `u` units of one side, including dead ones."""

    cell: np.ndarray
    """(u, 2): positions in cells."""
    position: np.ndarray
    """(u, 2): positions relative to the centre of the map, in units of its size."""
    health: np.ndarray
    """(u, 1) or (u, 2): health, and shield if the side has shields, as shares of the maximum."""
    types: np.ndarray
    """(u, b): one-hot unit types, of length 0 if all units are of one type."""
    alive: np.ndarray
    """(u,)"""


class AgentFeatures(NamedTuple):
    """Features of the `n` agents that enemies do not have."""

    sight: np.ndarray
    """(n,): sight ranges."""
    own_position: np.ndarray
    """(n, 2), or (n, 0) if agents do not observe where they are."""
    cooldown: np.ndarray
    """(n,): shares of the maximum."""
    last_action: np.ndarray
    """(n, c): one-hot encodings, zeros before the first step."""


def paper_layout(
    ours: SideFeatures, theirs: SideFeatures, agents: AgentFeatures, action_mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Observations and states of all agents, `(n, f)` each."""
    ally, enemy = (_relations(ours, others, agents.sight) for others in (ours, theirs))
    near, enemy_near = _visible(ally, ours), _visible(enemy, theirs)
    alive, enemy_alive = ours.alive[None, :, None], theirs.alive[None, :, None]
    moves, attacks = action_mask[:, MOVE_ACTIONS], action_mask[:, MOVE_ACTIONS.stop :, None]
    attacks = attacks[:, : len(theirs.alive)]  # healers may have more targets than enemies
    agent, acted = np.repeat(np.eye(1, 4), len(action_mask), 0), agents.last_action
    obs = (
        _others(_join(near, ally, ours.health, ours.types, acted) * near),
        _flat(_join(attacks, enemy, theirs.health, theirs.types) * enemy_near),
        moves,
        np.hstack([agent, ours.health, agents.own_position, ours.types, acted]),
    )
    own = ours.health, ours.position, ours.types, acted
    enemies = _join(attacks, enemy, enemy_near, theirs.health, theirs.types, theirs.position)
    state = (
        _others(_join(near, ally, agents.cooldown[:, None], *own) * alive),
        _flat(enemies * enemy_alive),
        moves,
        np.hstack([agent, *own]),
    )
    return _with_index(obs, ours.alive), _with_index(state, ours.alive)


def _relations(ours: SideFeatures, others: SideFeatures, sight: np.ndarray) -> np.ndarray:
    """(n, u, 3): distance, x and y from every agent, in units of its sight range."""
    away = others.cell[None] - ours.cell[:, None]
    distance = np.hypot(away[..., :1], away[..., 1:])
    return np.concatenate([distance, away], -1) / sight[:, None, None]


def _visible(relations: np.ndarray, others: SideFeatures) -> np.ndarray:
    """(n, u, 1): units that are alive and within the sight range."""
    return (relations[..., :1] < 1.0) & others.alive[None, :, None]


def _join(*parts: Any) -> np.ndarray:
    """Features `(n, u, f)` side by side; those equal for all agents are given as `(u, f)`."""
    rows, units = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(x, (rows, units, x.shape[-1])) for x in parts], -1)


def _flat(features: np.ndarray) -> np.ndarray:
    return features.reshape(len(features), -1)


def _others(features: np.ndarray) -> np.ndarray:
    """The features of all agents except the agent itself."""
    n = len(features)
    return features[~np.eye(n, dtype=bool)].reshape(n, -1)


def _with_index(parts: tuple[np.ndarray, ...], alive: np.ndarray) -> np.ndarray:
    """Append the agent's one-hot index; everything else is zero for dead agents."""
    body = np.hstack(parts) * alive[:, None]
    return np.hstack([body, np.eye(len(alive))]).astype(np.float32)
