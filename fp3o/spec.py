"""Description of a task: agents, observation sizes, action spaces. Needs NumPy only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FORMAT = 2
"""Format version of all files of a run: checkpoints, policies, config.json, results.json."""

MAX_LAYERS = 64
"""Largest number of hidden layers of a network."""


@dataclass(frozen=True)
class Discrete:
    """Discrete actions: each agent makes one choice per sub-action (usually there is one).

    `sizes[i][d]` is the number of choices of agent `i` in sub-action `d`. Agents may differ in
    their numbers of choices but not in the number of sub-actions: give size 1 to a sub-action that
    an agent does not have.
    """

    sizes: tuple[tuple[int, ...], ...]
    integers = True
    """Whether actions are arrays of integers."""
    dtype = np.int32
    """Type of the numbers of an action, on the host."""
    num_dimensions = 0
    """Padded length of the vector in an action."""

    @property
    def action_size(self) -> int:
        """Length of an agent's action: sub-actions, then dimensions."""
        return len(self.widths)

    @property
    def widths(self) -> tuple[int, ...]:
        """Padded number of choices per sub-action."""
        return tuple(max(column) for column in zip(*self.sizes, strict=True))

    @property
    def num_outputs(self) -> int:
        """Padded outputs of a policy network per agent: choices, then dimensions."""
        return sum(self.widths)

    @property
    def mask(self) -> np.ndarray:
        """Which of the padded choices exist for each agent, `(n, a)`."""
        widths = np.array(self.widths)
        first = np.repeat(np.cumsum(widths) - widths, widths)  # of each sub-action
        return np.arange(widths.sum()) - first < np.repeat(np.array(self.sizes), widths, axis=1)


@dataclass(frozen=True)
class Box:
    """Continuous actions: `sizes[i]` is the length of agent `i`'s action vector."""

    sizes: tuple[int, ...]
    integers = False
    """Whether actions are arrays of integers."""
    dtype = np.float32
    """Type of the numbers of an action, on the host."""
    widths = ()
    """Padded number of choices per sub-action."""

    @property
    def num_dimensions(self) -> int:
        """Padded length of the vector in an action."""
        return max(self.sizes)

    @property
    def action_size(self) -> int:
        """Length of an agent's action: sub-actions, then dimensions."""
        return self.num_dimensions

    @property
    def num_outputs(self) -> int:
        """Padded outputs of a policy network per agent: choices, then dimensions."""
        return max(self.sizes)

    @property
    def mask(self) -> np.ndarray:
        """Which of the padded dimensions exist for each agent, `(n, a)`."""
        return np.arange(max(self.sizes)) < np.array(self.sizes)[:, None]


@dataclass(frozen=True)
class Mixed:
    """Choices and a vector: for agents with both, and for teams that mix both kinds of agents.

    An action is one array of real numbers: the choices first, then the vector. An agent without
    choices has sub-actions of size 1, one without a vector has size 0.
    """

    discrete: Discrete
    box: Box
    integers = False
    """Whether actions are arrays of integers."""
    dtype = np.float32
    """Type of the numbers of an action, on the host."""

    @property
    def num_dimensions(self) -> int:
        """Padded length of the vector in an action."""
        return self.box.num_dimensions

    @property
    def action_size(self) -> int:
        """Length of an agent's action: sub-actions, then dimensions."""
        return self.discrete.action_size + self.num_dimensions

    @property
    def widths(self) -> tuple[int, ...]:
        """Padded number of choices per sub-action."""
        return self.discrete.widths

    @property
    def num_outputs(self) -> int:
        """Padded outputs of a policy network per agent: choices, then dimensions."""
        return self.discrete.num_outputs + self.box.num_outputs

    @property
    def mask(self) -> np.ndarray:
        """Which of the padded choices and dimensions exist for each agent, `(n, a)`."""
        return np.concatenate([self.discrete.mask, self.box.mask], axis=1)


ActionSpace = Discrete | Box | Mixed

ImageShape = tuple[int, int, int]
"""Height, width and channels."""

Adjacency = tuple[tuple[int, ...], ...] | Callable[[Any, Any], Any]
"""The neighbours of every agent, or a function of observations `(..., n, f)` and states
`(..., n, f2)` to booleans `(..., n, n)`: which agents (last axis) are neighbours of each agent."""


@dataclass(frozen=True)
class EnvSpec:
    """Specification of a cooperative task: agents, observation and action spaces, rewards."""

    name: str
    actions: ActionSpace
    obs_size: int
    """Length of the observations; shorter ones are padded with zeros."""
    state_size: int
    """Length of the input of a centralised critic."""
    agent_types: tuple[int, ...]
    """Type of each agent; agents of one type share parameters under `by_type`."""
    truncates: bool = False
    """Whether a time limit may truncate episodes."""
    reward_sum_over: int = 1
    """Number of agents whose individual rewards are summed in each agent's reward. Reported returns
    are divided by it."""
    episode_metrics: tuple[str, ...] = ()
    """Names of further metrics reported at the end of an episode; `won` is 0 or 1."""
    agents: tuple[str, ...] = ()
    """Names of the agents; empty: `agent_0`, `agent_1` and so on."""
    obs_sizes: tuple[int, ...] = ()
    """Length of each agent's observation before padding; empty: all have `obs_size`."""
    action_names: tuple[tuple[str, ...], ...] = ()
    """Meanings of each agent's choices, then of the dimensions of its vector; empty: unknown."""
    image: ImageShape | None = None
    """Shape of the image, channels last and flattened, that every observation begins with; the
    other entries of an observation follow it. None: there is no image."""
    state_image: ImageShape | None = None
    """The same for the state."""
    adjacency: Adjacency | None = None
    """Neighbours of the agents, for critics on a graph: fixed, or computed by JAX from the
    observations and states of every step. None: the task has no graph."""

    @property
    def num_agents(self) -> int:
        """The size of the team."""
        return len(self.agent_types)

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The name of every agent."""
        return self.agents or tuple(f"agent_{i}" for i in range(self.num_agents))

    @property
    def agent_obs_sizes(self) -> tuple[int, ...]:
        """Length of every agent's observation before padding."""
        return self.obs_sizes or (self.obs_size,) * self.num_agents
