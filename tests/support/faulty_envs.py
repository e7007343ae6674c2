"""A small task whose faults are data: one compiled program meets any number of them.

Two agents in `ENVS` environments see the time of their episode of `LENGTH` steps. A table of faults
is part of the state (JAX) or of the object (host).
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from odd_envs import AGENTS, LENGTH, OddBatch, OddEnv, Oddity

from fp3o.envs.api import Observation
from fp3o.types import TimeStep

ENVS = 2
KINDS = ("reward", "obs", "state", "mask", "dead")
"""What is changed; `mask`: no choice is left, `dead`: none is left and the agent is dead."""


class Fault(NamedTuple):
    """A number in place of the right one, at one place of the first episode."""

    kind: str
    time: int
    env: int
    agent: int
    value: float = 0.0


def table(faults: list[Fault]) -> np.ndarray:
    """(e, kind, time, agent): NaN where nothing is changed, as a flag and a value."""
    cells = np.zeros((ENVS, len(KINDS), LENGTH + 1, AGENTS, 2), np.float32)
    for kind, time, env, agent, value in faults:
        cells[env, KINDS.index(kind), time, agent] = 1, value
    return cells


def spoiled_reward(xp: Any, cells: Any, reward: Any) -> Any:
    """Rewards with the faults `(..., kind, n, 2)` of the time at which they are paid."""
    flag, value = cells[..., KINDS.index("reward"), :, 0], cells[..., KINDS.index("reward"), :, 1]
    return xp.where(flag > 0, value, reward)


def spoiled_observation(xp: Any, cells: Any, right: Observation) -> Observation:
    """Observations with the faults `(..., kind, n, 2)` of their time."""
    flag = lambda kind: cells[..., KINDS.index(kind), :, 0] > 0  # noqa: E731
    value = lambda kind: cells[..., KINDS.index(kind), :, 1, None]  # noqa: E731
    obs = xp.where(flag("obs")[..., None], value("obs"), right.obs)
    state = xp.where(flag("state")[..., None], value("state"), right.state)
    mask = right.action_mask & ~(flag("mask") | flag("dead"))[..., None]
    return Observation(obs, state, mask, right.alive & ~flag("dead"))


@dataclass(frozen=True)
class FaultyEnv(OddEnv):
    """The state is the time and the table of this environment; a reset clears the table."""

    oddity: Oddity = field(default_factory=Oddity)

    def reset(self, key: Any) -> Any:
        return super().reset(key), jnp.zeros((len(KINDS), LENGTH + 1, AGENTS, 2))

    def step(self, state: Any, action: Any, key: Any) -> Any:
        time, cells = state
        after, reward, *ends = super().step(time, action, key)
        return (after, cells), spoiled_reward(jnp, cells[:, time], reward), *ends

    def observe(self, state: Any) -> Observation:
        time, cells = state
        return spoiled_observation(jnp, cells[:, time], super().observe(time))

    def episode_metrics(self, state: Any) -> Any:
        return super().episode_metrics(state[0])


@dataclass(frozen=True)
class FaultyBatch(OddBatch):
    """The same in NumPy; `cells` may be changed at any time and holds for every episode."""

    oddity: Oddity = field(default_factory=Oddity)
    num_envs: int = ENVS
    cells: np.ndarray = field(default_factory=lambda: table([]))

    def step(self, state: Any, action: Any) -> Any:
        time, now = super().step(state, action)
        rows = np.arange(self.num_envs)
        reward = spoiled_reward(np, self.cells[rows, :, state], now.reward)
        shown = spoiled_observation(np, self.cells[rows, :, time], Observation(*now[:4]))
        last = Observation(now.final_obs, now.final_state, *now[2:4])
        final = spoiled_observation(np, self.cells[rows, :, state + 1], last)
        changed = {"reward": reward, "final_obs": final.obs, "final_state": final.state}
        return time, TimeStep._make((*shown, *now[4:]))._replace(**changed)
