"""Several probe tasks as one environment: padded to common sizes, the task a number in its state.

The tasks then share one compiled program and train side by side, as seeds do.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Observation, VecEnv
from fp3o.envs.toys.probe import NUM_AGENTS, PROBES, Cue, Probe, Roles, Value
from fp3o.envs.vectorise import VmapEnv
from fp3o.spec import Discrete, EnvSpec
from fp3o.types import TimeStep

TASKS = ("value", "credit", "roles", "memory", "unequal")
PROBE_LIST = [PROBES[name] for name in TASKS]
CHOICES = 4


@dataclass(frozen=True)
class AnyProbe(Probe):
    """The probe with this index: the parameters of the discrete probes, looked up in arrays."""

    task: Any = 0

    @classmethod
    def of(cls, task: Any) -> "AnyProbe":
        look_up = lambda name: jnp.asarray([getattr(probe, name) for probe in PROBE_LIST])[task]  # noqa: E731
        names = ("sizes", "choices", "max_episode_steps", "shown_at", "scored_at")
        arrays: dict[str, Any] = {name: look_up(name) for name in names}
        return cls("mixture", **arrays, task=task)

    @property
    def width(self) -> int:
        return CHOICES

    @property
    def spec(self) -> EnvSpec:
        actions = Discrete(((CHOICES,),) * NUM_AGENTS)
        size = CHOICES + 1
        return EnvSpec("probe/mixture", actions, size, NUM_AGENTS * size, (0, 1, 2))

    def score(self, state: Cue, action: Int[Array, "n 1"]) -> Float[Array, ""]:
        rules = {Probe: Probe, Value: Value, Roles: Roles}
        worth = [rules[type(probe)].score(self, state, action) for probe in PROBE_LIST]
        return jnp.stack(worth)[self.task]

    def observe(self, state: Cue) -> Observation:
        action_mask = jnp.arange(CHOICES) < jnp.asarray(self.choices)[:, None]
        return super().observe(state)._replace(action_mask=action_mask)


@dataclass(frozen=True)
class Mixture(VecEnv):
    """A batch of the discrete probes; the task is part of the state and survives resets."""

    num_envs: int
    task: Any = 0
    """Task that `reset` starts with."""
    jittable = True

    @property
    def spec(self) -> EnvSpec:
        return AnyProbe.of(0).spec

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        envs, step = VmapEnv(AnyProbe.of(self.task), self.num_envs).reset(key)
        return (jnp.asarray(self.task), envs), step

    def step(self, state: Any, action: Array) -> tuple[Any, TimeStep]:
        task, envs = state
        envs, step = VmapEnv(AnyProbe.of(task), self.num_envs).step(envs, action)
        return (task, envs), step
