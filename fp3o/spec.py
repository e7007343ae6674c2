"""The facts of a task: who acts, what each agent sees and may do. Needs NumPy only."""

from dataclasses import dataclass

import numpy as np

FORMAT = 2
"""Version of all files of a run: checkpoints, policies, config.json and results.json."""


@dataclass(frozen=True)
class Discrete:
    """Each agent takes one choice in every sub-action; a plain choice is one sub-action.

    `sizes[i][d]` is the number of choices of agent `i` in sub-action `d`. Agents may differ in
    their numbers of choices, not in the number of sub-actions: an agent without one declares 1.
    """

    sizes: tuple[tuple[int, ...], ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """Padded number of choices of every sub-action."""
        return tuple(max(column) for column in zip(*self.sizes, strict=True))

    @property
    def mask(self) -> np.ndarray:
        """Which of the padded choices an agent really has, `(n, a)`."""
        rows = [
            [choice < size for size, width in zip(own, self.widths, strict=True)
             for choice in range(width)]
            for own in self.sizes
        ]  # fmt: skip
        return np.array(rows)


@dataclass(frozen=True)
class Box:
    """Each agent takes a vector of real numbers; `sizes[i]` is the length of agent `i`'s."""

    sizes: tuple[int, ...]

    @property
    def mask(self) -> np.ndarray:
        """Which of the padded dimensions an agent really has, `(n, a)`."""
        return np.arange(max(self.sizes)) < np.array(self.sizes)[:, None]


@dataclass(frozen=True)
class EnvSpec:
    """The facts about a cooperative task that networks and checks need."""

    name: str
    actions: Discrete | Box
    obs_size: int
    """Length of the observations, shorter ones padded with zeros."""
    state_size: int
    """Length of what a centralised critic sees."""
    agent_types: tuple[int, ...]
    """The kind of each agent; agents of one kind share under `by_type`."""
    truncates: bool = False
    """Whether episodes may be cut by a time limit."""
    reward_sum_over: int = 1
    """Agents whose own rewards are added up in each agent's reward. Returns are reported as those
    of one agent, a share of 1/shares."""
    episode_metrics: tuple[str, ...] = ()
    """Names of numbers an episode ends with beside its return, as `won`; `won` is 0 or 1."""

    @property
    def num_agents(self) -> int:
        """The size of the team."""
        return len(self.agent_types)
