"""A PettingZoo environment with images, and environments in which agents take turns (AEC).

Workers import this module, so it needs neither JAX nor fp3o.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec

SIDE = 6


class Spot(ParallelEnv):
    """Two agents see a bright column in a colour image and should choose left or right."""

    metadata = {"name": "spot", "render_modes": ["rgb_array"], "is_parallelizable": True}  # noqa: RUF012

    def __init__(self, max_cycles: int = 4, render_mode: str | None = None):
        self.max_cycles, self.render_mode = max_cycles, render_mode
        self.possible_agents, self.agents = ["left", "right"], []
        self.random = np.random.default_rng()

    def observation_space(self, agent: str) -> Any:
        image = Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        return Dict({"battery": Box(0, 1, (1,), np.float32), "camera": image})

    def action_space(self, agent: str) -> Any:
        return Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.time, self.agents = 0, [*self.possible_agents]
        self.random = np.random.default_rng(seed)
        self.column = int(self.random.integers(SIDE))
        return self.shown(), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> Any:
        self.time += 1
        right = self.column >= SIDE // 2
        rewards = {agent: float(bool(action) == right) for agent, action in actions.items()}
        self.column, shown = int(self.random.integers(SIDE)), self.agents
        cut = dict.fromkeys(shown, self.time >= self.max_cycles)
        obs = self.shown()
        self.agents = [] if self.time >= self.max_cycles else self.agents
        return obs, rewards, dict.fromkeys(shown, False), cut, {agent: {} for agent in shown}

    def shown(self) -> dict[str, Any]:
        image = np.zeros((SIDE, SIDE, 3), np.uint8)
        image[:, self.column] = (255, 51, 0)
        return {a: {"battery": np.ones(1, np.float32), "camera": image} for a in self.agents}

    def render(self) -> Any:
        image = np.zeros((SIDE, SIDE, 3), np.uint8)
        image[:, self.column] = (255, 51, 0)
        return image.repeat(20, 0).repeat(20, 1)


class Turns(AECEnv):
    """Agents that take turns, and cannot act at once."""

    metadata = {"name": "turns", "is_parallelizable": False}  # noqa: RUF012


parallel_env = Spot


def turns(**kwargs: Any) -> Any:
    """The same environment with turns."""
    return parallel_to_aec(Spot(**kwargs))
