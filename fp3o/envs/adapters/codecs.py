"""TODO."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fp3o.envs.workers.protocol import InvalidReplyError

MASK = "action_mask"


@dataclass(frozen=True)
class ObsCodec:
    """How an agent's observation becomes a row of numbers."""

    size: int
    choices: tuple[int, ...] = ()
    """Of each number that is shown as one of several (1 at its place); none: all as they are."""
    start: tuple[int, ...] = ()
    """The smallest value of each of these numbers."""
    boxed: bool = False
    """Whether it is in a dictionary, together with what the agent may do."""

    def read(self, seen: Any) -> np.ndarray:
        """The numbers of an observation."""
        plain = seen["observation"] if self.boxed else seen
        flat = self._hot(np.ravel(plain)) if self.choices else np.asarray(plain, np.float32).ravel()
        if flat.size != self.size:
            raise InvalidReplyError(f"an observation of {flat.size} numbers, expected {self.size}")
        return flat

    def _hot(self, values: np.ndarray) -> np.ndarray:
        if len(values) != len(self.choices):
            raise InvalidReplyError(
                f"an observation of {values}, expected {len(self.choices)} numbers"
            )
        which: Any = values.astype(int) - self.start
        if (which < 0).any() or (which >= self.choices).any():
            raise InvalidReplyError(f"an observation of {values}, which is not in its space")
        flat = np.zeros(self.size, np.float32)
        flat[which + np.cumsum((0, *self.choices[:-1]))] = 1.0
        return flat


@dataclass(frozen=True, eq=False)
class DiscreteCodec:
    """How an agent's choices become an action of its space."""

    sizes: tuple[int, ...]
    """Choices of each sub-action."""
    start: np.ndarray
    """The smallest value of each sub-action, of the space's own type."""
    shape: tuple[int, ...]

    def write(self, action: np.ndarray) -> Any:
        """An action of the space; a lone choice is a number."""
        own = action[: len(self.sizes)].astype(self.start.dtype) + self.start
        return own.reshape(self.shape)[()]


@dataclass(frozen=True, eq=False)
class BoxCodec:
    """How a vector of real numbers becomes an action of a space with bounds."""

    low: np.ndarray
    high: np.ndarray
    shape: tuple[int, ...]

    def write(self, action: np.ndarray) -> np.ndarray:
        """An action of the space."""
        own = action[: self.low.size].astype(self.low.dtype)
        return np.clip(own, self.low, self.high).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class TeamLayout:
    """How a team's dictionaries become arrays."""

    agents: tuple[Any, ...]
    senses: tuple[ObsCodec, ...]
    hands: tuple[DiscreteCodec, ...] | tuple[BoxCodec, ...]
    mask: np.ndarray
    """(n, a): choices (or dimensions) that an agent has."""
    idle: np.ndarray
    """(n, a): those of an agent that is not there."""
    places: tuple[np.ndarray, ...]
    """Where the entries of each agent's action mask go; empty: it has none."""
    central: int
    """Length of the environment's own state; 0: all observations in a row take its place."""
    reward: str
    limit: int
    outcomes: tuple[str, ...]
