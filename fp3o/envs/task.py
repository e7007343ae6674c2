"""Tasks: a name, the environments behind it, its presets and baselines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jaxtyping import Array, PRNGKeyArray

from fp3o.envs.api import Env, HostEnv, VecEnv
from fp3o.envs.vectorise import vectorise
from fp3o.errors import SettingError, nearest
from fp3o.spec import EnvSpec

Preset = Mapping[str, Any]
"""Settings of a run by name."""

ScriptedPolicy = Callable[[Any, PRNGKeyArray], Array]
"""The team's actions `(n, d)` from the state of an `Env` and a random key."""


BaselineRole = Literal["random", "uninformed", "oracle"]
"""Meaning of a baseline's score: `random` is 0 of a normalised score and `oracle` is 1; a policy
that does not exceed `uninformed` has learned nothing."""


@dataclass(frozen=True)
class Baseline:
    """A scripted policy, which may use the full state, to compare learned policies with.

    Without `act` it takes random available actions, or with `still` none, in any environment.
    """

    name: str
    title: str
    summary: str
    act: ScriptedPolicy | None = None
    role: BaselineRole | None = None
    still: bool = False
    """All actions are 0, as those of motors that do nothing: for tasks in which 0 is available."""

    def __post_init__(self) -> None:
        if self.still and self.act is not None:
            raise SettingError(f"the baseline {self.name!r} has both still=True and a function act")


def _no_baselines(env: Any) -> Sequence[Baseline]:
    return ()


def random_baseline(env: Any) -> Sequence[Baseline]:
    """The only baseline that every environment has."""
    summary = "uniformly random available actions; continuous ones have standard deviation 1"
    return (Baseline("random", "Random", summary, role="random"),)


MEASURED_PRESETS: Mapping[str, Preset] = {"default": {"eval_episodes": 0, "final_episodes": 0}}
"""Presets of tasks of unknown speed: evaluations have as many episodes as it allows."""


@dataclass(frozen=True)
class Family:
    """A family of tasks, `name/...`, listed in `tasks.FAMILIES` of its folder in `fp3o.envs`."""

    name: str
    summary: str
    get: "Callable[[str], Task | None]"
    """Look up a task by its name without the family; None: there is no such task."""
    listed: tuple[str, ...] = ()
    """Names that `fp3o list` shows; a family may know more."""
    imports_code: bool = False
    """Whether names are import paths, so that making a task runs code outside fp3o."""


@dataclass(frozen=True)
class Task:
    """A named task. The first of its `variants` (versions of the rules) is the default."""

    name: str
    summary: str
    build: Callable[[str], Env | HostEnv]
    """Makes the environment of a variant."""
    variants: tuple[str, ...] = ("default",)
    baselines: Callable[[Any], Sequence[Baseline]] = _no_baselines
    """Scripted policies for an environment of this task."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    """Settings by preset name; the first one is the default."""
    max_parallel: int = 500
    """Maximum number of episodes evaluated in parallel."""
    title: str = ""
    """Name in figures and tables; by default `name`."""
    takes_options: bool = False
    """Whether variants take options, as in `paper:obsk=2`."""
    canonical: Callable[[str], str] = str
    """One text for all variants that compute the same, as on another simulator."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)

    def env(self, variant: str | None = None) -> Env | HostEnv:
        """The environment of a variant; some variants take options, as in `paper:obsk=2`."""
        chosen = self.variants[0] if variant is None else variant
        rules = chosen.partition(":")[0] if self.takes_options else chosen
        if rules not in self.variants:
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

    def preset(self, name: str | None = None) -> Preset:
        """A preset by name; without a name the default one."""
        if name is None:
            return next(iter(self.presets.values()), {})
        if name not in self.presets:
            raise SettingError(f"{self.name} has no preset {name!r}: {nearest(name, self.presets)}")
        return self.presets[name]
