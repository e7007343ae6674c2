"""Gymnasium environments for tests: a team with Tuple spaces, and one agent with mixed actions."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Pair(gymnasium.Env):
    """Two agents; the reward is a list, and the limit of three steps is reported as an end."""

    metadata = {"render_modes": ["human"]}  # noqa: RUF012

    def __init__(self, max_steps: int = 3, per_agent: bool = True):
        self.max_steps, self.per_agent, self.time = max_steps, per_agent, 0
        one = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Tuple([one, spaces.Discrete(3)])
        self.action_space = spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1, (1,), np.float32)])
        self.given: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time, self.first = 0, self.np_random.random(2).astype(np.float32)
        return [self.first, 0], {"action_mask": [[1, 0], None]}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.given.append(action)
        self.time += 1
        over, rewards = self.time >= self.max_steps, [1.0, 3.0]
        obs = [self.first, self.time % 3]
        return obs, rewards if self.per_agent else 2.0, over, False, {"score": self.time}

    def render(self, mode: str = "human") -> Any:
        """The interface of older environments."""
        return np.full((8, 8, 3), 40 * self.time, np.uint8) if mode == "rgb_array" else True


class Crane(gymnasium.Env):
    """One agent that grips and swings, and observes a dictionary with an image."""

    def __init__(self):
        camera = spaces.Box(0, 255, (4, 4), np.uint8)
        self.observation_space = spaces.Dict({"camera": camera, "load": spaces.Discrete(2)})
        self.action_space = spaces.Dict(
            {"grip": spaces.Discrete(2), "swing": spaces.Box(-1, 1, (2,), np.float32)}
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return {"camera": np.full((4, 4), 51, np.uint8), "load": 1}, {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        obs = {"camera": np.zeros((4, 4), np.uint8), "load": int(action["grip"])}
        return obs, float(action["swing"].sum()), False, False, {}


class Broken(gymnasium.Env):
    """Cannot be made."""

    def __init__(self):
        raise RuntimeError("the crane is broken")


gymnasium.register("Pair-v0", "gym_teams:Pair")
gymnasium.register("Crane-v0", "gym_teams:Crane", max_episode_steps=5)
gymnasium.register("Broken-v0", "gym_teams:Broken")
