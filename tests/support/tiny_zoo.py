"""PettingZoo environments for tests: one that follows a script, one that fails in a worker.

Workers import this module, so it needs neither JAX nor fp3o.
"""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

SEEN, CHOSEN = Box(-np.inf, np.inf, (2,), np.float32), Discrete(2)


class Scripted(ParallelEnv):
    """Shows prepared frames, whatever the agents do, and keeps what they did.

    A frame is a dictionary of `agents`, `obs`, `rewards`, `ended`, `cut`, `infos`, `state`; the
    first one is shown by a reset, the last one again and again.
    """

    metadata = {"name": "scripted"}  # noqa: RUF012

    def __init__(self, spaces: Mapping[str, tuple[Any, Any]], frames: Sequence[Mapping[str, Any]]):
        self.spaces, self.frames = spaces, frames
        self.possible_agents = [*spaces]
        self.agents: list[str] = []
        self.given: list[Any] = []
        self.seeds: list[int | None] = []
        self.time = 0
        self.closed = False

    def observation_space(self, agent: str) -> Any:
        return self.spaces[agent][0]

    def action_space(self, agent: str) -> Any:
        return self.spaces[agent][1]

    @property
    def frame(self) -> Mapping[str, Any]:
        return self.frames[min(self.time, len(self.frames) - 1)]

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.time = 0
        self.seeds.append(seed)
        self.agents = [*self.frame.get("agents", self.possible_agents)]
        return self.frame["obs"], self.frame.get("infos", {})

    def step(self, actions: Mapping[str, Any]) -> Any:
        self.given.append(dict(actions))
        for agent, action in actions.items():
            assert self.action_space(agent).contains(action), (agent, action)
        self.time += 1
        frame = self.frame
        self.agents = [*frame.get("agents", self.possible_agents)]
        names = ("rewards", "ended", "cut", "infos")
        return frame["obs"], *(frame.get(name, {}) for name in names)

    def state(self) -> Any:
        if "state" not in self.frame:
            raise NotImplementedError
        return self.frame["state"]

    def close(self) -> None:
        self.closed = True


class Counting(ParallelEnv):
    """Two agents that see the time; the first environments to take a step fail in the third.

    Each claims a failure of the list in a folder, so that those which replace them find none
    left, unless they are to fail `always`. They begin to do so after `late` steps.
    """

    metadata = {"name": "counting"}  # noqa: RUF012

    def __init__(
        self,
        folder: str,
        failures: Sequence[str] = (),
        always: str = "",
        length: int = 5,
        late: int = 0,
    ):
        self.folder, self.failures, self.length = Path(folder), failures, length
        self.failure: str | None = always or None
        self.time, self.lived, self.late = 0, 0, late
        self.possible_agents = ["a_0", "a_1"]
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        return SEEN

    def action_space(self, agent: str) -> Any:
        return CHOSEN

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.time, self.agents = 0, [*self.possible_agents]
        return self.shown(), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> Any:
        self.time += 1
        self.lived += 1
        if self.failure is None and self.lived > self.late:
            self.failure = self.claim()
        failure = self.failure if self.failure and self.time == 3 else ""
        seen, reward = fail(failure, self.shown(), 1.0)
        over = self.time == self.length
        self.agents = [] if over else self.agents
        every = lambda x: dict.fromkeys(self.possible_agents, x)  # noqa: E731
        return seen, every(reward), every(over), every(False), every({"won": over})

    def shown(self) -> dict[str, np.ndarray]:
        return {agent: np.full(2, self.time, np.float32) for agent in self.possible_agents}

    def claim(self) -> str:
        for number, failure in enumerate(self.failures):
            try:
                (self.folder / f"{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return failure
        return ""


def fail(failure: str, seen: dict[str, np.ndarray], reward: float) -> Any:
    """End, hang, raise an error or return wrong values."""
    if failure == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if failure == "hang":
        time.sleep(1e6)
    if failure == "raise":
        raise RuntimeError("the zoo is closed")
    if failure == "print":
        print("noise " * 50_000, flush=True)
    if failure == "exit":
        print("last words", flush=True)
        os._exit(5)
    if failure == "shape":
        return {agent: x[:1] for agent, x in seen.items()}, reward
    return seen, float("nan") if failure == "nan" else reward
