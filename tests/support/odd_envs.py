"""A small task with one oddity, as a JAX environment and as a host environment.

Two agents see the time and are paid for choosing 1. The oddity begins after `late` steps of an
episode and concerns agent 1, so that a message can be compared with what happened.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from fp3o.envs.api import Env, HostEnv, Observation, VecEnv
from fp3o.spec import Discrete, EnvSpec
from fp3o.types import TimeStep

AGENTS, FEATURES, LENGTH = 2, 3, 3
LATE = 1
"""Steps of an episode before its oddity."""

NUMBERS = {"nan": np.nan, "inf": np.inf, "minus inf": -np.inf, "1e30": 1e30, "3e38": 3e38}


@dataclass(frozen=True)
class Oddity:
    """What is wrong: a `part` of the time step and what is done to it."""

    part: str = ""
    what: str = ""
    cured: ClassVar[bool] = False
    """Whether nothing is wrong any more, for runs that are resumed."""

    @property
    def name(self) -> str:
        """Of the task."""
        return "-".join(["odd", *f"{self.part} {self.what}".split()])

    def spec(self) -> EnvSpec:
        """Of the task without an oddity."""
        metrics = ("score",) if self.part == "metric" else ()
        actions = Discrete(((3,), (2,)))
        return EnvSpec(self.name, actions, FEATURES, FEATURES, (0, 0), episode_metrics=metrics)

    def rewards(self, xp: Any, action: Any, time: Any) -> Any:
        """1 for every choice of 1; `action` is `(..., n, d)`."""
        reward = (action[..., 0] == 1).astype(np.float32)
        return self._changed(xp, "reward", reward, time)

    def ended(self, xp: Any, time: Any) -> Any:
        """After `LENGTH` steps, at once, or never."""
        length = {"at once": 1, "never": 10**9}.get(self.what, LENGTH)
        return time >= length

    def observation(self, xp: Any, time: Any) -> Observation:
        """The time, the agent and a constant, for every time of an array."""
        shape = (*time.shape, AGENTS)
        agent = xp.broadcast_to(xp.arange(AGENTS) * 1.0, shape)
        obs = xp.stack([0.1 * time[..., None] + 0 * agent, agent, 1 + 0 * agent], -1)
        obs = obs.astype(np.float32)
        mask = xp.broadcast_to(xp.asarray(self.spec().actions.mask), (*shape, 3))
        alive = xp.ones(shape, bool)
        changed = {"obs": obs, "state": obs, "action_mask": mask, "alive": alive}
        return Observation(**{k: self._changed(xp, k, x, time) for k, x in changed.items()})

    def metrics(self, xp: Any, time: Any) -> Any:
        """One number where the oddity is in the metrics."""
        names = self.spec().episode_metrics
        values = xp.zeros((*time.shape, len(names)), np.float32)
        return values + NUMBERS[self.what] if names else values

    def _changed(self, xp: Any, part: str, x: Any, time: Any) -> Any:
        if self.cured:
            return x
        if part != self.part and not (part in ("alive", "action_mask") and self.part == "team"):
            return x
        if self.what == "integers":
            return x.astype(np.int32)
        if self.what == "shape":
            return xp.concatenate([x, x], -1)
        if self.what == "constant":
            return 0 * x
        agent = xp.arange(AGENTS) == 1
        if self.what == "dead":  # the whole team, with nothing to choose
            agent = xp.ones(AGENTS, bool)
        odd = (time[..., None] >= LATE) & agent
        odd = odd if x.ndim == odd.ndim else odd[..., None]
        if self.what in NUMBERS:
            return xp.where(odd, np.float32(NUMBERS[self.what]), x)
        return xp.where(odd, False, x)  # "empty" masks and "dead" agents


@dataclass(frozen=True)
class OddEnv(Env):
    """The task as pure functions; the state is the time."""

    oddity: Oddity
    max_episode_steps = LENGTH

    @property
    def spec(self) -> EnvSpec:
        """Of the oddity."""
        return self.oddity.spec()

    def reset(self, key: Any) -> Any:
        """Time 0."""
        return jnp.zeros((), int)

    def step(self, state: Any, action: Any, key: Any) -> Any:
        """One step later."""
        reward = self.oddity.rewards(jnp, action, state)
        return state + 1, reward, self.oddity.ended(jnp, state + 1), jnp.zeros((), bool)

    def observe(self, state: Any) -> Observation:
        """The time."""
        return self.oddity.observation(jnp, state)

    def episode_metrics(self, state: Any) -> Any:
        """None, or an odd one."""
        return self.oddity.metrics(jnp, state)


@dataclass(frozen=True)
class OddBatch(VecEnv):
    """The task in NumPy; the state is the array of times."""

    oddity: Oddity
    num_envs: int
    jittable = False

    @property
    def spec(self) -> EnvSpec:
        """Of the oddity."""
        return self.oddity.spec()

    def reset(self, key: Any) -> Any:
        """Time 0."""
        time, none = np.zeros(self.num_envs, int), np.zeros(self.num_envs, bool)
        now = self.oddity.observation(np, time)
        reward = np.zeros((self.num_envs, AGENTS), np.float32)
        ends = none, none, ~none
        rest = now.obs, now.state, self.oddity.metrics(np, time)
        return time, TimeStep._make((*now, reward, *ends, *rest))

    def step(self, state: Any, action: Any) -> Any:
        """One step later, with automatic resets."""
        odd, after = self.oddity, state + 1
        reward, ended = odd.rewards(np, np.asarray(action), state), odd.ended(np, after)
        final, time = odd.observation(np, after), np.where(ended, 0, after)
        now, none = odd.observation(np, time), np.zeros(self.num_envs, bool)
        rest = final.obs, final.state, odd.metrics(np, after)
        return time, TimeStep._make((*now, reward, ended, none, ended, *rest))


@dataclass(frozen=True)
class OddHostEnv(HostEnv):
    """Makes batches of the task in NumPy."""

    oddity: Oddity
    max_episode_steps = LENGTH

    @property
    def spec(self) -> EnvSpec:
        """Of the oddity."""
        return self.oddity.spec()

    def vectorise(self, num_envs: int) -> OddBatch:
        """A batch."""
        return OddBatch(self.oddity, num_envs)
