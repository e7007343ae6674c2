"""Tasks: a name, the environments behind it, their presets and baselines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fp3o.envs.api import Env, HostEnv, VecEnv
from fp3o.envs.vectorise import vectorise
from fp3o.errors import SettingError, nearest
from fp3o.spec import EnvSpec

Settings = Mapping[str, Any]
"""Settings of a run by name, as in a preset."""

Scripted = Callable[..., Any]
"""Environment state and random key -> the team's actions: a policy that may use the full state."""


@dataclass(frozen=True)
class Family:
    """A family of tasks, `name/...`; every folder of `fp3o.envs` lists its own in `tasks.FAMILIES`."""

    name: str
    summary: str
    get: "Callable[[str], Task | None]"
    """The task of a name without the family; None: there is no such task."""
    listed: tuple[str, ...] = ()
    """Names that `fp3o list` shows; a family may know more."""
    imports_code: bool = False
    """Whether names are import paths, so that making a task runs code of somebody else's."""


@dataclass(frozen=True)
class Task:
    """A named task; of its `variants` (sets of rules) the first one is the default."""

    name: str
    summary: str
    build: Callable[[str], Env | HostEnv]
    """Makes the environment of a variant."""
    variants: tuple[str, ...] = ("default",)
    baselines: Callable[[Any], Mapping[str, Scripted]] | None = None
    presets: Mapping[str, Settings] = field(default_factory=dict)
    max_parallel: int = 500
    """Most episodes to evaluate at once."""

    def env(self, variant: str | None = None) -> Env | HostEnv:
        """The environment of a variant; some variants take options, as in `paper:obsk=2`."""
        chosen = self.variants[0] if variant is None else variant
        if (rules := chosen.partition(":")[0]) not in self.variants:
            raise SettingError(
                f"{self.name} has no variant {rules!r}: {nearest(rules, self.variants)}"
            )
        return self.build(chosen)

    def spec(self, variant: str | None = None) -> EnvSpec:
        """Number of agents, sizes of observations and actions."""
        return self.env(variant).spec

    def vec_env(self, variant: str | None, num_envs: int) -> VecEnv:
        """A batch of environments."""
        return vectorise(self.env(variant), num_envs)

    def max_episode_steps(self, variant: str | None = None) -> int:
        """Upper bound on the length of an episode."""
        return self.env(variant).max_episode_steps

    def renderable(self, variant: str | None = None) -> bool:
        """Whether episodes can be rendered."""
        return self.env(variant).renderable

    def preset(self, name: str | None = None) -> Settings:
        """A preset by name; without a name the default one."""
        if name is None:
            return next(iter(self.presets.values()), {})
        if name not in self.presets:
            raise SettingError(f"{self.name} has no preset {name!r}: {nearest(name, self.presets)}")
        return self.presets[name]
