"""Custom environments: by import path, `fp3o train python:my_module:my_env`, or as objects."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Array, PRNGKeyArray

from fp3o.envs.adapters.variants import VARIANT, read_variant, write_variant
from fp3o.envs.api import Env, HostEnv, Observation, VecEnv
from fp3o.envs.vectorise import NamedVecEnv, VmapEnv
from fp3o.errors import SettingError
from fp3o.imports import foreign_code, load, readable_name
from fp3o.spec import EnvSpec

FAMILY, OBJECTS = "python", "own"
"""Families of environments given by import path, and of objects of this process."""


@dataclass(frozen=True)
class NamedEnv(Env):
    """An environment renamed to the name under which its task is registered."""

    env: Env
    name: str

    @property
    def spec(self) -> EnvSpec:
        """The environment's, with the name replaced."""
        return replace(self.env.spec, name=self.name)

    @property
    def max_episode_steps(self) -> int:
        """The environment's."""
        return self.env.max_episode_steps

    @property
    def renderable(self) -> bool:
        """The environment's."""
        return self.env.renderable

    @property
    def step_seconds(self) -> float | None:
        """The environment's."""
        return self.env.step_seconds

    def reset(self, key: PRNGKeyArray) -> Any:
        """The environment's."""
        return self.env.reset(key)

    def step(self, state: Any, action: Array, key: PRNGKeyArray) -> tuple[Any, Array, Array, Array]:
        """The environment's."""
        return self.env.step(state, action, key)

    def observe(self, state: Any) -> Observation:
        """The environment's."""
        return self.env.observe(state)

    def episode_metrics(self, state: Any) -> Array:
        """The environment's."""
        return self.env.episode_metrics(state)

    def render(self, state: Any, caption: str) -> np.ndarray:
        """The environment's."""
        return self.env.render(state, caption)

    def vectorise(self, num_envs: int) -> VecEnv:
        """The environment's own batch, if it has one, with this name."""
        batch = self.env.vectorise(num_envs)
        return VmapEnv(self, num_envs) if type(batch) is VmapEnv else NamedVecEnv(batch, self.name)


def make_env(path: str, variant: str = VARIANT) -> Env | HostEnv:
    """The environment at `module.name`, or what the function or class there makes of `env.*`.

    The `EnvSpec.name` of a `HostEnv` must be the name of the task itself: its batches carry it.
    """
    _, arguments = read_variant(variant, ())
    name = f"{FAMILY}/{path}" + (f":{write_variant({}, arguments)}" if arguments else "")
    loaded: Any = load(path)
    with foreign_code(f"{path} cannot be made"):
        env = _checked(loaded(**dict(arguments)) if _is_factory(loaded) else loaded, path)
    if isinstance(env, HostEnv):
        if env.spec.name != name:
            raise SettingError(f"the EnvSpec.name of {path} is {env.spec.name!r}, not {name!r}")
        return env
    return NamedEnv(env, name)


def env_of(source: Any) -> Env | HostEnv:
    """The environment that an object is or makes: one of fp3o's classes, or of PettingZoo's."""
    factory = _is_factory(source)
    with foreign_code(f"{readable_name(source) or 'the environment'} cannot be made"):
        made = source() if factory else source
    if hasattr(made, "possible_agents"):
        from fp3o.envs.adapters.pettingzoo import PettingZoo

        named = factory and readable_name(source)
        return PettingZoo(source if named else _named(source if factory else _copies(made), made))
    env = _checked(made, type(made).__name__)
    return env if isinstance(env, HostEnv) else NamedEnv(env, f"{OBJECTS}/{type(made).__name__}")


def _is_factory(source: Any) -> bool:
    return isinstance(source, type) or (callable(source) and not hasattr(source, "spec"))


def _checked(env: Any, name: str) -> Env | HostEnv:
    if not isinstance(env, Env | HostEnv):
        raise SettingError(
            f"{name} is a {type(env).__name__}, not an environment: derive from fp3o.Env or "
            "fp3o.HostEnv, or give a ParallelEnv of PettingZoo or a function that makes one"
        )
    if not isinstance(env.spec, EnvSpec):
        raise SettingError(f"the spec of {name} is a {type(env.spec).__name__}, not an EnvSpec")
    if not hasattr(env, "max_episode_steps"):
        raise SettingError(f"{name} has no `max_episode_steps`, the maximum length of an episode")
    return env


def _copies(env: Any) -> Callable[..., Any]:
    """A function that makes copies of an environment; its render mode stays as it is."""

    def make(render_mode: str | None = None) -> Any:
        return copy.deepcopy(env)

    return make


def _named(make: Callable[..., Any], env: Any) -> Callable[..., Any]:
    """The same function under the name of the environment that it makes."""

    def named(**kwargs: Any) -> Any:
        return make(**kwargs)

    # PettingZoo's environments say their name; the class is often that of a wrapper.
    title = (getattr(env, "metadata", None) or {}).get("name")
    named.__qualname__ = title if isinstance(title, str) and title else type(env).__name__
    return named
