"""The paper's layout of observations in NumPy, for games that are not ours.

The same numbers in the same order as `sight.Eyes` gives in the layout `paper`. Worker processes
import this, so it needs NumPy only.
"""

from typing import Any, NamedTuple

import numpy as np

SIGHT = 9.0
"""How far every agent sees."""
MOVES = slice(2, 6)
"""The actions that move."""


class Side(NamedTuple):
    """The `u` units of one side, dead ones included."""

    spot: np.ndarray
    """(u, 2): where they are, in cells."""
    place: np.ndarray
    """(u, 2): from the middle of the map, in maps."""
    vitals: np.ndarray
    """(u, 1) or (u, 2): health, and shield where the side has them, as parts of the whole."""
    types: np.ndarray
    """(u, b): one-hots of their kinds, of no length if they are all alike."""
    alive: np.ndarray
    """(u,)"""


def paper(
    ours: Side, theirs: Side, waits: np.ndarray, action_mask: np.ndarray, acted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Observations and states of all agents, `(n, f)` each.

    `waits` are the agents' cooldowns as parts of the whole, `acted` one-hots of their last actions.
    """
    ally, enemy = _relations(ours, ours), _relations(ours, theirs)
    near, foe_near = _near(ally, ours), _near(enemy, theirs)
    lives, foe_lives = ours.alive[None, :, None], theirs.alive[None, :, None]
    shots, moves = action_mask[:, MOVES.stop :, None], action_mask[:, MOVES]
    me = np.repeat(np.eye(1, 4), len(action_mask), 0)
    obs = (
        _others(_join(near, ally, ours.vitals, ours.types, acted) * near),
        _flat(_join(shots, enemy, theirs.vitals, theirs.types) * foe_near),
        moves,
        np.hstack([me, ours.vitals, ours.types, acted]),
    )
    about = ours.vitals, ours.place, ours.types, acted
    state = (
        _others(_join(near, ally, waits[:, None], *about) * lives),
        _flat(_join(shots, enemy, foe_near, theirs.vitals, theirs.types, theirs.place) * foe_lives),
        moves,
        np.hstack([me, *about]),
    )
    return _finished(obs, ours.alive), _finished(state, ours.alive)


def _relations(ours: Side, others: Side) -> np.ndarray:
    """(n, u, 3): distance, x and y from every agent, in ranges of sight."""
    away = others.spot[None] - ours.spot[:, None]
    far = np.hypot(away[..., :1], away[..., 1:])
    return np.concatenate([far, away], -1) / SIGHT


def _near(relations: np.ndarray, others: Side) -> np.ndarray:
    """(n, u, 1): who is alive and in sight."""
    return (relations[..., :1] < 1.0) & others.alive[None, :, None]


def _join(*parts: Any) -> np.ndarray:
    """Features `(n, u, f)` side by side; what all agents see alike is given as `(u, f)`."""
    rows, units = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(x, (rows, units, x.shape[-1])) for x in parts], -1)


def _flat(features: np.ndarray) -> np.ndarray:
    return features.reshape(len(features), -1)


def _others(features: np.ndarray) -> np.ndarray:
    """Of all agents but oneself."""
    n = len(features)
    return features[~np.eye(n, dtype=bool)].reshape(n, -1)


def _finished(parts: tuple[np.ndarray, ...], alive: np.ndarray) -> np.ndarray:
    """With the agent's number at the end, which is all that is left of the dead."""
    body = np.hstack(parts) * alive[:, None]
    return np.hstack([body, np.eye(len(alive))]).astype(np.float32)
