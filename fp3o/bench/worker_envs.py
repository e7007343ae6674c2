"""Environments that run in worker processes, which import this module: it needs no JAX."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from fp3o.envs.adapters.pettingzoo_make import load_factory, make_parallel_env
from fp3o.envs.workers.protocol import WorkerEnv
from fp3o.envs.workers.shared_memory import BufferSpec


def laborious_env(path: str, work: float, **kwargs: Any) -> Any:
    """An environment whose steps take some milliseconds more."""
    env = load_factory(path)(**kwargs)
    step = env.step

    def slow_step(actions: Mapping[Any, Any]) -> Any:
        until = time.perf_counter() + work / 1000
        while time.perf_counter() < until:
            pass
        return step(actions)

    env.step = slow_step
    return env


@dataclass(frozen=True)
class IdleEnv(WorkerEnv):
    """An environment that does nothing."""

    spec: BufferSpec

    def __call__(self, seed: int) -> "IdleEnv":
        """The environment itself: it needs no seed."""
        return self

    def reset(self, seed: int = 0, episode: int = 0) -> tuple[np.ndarray, ...]:
        """Zeros."""
        return tuple(np.zeros(shape, dtype) for _, shape, dtype in self.spec.reply)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        """Zeros."""
        return self.reset()


class TeamTask(NamedTuple):
    """What a process needs to make an environment: constructor, spaces, and an action."""

    make: Any
    kwargs: Mapping[str, Any]
    layout: Any
    action: np.ndarray


class FlatTeam(gymnasium.Env):
    """A team as one agent, which Gymnasium's vector environments can hold."""

    def __init__(self, task: "TeamTask"):
        self._env, self._layout = make_parallel_env(task.make, task.kwargs), task.layout
        size = sum(codec.size for codec in self._layout.obs_codecs)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        action = task.action
        self.action_space = spaces.Box(-np.inf, np.inf, action.shape, action.dtype.type)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start an episode."""
        return self._row(self._env.reset(seed=seed)[0]), {}

    def step(self, action: np.ndarray) -> Any:
        """Apply the actions of the team."""
        given = self._layout.decode(action, self._layout.agents)
        obs, rewards, ended, cut, _ = self._env.step(given)
        reward = float(np.mean([*rewards.values()]))
        return self._row(obs), reward, all(ended.values()), all(cut.values()), {}

    def _row(self, obs: Mapping[Any, Any]) -> np.ndarray:
        return np.concatenate([obs[agent] for agent in self._layout.agents], dtype=np.float32)
