"""Your own game: by import path, `fp3o train python:my_module:my_game`, or as an object."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Array, PRNGKeyArray

from fp3o.envs.adapters.variants import read_variant, write_variant
from fp3o.envs.api import Env, HostEnv, Observation
from fp3o.imports import load
from fp3o.spec import EnvSpec

FAMILY, OBJECTS = "python", "own"
"""Games by import path, and games that are objects of this process."""


@dataclass(frozen=True)
class Named(Env):
    """A pure game under the name that leads back to it."""

    game: Any
    name: str

    @property
    def spec(self) -> EnvSpec:
        """The game's facts."""
        return replace(self.game.spec, name=self.name)

    @property
    def max_episode_steps(self) -> int:
        """The longest an episode can be."""
        return self.game.max_episode_steps

    def reset(self, key: PRNGKeyArray) -> Any:
        """The game's."""
        return self.game.reset(key)

    def step(self, state: Any, action: Array, key: PRNGKeyArray) -> tuple[Any, Array, Array, Array]:
        """The game's."""
        return self.game.step(state, action, key)

    def observe(self, state: Any) -> Observation:
        """The game's."""
        return self.game.observe(state)

    def episode_metrics(self, state: Any) -> Array:
        """The game's."""
        return self.game.episode_metrics(state)


def make(path: str, variant: str = "default") -> Env | HostEnv:
    """The game at `module.name`, or what the function or class there makes of the options `env.*`.

    It says in `max_episode_steps` how long an episode can be. One that lives on the host has to bear the name
    that leads back to it by itself: its environments carry it, too.
    """
    _, theirs = read_variant(variant, ())
    name = f"{FAMILY}/{path}" + (f":{write_variant({}, theirs)}" if theirs else "")
    found: Any = load(path)
    makes = isinstance(found, type) or (callable(found) and not hasattr(found, "spec"))
    game = found(**dict(theirs)) if makes else found
    if not isinstance(game, Env | HostEnv):
        raise ValueError(
            f"{path} is a {type(game).__name__}, not a game: it needs `spec`, and `reset`, `step` "
            "and `sight` (a pure game) or `batch` (one that lives on the host)"
        )
    if not hasattr(game, "max_episode_steps"):
        raise ValueError(
            f"{path} does not say how long an episode can be: give it a `max_episode_steps`"
        )
    if isinstance(game, HostEnv) and game.spec.name != name:
        raise ValueError(f"{path} is called {game.spec.name!r}: its EnvSpec.name must be {name!r}")
    return game if isinstance(game, HostEnv) else Named(game, name)


def env_of(thing: Any) -> Env | HostEnv:
    """The game that an object is, or that it makes: fp3o's, or one of PettingZoo's environments."""
    makes = isinstance(thing, type) or (callable(thing) and not hasattr(thing, "spec"))
    made = thing() if makes else thing
    if hasattr(made, "possible_agents"):
        from fp3o.envs.adapters.pettingzoo import PettingZoo

        return PettingZoo(thing if makes else copies(made))
    if not isinstance(made, Env | HostEnv):
        raise ValueError(
            f"{type(made).__name__} is nothing to train on: give a game (`spec`, `reset`, `step`, "
            "`sight`), a ParallelEnv of PettingZoo, or a function that makes one"
        )
    if isinstance(made, HostEnv):
        return made
    if not hasattr(made, "max_episode_steps"):
        raise ValueError(
            f"{type(made).__name__} does not say how long an episode can be: give it a `max_episode_steps`"
        )
    return Named(made, f"{OBJECTS}/{type(made).__name__}")


def copies(env: Any) -> Callable[..., Any]:
    """A function that makes environments like this one; a film takes the pictures it has."""

    def make(render_mode: str | None = None) -> Any:
        return copy.deepcopy(env)

    make.__qualname__ = type(env).__name__
    return make
