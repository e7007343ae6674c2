"""Any PettingZoo environment as a task, in-process or in worker processes.

| per agent    | supported spaces                                                                |
|--------------|---------------------------------------------------------------------------------|
| actions      | Discrete, MultiDiscrete, MultiBinary: choices; Box of real numbers: a vector    |
| observations | Box, MultiBinary: flattened; Discrete, MultiDiscrete: one-hot; arrays of bytes  |
|              | with two or three axes: images                                                  |

Both may be nested in Dict and Tuple. The action mask is a key `action_mask` of the observation, or
of the infos. Agents may differ in their spaces: shorter observations are padded with zeros, and a
team with choices and vectors has mixed actions. The input of a centralised critic is `env.state()`
where that works, else all observations. How agents leave and how episodes end:
`pettingzoo_worker.ParallelEnvWorker`.
"""

import contextlib
import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

from fp3o.envs.adapters.pettingzoo_layout import Inspection, inspect_env
from fp3o.envs.adapters.pettingzoo_make import make_parallel_env
from fp3o.envs.adapters.pettingzoo_worker import MakeParallelEnv
from fp3o.envs.adapters.variants import (
    IMAGES,
    REWARDS,
    STATES,
    VARIANT,
    read_variant,
    split_names,
    write_variant,
)
from fp3o.envs.api import HostEnv
from fp3o.envs.rendering import without_display
from fp3o.envs.workers.in_process import InProcessPool
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import Timeouts, buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import SettingError, nearest, printable
from fp3o.imports import foreign_code, readable_name
from fp3o.spec import EnvSpec

FAMILY = "pettingzoo"

ON_FAILURE = ("replace", "stop")


@dataclass(frozen=True)
class PettingZooOptions:
    """Options of a PettingZoo task, as in `default:reward=sum,workers=2`."""

    reward: str = "mean"
    """Each agent's reward: `mean` or `sum` over all possible agents, or its `own`."""
    workers: int = 0
    """0: environments run in this process; otherwise each has a worker process."""
    max_episode_steps: int | None = None
    """Episodes are truncated after this many steps; by default as the environment declares."""
    episode_metrics: tuple[str, ...] = ()
    """Keys of the infos to report at the end of an episode, such as `won`."""
    images: str = "uint8"
    """Which arrays of observations are images: of bytes; `all`, also of real numbers; or `none`."""
    state: str = "env"
    """Input of a centralised critic: `env.state()` where that works, or all `observations`."""
    on_failure: str = "replace"
    """A worker that fails is replaced, or (`stop`) raises an error."""
    timeouts: Timeouts = Timeouts()  # noqa: RUF009

    def __post_init__(self) -> None:
        for name, allowed in (
            ("reward", REWARDS), ("on_failure", ON_FAILURE), ("images", IMAGES),
            ("state", STATES),
        ):  # fmt: skip
            if (value := getattr(self, name)) not in allowed:
                raise SettingError(f"unknown {name} {value!r}: {nearest(str(value), allowed)}")
        for name, least in (("workers", 0), ("max_episode_steps", 1)):
            number = getattr(self, name)
            if number is not None and (not isinstance(number, int) or number < least):
                raise SettingError(f"{name} must be an integer of at least {least}, got {number!r}")
        if not all(isinstance(limit, int | float) and limit >= 0 for limit in self.timeouts):
            raise SettingError(f"timeouts must be numbers of at least 0, got {self.timeouts}")

    @classmethod
    def read(cls, variant: str) -> "tuple[PettingZooOptions, dict[str, Any]]":
        """The options of a variant, and the arguments of the environment."""
        names = [field.name for field in fields(cls) if field.name != "timeouts"]
        timeout_names = {f"timeouts.{name}": name for name in Timeouts._fields}
        values, arguments = read_variant(variant, (*names, *timeout_names))
        options = {name: value for name, value in values.items() if name in names}
        if "episode_metrics" in options:
            options["episode_metrics"] = split_names(options["episode_metrics"])
        timeouts = Timeouts(
            **{timeout_names[name]: values[name] for name in values if name in timeout_names}
        )
        return cls(**options, timeouts=timeouts), dict(arguments)

    def write(self, kwargs: Mapping[str, Any]) -> str:
        """The variant with these options and arguments of the environment."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = {name: x for name, x in values.items() if x != getattr(DEFAULTS, name)}
        if self.episode_metrics:
            changed["episode_metrics"] = "+".join(self.episode_metrics)
        for name, seconds, usual in zip(
            Timeouts._fields, changed.pop("timeouts", Timeouts()), Timeouts(), strict=True
        ):
            if seconds != usual:
                changed[f"timeouts.{name}"] = seconds
        return write_variant(changed, kwargs.items())


DEFAULTS = PettingZooOptions()


class PettingZoo(HostEnv):
    """A task made of PettingZoo environments.

    `make` is a function, or its import path: `my_package.my_env:parallel_env`,
    `my_package.my_env.parallel_env`, or a module that has a `parallel_env`. PettingZoo's registry
    is `pettingzoo:make`, with the arguments `env_type="parallel"` and `id`. It is called with
    `kwargs`; `options` are those of `PettingZooOptions`.
    """

    renderable = True
    batch_type = PooledVecEnv

    def __init__(
        self,
        make: str | Callable[..., Any],
        kwargs: Mapping[str, Any] | None = None,
        *,
        render_mode: str | None = None,
        **options: Any,
    ):
        if not (isinstance(make, str) or callable(make)):
            raise SettingError(f"{make!r} is neither a function that makes environments nor a path")
        self.make, self.kwargs = make, dict(kwargs or {})
        self.options, self.render_mode = PettingZooOptions(**options), render_mode

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash((self.make, self.options, self.render_mode))

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the task; one environment is made to find them."""
        return self._inspection.spec

    @property
    def max_episode_steps(self) -> int:
        """Upper bound on the length of an episode."""
        return self._inspection.layout.max_episode_steps

    @property
    def variant(self) -> str:
        """The options as text, `default:reward=sum,workers=2,env.N=3`."""
        return self.options.write(self.kwargs)

    @property
    def name(self) -> str:
        """The name of the task; `own/...` if it cannot be recreated from text."""
        if isinstance(self.make, str):
            with contextlib.suppress(SettingError):
                return f"{FAMILY}/{self.make.replace(':', '.')}:{self.variant}"
        return f"own/{self._source}"

    def with_rendering(self) -> "PettingZoo":
        """The same task, made so that it can be rendered."""
        env = copy.copy(self)
        env.render_mode, env.options = "rgb_array", replace(self.options, workers=0)
        return env

    def vectorise(self, num_envs: int) -> PooledVecEnv:
        """Make a batch of environments; they are started at the first reset."""
        spec, layout = self._inspection
        kwargs, options = dict(self.kwargs), self.options
        if options.workers:
            make = self._picklable(MakeParallelEnv(self.make, kwargs, layout))
            stop = options.on_failure == "stop"
            timeouts = options.timeouts._replace(restarts=0) if stop else options.timeouts
            return PooledVecEnv(spec, WorkerPool(make, buffer_spec(spec), num_envs, timeouts))
        if self.render_mode and num_envs == 1:
            without_display()
            kwargs["render_mode"] = self.render_mode
        make = MakeParallelEnv(self.make, kwargs, layout)
        return self.batch_type(spec, InProcessPool(make, buffer_spec(spec), num_envs))

    @cached_property
    def _inspection(self) -> Inspection:
        try:
            with foreign_code("it cannot be made"):
                env = make_parallel_env(self.make, self.kwargs)
            try:
                with foreign_code("it cannot be used"):
                    return inspect_env(env, self.name, self.options)
            finally:
                with contextlib.suppress(Exception):  # it may need a reset before it can close
                    env.close()
        except SettingError as error:
            raise SettingError(f"{printable(self._source)}: {error}") from error

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.make, self.kwargs, self.options, self.render_mode

    @property
    def _source(self) -> str:
        if isinstance(self.make, str):
            return self.make
        return readable_name(self.make) or "lambda"

    def _picklable(self, make: MakeParallelEnv) -> MakeParallelEnv:
        """Check that worker processes can import the function that makes their environments."""
        module = getattr(self.make, "__module__", "")
        with contextlib.suppress(Exception):
            if module != "__main__" and pickle.loads(pickle.dumps(make)):
                return make
        raise SettingError(
            f"{self._source} cannot be given to worker processes: name a function of a module that "
            "they can import, as 'my_package.my_env:parallel_env', or use workers=0"
        )


@cache
def make_env(path: str, variant: str = VARIANT) -> PettingZoo:
    """A task by the import path of its environments and a variant with its options."""
    options, kwargs = PettingZooOptions.read(variant)
    env = PettingZoo(path, kwargs)
    env.options = options
    return env
