"""Vectorised environments: `vmap` of a pure environment, and many seeds on the host."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from fp3o.envs.api import Act, Env, HostEnv, Observation, VecEnv
from fp3o.envs.interface import require_shapes
from fp3o.imports import foreign_code
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep


def vectorise(env: Env | HostEnv, num_envs: int) -> VecEnv:
    """Make a batch of environments of a task."""
    with foreign_code(f"a batch of {env.spec.name} cannot be made"):
        return env.vectorise(num_envs)


@dataclass(frozen=True)
class VmapEnv(VecEnv):
    """A batch of one pure environment: a random stream per environment, and automatic resets."""

    env: Env
    num_envs: int
    jittable = True

    @property
    def spec(self) -> EnvSpec:
        """The environment's."""
        return self.env.spec

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Start an episode in every environment."""
        return jax.vmap(self._reset)(jax.random.split(key, self.num_envs))

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Step every environment."""
        return jax.vmap(self._step)(state, action)

    def _reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        key, reset_key = jax.random.split(key)
        env_state = self.env.reset(reset_key)
        observation, none = self.env.observe(env_state), jnp.zeros((), bool)
        reward = jnp.zeros(self.spec.num_agents)
        metrics = self.env.episode_metrics(env_state)
        step = TimeStep(
            *observation, reward, none, none, ~none, observation.obs, observation.state, metrics
        )
        return (env_state, key), step

    def _step(self, state: Any, action: Array) -> tuple[Any, TimeStep]:
        old, key = state
        key, step_key, reset_key = jax.random.split(key, 3)
        played, reward, terminated, truncated = self.env.step(old, action, step_key)
        final, ended = self.env.observe(played), terminated | truncated
        fresh = self.env.reset(reset_key)
        choose = partial(jax.tree.map, lambda a, b: jnp.where(ended, a, b))
        # If all episodes start alike, XLA computes this observation once for the whole batch.
        new, observation = (
            choose(fresh, played),
            Observation(*choose(self.env.observe(fresh), final)),
        )
        ends, metrics = (terminated, truncated, ended), self.env.episode_metrics(played)
        step = TimeStep(*observation, reward, *ends, final.obs, final.state, metrics)
        return (new, key), step

    def render(self, state: Any, caption: str) -> np.ndarray:
        """The first environment."""
        return self.env.render(jax.tree.map(lambda x: np.asarray(x[0]), state[0]), caption)


@dataclass(frozen=True)
class WrappedVecEnv(VecEnv):
    """A batch that is as another one, apart from what a subclass changes."""

    env: VecEnv

    @property
    def spec(self) -> EnvSpec:
        """The batch's."""
        return self.env.spec

    @property
    def num_envs(self) -> int:
        """The batch's."""
        return self.env.num_envs

    @property
    def restorable(self) -> bool:
        """The batch's."""
        return self.env.restorable

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Start an episode in every environment."""
        return self.env.reset(key)

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Step every environment."""
        return self.env.step(state, action)

    def render(self, state: Any, caption: str) -> np.ndarray:
        """The first environment."""
        return self.env.render(state, caption)

    def failure_counts(self) -> Mapping[str, int]:
        """The batch's."""
        return self.env.failure_counts()

    def close(self) -> None:
        """Close the environments."""
        self.env.close()


@dataclass(frozen=True)
class NamedVecEnv(WrappedVecEnv):
    """A jittable batch with another name."""

    name: str
    jittable = True

    @property
    def spec(self) -> EnvSpec:
        """The batch's, with the name replaced."""
        return replace(self.env.spec, name=self.name)


@dataclass(frozen=True)
class CompiledEnv(WrappedVecEnv):
    """A jittable batch with compiled `reset` and `step`, for loops outside a compiled program."""

    jittable = True

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Start an episode in every environment."""
        return self._compiled_reset(key)

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Step every environment."""
        return self._compiled_step(state, action)

    @cached_property
    def _compiled_reset(self) -> Any:
        return jax.jit(self.env.reset)

    @cached_property
    def _compiled_step(self) -> Any:
        return jax.jit(self.env.step)


@dataclass(frozen=True)
class SeedBatchedEnv(WrappedVecEnv):
    """A host batch of `s·e` environments as `s` seeds of `e` environments: arrays `(s, e, ...)`."""

    num_seeds: int

    @property
    def num_envs(self) -> int:
        """Environments per seed."""
        return self.env.num_envs // self.num_seeds

    def reset(self, key: Key[Array, " s"]) -> tuple[Any, TimeStep]:
        """Start an episode in every environment, with one key per seed."""
        state, now = self.env.reset(key)
        require_shapes(self.spec, self.env.num_envs, now, "reset")
        return self._by_seed(state, now)

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Step all seeds in one batch."""
        return self._by_seed(*self.env.step(state, self._together(action)))

    def rollout(self, state: Any, now: TimeStep, act: Act, num_steps: int) -> tuple[Any, TimeStep]:
        """Step all seeds in one batch."""

        def act_together(t: int, *arrays: Any) -> Any:
            return self._together(act(t, *map(self._apart, arrays)))

        flat = TimeStep._make(map(self._together, now))
        state, steps = self.env.rollout(state, flat, act_together, num_steps)
        return state, TimeStep._make(self._apart(x, 1) for x in steps)

    def _by_seed(self, state: Any, step: TimeStep) -> tuple[Any, TimeStep]:
        # Without a tree map: this happens at every step.
        return state, TimeStep._make(map(self._apart, step))

    def _together(self, x: Any) -> Any:
        return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])

    def _apart(self, x: Any, axis: int = 0) -> Any:
        shape = x.shape
        return x.reshape(*shape[:axis], self.num_seeds, self.num_envs, *shape[axis + 1 :])


def require_interface(env: VecEnv) -> None:
    """Raise `WrongShapeError` unless a JAX environment has the specified shapes and types.

    Its functions are traced, not compiled; those of a `VmapEnv` for one environment, without
    `vmap`, which takes half the time of a batch. What a host environment returns is checked when it
    is stepped for the first time.
    """
    if not env.jittable:
        return
    if type(env) is VmapEnv:
        count, batch = 1, VmapEnv(env.env, 1)
        first, second = _traced_timesteps(env.spec, (), batch._reset, batch._step)
        add_axis = partial(jax.tree.map, lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype))
        first, second = add_axis(first), add_axis(second)
    else:
        count = env.num_envs
        first, second = _traced_timesteps(env.spec, (count,), env.reset, env.step)
    for method, timestep in (("reset", first), ("step", second)):
        require_shapes(env.spec, count, timestep, method)


def _traced_timesteps(
    spec: EnvSpec, batch: tuple[int, ...], reset: Callable[..., Any], step: Callable[..., Any]
) -> tuple[TimeStep, TimeStep]:
    """Shapes and types of the time steps after `reset` and after `step`."""
    kind = jnp.zeros(0, int if spec.actions.integers else float).dtype
    action = jax.ShapeDtypeStruct((*batch, spec.num_agents, spec.actions.action_size), kind)
    state, first = jax.eval_shape(reset, jax.random.key(0))
    _, second = jax.eval_shape(step, state, action)
    return first, second
