"""Interfaces of environments: as pure functions, on the host, or a batch of them.

| class     | what it is                                                | written by               |
|-----------|-----------------------------------------------------------|--------------------------|
| `Env`     | one environment as pure JAX functions                     | most authors of tasks    |
| `HostEnv` | a task simulated on the host, which makes its own batches | adapters, MuJoCo         |
| `VecEnv`  | a batch of environments with automatic resets             | returned by `fp3o.make`  |

Derive from one of the classes. All optional members are declared here with their defaults.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.envs.interface import require_shapes
from fp3o.errors import UserError
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

Act = Callable[..., Any]
"""Chooses actions `(e, n, d)` on the host from the step index, `obs`, `action_mask` and
`episode_start`."""


class Observation(NamedTuple):
    """Observations of the agents of one environment."""

    obs: Float[Array, "n f"]
    state: Float[Array, "n f2"]
    """Input of a centralised critic, one row per agent."""
    action_mask: Bool[Array, "n a"]
    alive: Bool[Array, " n"]


class _TaskBase(ABC):
    """Members that `Env` and `HostEnv` have in common."""

    spec: EnvSpec
    """Number of agents, sizes of observations and actions; an attribute or a property."""
    max_episode_steps: int
    """Upper bound on the length of an episode; an attribute or a property."""
    renderable: bool = False
    """Whether `render` draws something."""
    step_seconds: float | None = None
    """Simulated time per step, in seconds; None: the task has no clock."""


class Env(_TaskBase):
    """One environment as pure functions of its state."""

    @abstractmethod
    def reset(self, key: PRNGKeyArray) -> Any:
        """Sample the initial state of an episode."""

    @abstractmethod
    def step(self, state: Any, action: Array, key: PRNGKeyArray) -> tuple[Any, Array, Array, Array]:
        """Next state, reward `(n,)`, terminated, truncated."""

    @abstractmethod
    def observe(self, state: Any) -> Observation:
        """Observations of the agents in this state."""

    def episode_metrics(self, state: Any) -> Float[Array, " o"]:
        """The numbers that `EnvSpec.episode_metrics` names, read when an episode ends."""
        return jnp.zeros(0)

    def render(self, state: Any, caption: str) -> np.ndarray:
        """The state as an RGB image `(height, width, 3)`, uint8."""
        raise UserError(f"{self.spec.name} cannot be rendered")

    def vectorise(self, num_envs: int) -> "VecEnv":
        """Make a batch of environments that are stepped together, by default `VmapEnv`."""
        from fp3o.envs.vectorise import VmapEnv

        return VmapEnv(self, num_envs)


class HostEnv(_TaskBase):
    """A task whose environments are simulated on the host, in batches."""

    @abstractmethod
    def vectorise(self, num_envs: int) -> "VecEnv":
        """Make a batch of environments that are stepped together."""

    def with_rendering(self) -> "HostEnv":
        """The same task, made so that its batches can be rendered."""
        return self


class VecEnv(ABC):
    """A batch of `e` environments with automatic resets."""

    jittable: ClassVar[bool] = False
    """Whether JAX may trace `step`; if not, it is called on the host with NumPy arrays."""
    restorable: bool = True
    """Whether `step` continues from any state, also one returned by another batch or process."""
    num_envs: int
    """Number of environments, `e`."""
    spec: EnvSpec
    """Number of agents, sizes of observations and actions; an attribute or a property."""

    @abstractmethod
    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Start an episode in every environment.

        On the host, with several seeds, there is one key per seed, each for an equal share of the
        environments.
        """

    @abstractmethod
    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Apply the actions `(e, n, d)`; where an episode ends, the next one starts."""

    def rollout(self, state: Any, now: TimeStep, act: Act, num_steps: int) -> tuple[Any, TimeStep]:
        """Step `num_steps` times on the host: the last state and all time steps, `now` first.

        `act(t, obs, action_mask, episode_start)` chooses the actions of step `t`. Environments that
        can do this faster than step by step override it.
        """
        steps = [np.empty((num_steps + 1, *x.shape), x.dtype) for x in map(np.asarray, now)]
        for t in range(num_steps + 1):
            if t == 1:
                require_shapes(self.spec, self.num_envs, now, "step")
            for kept, x in zip(steps, now, strict=True):
                kept[t] = x
            if t < num_steps:
                state, now = self.step(state, act(t, now.obs, now.action_mask, now.episode_start))
        return state, TimeStep._make(steps)

    def render(self, state: Any, caption: str) -> np.ndarray:
        """The first environment as an RGB image `(height, width, 3)`, uint8."""
        raise UserError(f"{self.spec.name} cannot be rendered")

    def failure_counts(self) -> Mapping[str, int]:
        """Failures of worker processes so far, by metric name; empty where there are none."""
        return {}

    def close(self) -> None:  # noqa: B027
        """Release the resources of the environments: processes, files, windows."""
