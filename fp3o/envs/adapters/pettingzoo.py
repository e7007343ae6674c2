"""Any PettingZoo `ParallelEnv` as a task: in this process, or in workers that are watched over.

| of an agent      | supported spaces                                                             |
|------------------|------------------------------------------------------------------------------|
| its actions      | Discrete, MultiDiscrete, MultiBinary: choices; Box of real numbers: a vector |
| its observations | Box of any shape, MultiBinary: the numbers; Discrete, MultiDiscrete: one-hot |
|                  | Dict of one of these, `observation`, and an `action_mask`                     |

Agents may differ in their spaces, but either all choose or all have vectors. Shorter observations
are padded with zeros. Action masks are taken from the observation or from the infos. The critic
sees `env.state()` if that works, and the observations of all agents in a row if it does not.
`pettingzoo_worker.Table` says who is alive and how episodes end.
"""

import ast
import contextlib
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from fp3o.envs.adapters.pettingzoo_spaces import Facts, _Gently, look
from fp3o.envs.adapters.pettingzoo_worker import Launch, build
from fp3o.envs.api import HostEnv
from fp3o.envs.rendering import without_display
from fp3o.envs.workers.in_process import InProcessPool
from fp3o.envs.workers.protocol import Timeouts
from fp3o.envs.workers.vec_env import PooledVecEnv, WorkerPool, buffer_spec
from fp3o.errors import nearest
from fp3o.spec import EnvSpec

FAMILY, RULES = "pettingzoo", "default"

REWARDS = ("mean", "sum", "own")

ON_FAILURE = ("replace", "stop")


@dataclass(frozen=True)
class PettingZoo(HostEnv):
    """A task made of PettingZoo environments, ready to be made in any number.

    `make` is a function, or where to import it from: `my_package.my_env:parallel_env`,
    `my_package.my_env.parallel_env`, or a module that has a `parallel_env`. PettingZoo's own
    registry is `pettingzoo:make`, with the arguments `env_type="parallel"` and `id`.
    """

    renderable = True
    make: str | Callable[..., Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What `make` is called with."""
    reward: str = "mean"
    """What each agent is paid: the mean or the sum over all possible agents, or its own."""
    workers: int = 0
    """0: environments are played in this process. Else each one has a process."""
    limit: int | None = None
    """Episodes are cut after so many steps; without it, after as many as the environment says."""
    outcomes: tuple[str, ...] = ()
    """Keys of the infos that are outcomes of an episode when it ends, such as `won`."""
    on_failure: str = "replace"
    """A worker that fails is replaced, or (`stop`) is an error."""
    patience: Timeouts = Timeouts()  # noqa: RUF009
    render_mode: str | None = None
    """Given to a single environment in this process, as `rgb_array`, so that it has a picture."""

    def __post_init__(self) -> None:
        for name, allowed in (("reward", REWARDS), ("on_failure", ON_FAILURE)):
            if (word := getattr(self, name)) not in allowed:
                raise ValueError(f"unknown {name} {word!r}: {nearest(str(word), allowed)}")
        for name, least in (("workers", 0), ("limit", 1)):
            number = getattr(self, name)
            if number is not None and (not isinstance(number, int) or number < least):
                raise ValueError(f"{name} must be a whole number from {least} on, got {number!r}")
        if not all(isinstance(wait, int | float) and wait >= 0 for wait in self.patience):
            raise ValueError(f"patience must be of numbers from 0 on, got {self.patience}")
        if not (isinstance(self.make, str) or callable(self.make)):
            raise ValueError(f"{self.make!r} is not a function that makes environments, nor a path")

    @property
    def spec(self) -> EnvSpec:
        """The task's facts; one environment is made to find them out."""
        return self._facts.spec

    @property
    def max_episode_steps(self) -> int:
        """The longest an episode can be."""
        return self._facts.layout.limit

    @property
    def variant(self) -> str:
        """The options in a word, as `default:reward=sum,workers=2,env.N=3`; `options` reads it."""
        usual = PettingZoo("")
        told: dict[str, Any] = {name: getattr(self, name) for name in PLAIN}
        told = {name: value for name, value in told.items() if value != getattr(usual, name)}
        if self.outcomes:
            told["outcomes"] = "+".join(self.outcomes)
        waits = zip(Timeouts._fields, self.patience, usual.patience, strict=True)
        told |= {f"patience.{name}": value for name, value, known in waits if value != known}
        told |= {f"env.{name}": value for name, value in sorted(self.kwargs.items())}
        words = ",".join(f"{name}={_word(value)}" for name, value in told.items())
        text = f"{RULES}:{words}" if words else RULES
        if replace(usual, make=self.make, render_mode=self.render_mode, **options(text)) != self:
            raise ValueError(f"these options cannot be written as a word: {dict(self.kwargs)}")
        return text

    @property
    def name(self) -> str:
        """By which the task can be made again, if it has been imported and its options allow it."""
        if isinstance(self.make, str):
            with contextlib.suppress(ValueError):
                return f"{FAMILY}/{self.make.replace(':', '.')}:{self.variant}"
        return f"own/{self._where}"

    def with_rendering(self) -> "PettingZoo":
        """The same task with pictures."""
        return replace(self, render_mode="rgb_array", workers=0)

    def vectorise(self, num_envs: int) -> PooledVecEnv:
        """Environments that are stepped together; they are made at the first reset."""
        spec, layout = self._facts
        kwargs = dict(self.kwargs)
        if self.workers:
            launch = self._portable(Launch(self.make, kwargs, layout))
            stop = self.on_failure == "stop"
            patience = self.patience._replace(restarts=0) if stop else self.patience
            return PooledVecEnv(spec, WorkerPool(launch, buffer_spec(spec), num_envs, patience))
        if self.render_mode and num_envs == 1:
            without_display()
            kwargs["render_mode"] = self.render_mode
        return PooledVecEnv(
            spec, InProcessPool(Launch(self.make, kwargs, layout), buffer_spec(spec), num_envs)
        )

    @cached_property
    def _facts(self) -> Facts:
        try:
            env = build(self.make, self.kwargs)
            with contextlib.closing(_Gently(env)):
                return look(env, self)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self._where}: {error}") from error

    @property
    def _where(self) -> str:
        if isinstance(self.make, str):
            return self.make
        return getattr(self.make, "__qualname__", type(self.make).__name__)

    def _portable(self, launch: Launch) -> Launch:
        """What workers can be told; they import what they need."""
        home = getattr(self.make, "__module__", "")
        with contextlib.suppress(Exception):
            if home != "__main__" and pickle.loads(pickle.dumps(launch)):
                return launch
        raise ValueError(
            f"{self._where} cannot be given to worker processes: name a function of a module they "
            "can import, as 'my_package.my_env:parallel_env', or use workers=0"
        )


PLAIN = ("reward", "workers", "limit", "outcomes", "on_failure")
"""Options that are one word each."""


@cache
def make(path: str, variant: str = RULES) -> PettingZoo:
    """A task by where its environments are imported from, and a variant with its options."""
    return PettingZoo(path, **options(variant))


def options(text: str) -> dict[str, Any]:
    """The options that a variant stands for, as `PettingZoo` takes them."""
    rules, _, rest = text.partition(":")
    if rules != RULES:
        raise ValueError(f"unknown variant {rules!r}: {nearest(rules, [RULES])}")
    known = [*PLAIN, *(f"patience.{name}" for name in Timeouts._fields)]
    found: dict[str, dict[str, Any]] = {"": {}, "env": {}, "patience": {}}
    # A comma that no option follows belongs to a value.
    for part in re.split(r",(?=[A-Za-z_][\w.]*=)", rest) if rest else ():
        name, sign, word = part.partition("=")
        group, _, key = name.rpartition(".")
        if not sign or not (group == "env" or name in known):
            raise ValueError(f"unknown option {part!r}: {nearest(name, known)}, env.<argument>")
        found[group][key] = _literal(word)
    plain, env, waits = found.values()
    if "outcomes" in plain:
        plain["outcomes"] = tuple(str(plain["outcomes"]).split("+"))
    if waits:
        plain["patience"] = Timeouts(**waits)
    return plain | ({"kwargs": env} if env else {})


def _word(value: Any) -> str:
    """A value as a word that `_literal` reads."""
    plain = isinstance(value, str) and re.fullmatch(r"[\w.+/-]+", value)
    return value if plain and _literal(value) == value else repr(value)


def _literal(word: str) -> Any:
    """A value of Python, or else the word itself."""
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word
