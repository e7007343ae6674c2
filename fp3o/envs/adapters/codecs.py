"""Codecs that convert observations and actions of other libraries to arrays. NumPy only."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fp3o.envs.workers.protocol import InvalidReplyError

MASK = "action_mask"
"""Key of the action mask in observations and infos."""


@dataclass(frozen=True)
class ObsCodec:
    """Encodes the observations of an agent as vectors."""

    size: int
    categories: tuple[int, ...] = ()
    """Sizes of one-hot encoded entries; empty: the observation is real-valued."""
    start: tuple[int, ...] = ()
    """Smallest value of each one-hot encoded entry."""
    in_dict: bool = False
    """Whether it is in a dictionary, together with the action mask."""

    def encode(self, observation: Any) -> np.ndarray:
        """An observation as a vector."""
        x = observation["observation"] if self.in_dict else observation
        row = self._one_hot(np.ravel(x)) if self.categories else np.asarray(x, np.float32).ravel()
        if row.size != self.size:
            raise InvalidReplyError(f"an observation of {row.size} numbers, expected {self.size}")
        return row

    def _one_hot(self, values: np.ndarray) -> np.ndarray:
        if len(values) != len(self.categories):
            raise InvalidReplyError(
                f"an observation of {values}, expected {len(self.categories)} numbers"
            )
        index: Any = values.astype(int) - self.start
        if (index < 0).any() or (index >= self.categories).any():
            raise InvalidReplyError(f"an observation of {values}, which is not in its space")
        row = np.zeros(self.size, np.float32)
        row[index + np.cumsum((0, *self.categories[:-1]))] = 1.0
        return row


@dataclass(frozen=True, eq=False)
class DiscreteCodec:
    """Decodes the choices of an agent into an action of its space."""

    sizes: tuple[int, ...]
    """Number of choices per sub-action."""
    start: np.ndarray
    """Smallest value of each sub-action, in the data type of the space."""
    shape: tuple[int, ...]

    def decode(self, action: np.ndarray) -> Any:
        """An action of the space; a single choice is a scalar."""
        used = action[: len(self.sizes)].astype(self.start.dtype) + self.start
        return used.reshape(self.shape)[()]


@dataclass(frozen=True, eq=False)
class BoxCodec:
    """Decodes the vector of an agent into an action of a bounded space."""

    low: np.ndarray
    high: np.ndarray
    shape: tuple[int, ...]

    def decode(self, action: np.ndarray) -> np.ndarray:
        """An action of the space, clipped to its bounds."""
        used = action[: self.low.size].astype(self.low.dtype)
        return np.clip(used, self.low, self.high).reshape(self.shape)


ActionCodec = DiscreteCodec | BoxCodec


@dataclass(frozen=True, eq=False)
class TeamLayout:
    """How dictionaries keyed by agent are laid out in arrays with an agent axis."""

    agents: tuple[Any, ...]
    obs_codecs: tuple[ObsCodec, ...]
    action_codecs: tuple[ActionCodec, ...]
    mask: np.ndarray
    """(n, a): choices (or dimensions) that each agent has."""
    absent_mask: np.ndarray
    """(n, a): the choices of an agent that is absent."""
    mask_indices: tuple[np.ndarray, ...]
    """Positions of the entries of each agent's action mask; empty: it has none."""
    state_size: int
    """Length of the environment's global state; 0: all observations are concatenated instead."""
    reward: str
    max_episode_steps: int
    episode_metrics: tuple[str, ...]
