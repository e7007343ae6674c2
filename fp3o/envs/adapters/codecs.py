"""Codecs that convert observations and actions of other libraries to arrays. NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fp3o.envs.workers.protocol import InvalidReplyError
from fp3o.spec import ImageShape

MASK = "action_mask"
"""Key of the action mask in observations and infos."""


@dataclass(frozen=True)
class ObsEntry:
    """One array of an observation: where it is, and how it is encoded as numbers."""

    path: tuple[Any, ...]
    """Keys of dictionaries and indices of tuples that lead to it; empty: it is the observation."""
    size: int
    categories: tuple[int, ...] = ()
    """Sizes of one-hot encoded numbers; empty: the entry is real-valued."""
    start: tuple[int, ...] = ()
    """Smallest value of each one-hot encoded number."""
    image: ImageShape | None = None
    """Height, width and channels; None: it is no image."""
    scale: float = 1.0
    """Factor of its numbers."""
    channels_first: bool = False

    def encode(self, observation: Any) -> np.ndarray:
        """The entry of an observation as a vector."""
        x = observation
        for key in self.path:
            try:
                x = x[key]
            except (KeyError, IndexError, TypeError) as error:
                raise InvalidReplyError(f"an observation without the entry {key!r}") from error
        if self.categories:
            return self._one_hot(np.ravel(x))
        row = np.asarray(x, np.float32)
        if self.channels_first:
            row = np.moveaxis(row, 0, -1)
        if row.size != self.size:
            raise InvalidReplyError(f"an observation of {row.size} numbers, expected {self.size}")
        return row.ravel() if self.scale == 1.0 else row.ravel() * np.float32(self.scale)

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


@dataclass(frozen=True)
class ObsCodec:
    """Encodes the observations of an agent as vectors: its entries one after another."""

    entries: tuple[ObsEntry, ...]
    """In the order of the vector: the first image, if there is one, then all others."""
    has_mask: bool = False
    """Whether observations are dictionaries that hold the action mask."""

    @cached_property
    def size(self) -> int:
        """Length of the vectors."""
        return sum(entry.size for entry in self.entries)

    @property
    def image(self) -> ImageShape | None:
        """Shape of the image that the vectors begin with."""
        return self.entries[0].image if self.entries else None

    def encode(self, observation: Any) -> np.ndarray:
        """An observation as a vector."""
        parts = [entry.encode(observation) for entry in self.entries]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class DiscreteCodec:
    """Decodes the choices of an agent into an action of its space."""

    sizes: tuple[int, ...]
    """Number of choices per sub-action."""
    start: np.ndarray
    """Smallest value of each sub-action, in the data type of the space."""
    shape: tuple[int, ...]
    num_dimensions = 0

    def decode(self, choices: np.ndarray, vector: np.ndarray) -> Any:
        """An action of the space; a single choice is a scalar."""
        used = choices[: len(self.sizes)].astype(self.start.dtype) + self.start
        return used.reshape(self.shape)[()]


@dataclass(frozen=True, eq=False)
class BoxCodec:
    """Decodes the vector of an agent into an action of a bounded space."""

    low: np.ndarray
    high: np.ndarray
    shape: tuple[int, ...]
    sizes = ()

    @property
    def num_dimensions(self) -> int:
        """Length of the vector."""
        return self.low.size

    def decode(self, choices: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """An action of the space, clipped to its bounds."""
        used = vector[: self.low.size].astype(self.low.dtype)
        return np.clip(used, self.low, self.high).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class NestedCodec:
    """Decodes an action of a Tuple or a Dict of spaces."""

    keys: tuple[Any, ...] | None
    """Keys of a dictionary; None: a tuple."""
    parts: "tuple[ActionCodec, ...]"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of choices per sub-action of all parts."""
        return tuple(size for part in self.parts for size in part.sizes)

    @property
    def num_dimensions(self) -> int:
        """Length of the vectors of all parts."""
        return sum(part.num_dimensions for part in self.parts)

    def decode(self, choices: np.ndarray, vector: np.ndarray) -> Any:
        """A tuple or a dictionary of actions."""
        values = []
        for part in self.parts:
            values.append(part.decode(choices, vector))
            choices, vector = choices[len(part.sizes) :], vector[part.num_dimensions :]
        return tuple(values) if self.keys is None else dict(zip(self.keys, values, strict=True))


ActionCodec = DiscreteCodec | BoxCodec | NestedCodec


@dataclass(frozen=True, eq=False)
class TeamLayout:
    """How dictionaries keyed by agent are laid out in arrays with an agent axis."""

    agents: tuple[Any, ...]
    obs_codecs: tuple[ObsCodec, ...]
    action_codecs: tuple[ActionCodec, ...]
    num_sub_actions: int
    """Padded number of choices in an action; the vector follows them."""
    mask: np.ndarray
    """(n, a): choices (or dimensions) that each agent has."""
    absent_mask: np.ndarray
    """(n, a): the choices of an agent that is absent."""
    mask_indices: tuple[np.ndarray, ...]
    """Positions of the entries of each agent's action mask; empty: it has none."""
    image: ImageShape | None
    """Shape of the image that all observations begin with."""
    state_size: int
    """Length of the environment's global state; 0: all observations are concatenated instead."""
    reward: str
    max_episode_steps: int
    episode_metrics: tuple[str, ...]

    def decode(self, action: np.ndarray, agents: Sequence[Any]) -> dict[Any, Any]:
        """Actions `(n, d)` of the team -> those of some agents, as their spaces have them."""
        choices, vector = np.split(action, [self.num_sub_actions], axis=-1)
        index = {agent: i for i, agent in enumerate(self.agents)}
        return {
            agent: self.action_codecs[i].decode(choices[i], vector[i])
            for agent in agents
            for i in (index[agent],)
        }

    def team_state(self, rows: list[np.ndarray]) -> np.ndarray:
        """All observations as one vector: the images joined by channels, then the rest."""
        if self.image is None:
            return np.concatenate(rows)
        number = int(np.prod(self.image))
        images = np.concatenate([row[:number].reshape(self.image) for row in rows], axis=-1)
        return np.concatenate([images.ravel(), *(row[number:] for row in rows)])
