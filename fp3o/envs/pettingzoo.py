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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fp3o.envs.crew import Crew, Desk, Games, form, without_screen
from fp3o.envs.pettingzoo_worker import MASK, Choice, Dial, Launch, Layout, Sense, Table, build
from fp3o.envs.workers import Patience, checked
from fp3o.errors import nearest
from fp3o.spaces import Box, Discrete, EnvSpec

FAMILY, RULES = "pettingzoo", "default"
REWARDS = ("mean", "sum", "own")
ON_FAILURE = ("replace", "stop")
SAYS = ("max_cycles", "max_episode_steps", "episode_limit", "max_steps")
"""Where environments say how long an episode can be."""
FALLBACK = 1000
"""The longest an episode can be where nobody says it."""


class Facts(NamedTuple):
    """What is known of a task when one of its environments has been looked at."""

    spec: EnvSpec
    layout: Layout


@dataclass(frozen=True)
class PettingZoo:
    """A task made of PettingZoo environments, ready to be made in any number.

    `make` is a function, or where to import it from: `my_package.my_env:parallel_env`,
    `my_package.my_env.parallel_env`, or a module that has a `parallel_env`. PettingZoo's own
    registry is `pettingzoo:make`, with the arguments `env_type="parallel"` and `id`.
    """

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
    patience: Patience = Patience()  # noqa: RUF009
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
    def longest(self) -> int:
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
        waits = zip(Patience._fields, self.patience, usual.patience, strict=True)
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

    def filmed(self) -> "PettingZoo":
        """The same task with pictures."""
        return replace(self, render_mode="rgb_array", workers=0)

    def batch(self, num_envs: int) -> Games:
        """Environments that are stepped together; they are made at the first reset."""
        spec, layout = self._facts
        kwargs = dict(self.kwargs)
        if self.workers:
            launch = self._portable(Launch(self.make, kwargs, layout))
            stop = self.on_failure == "stop"
            patience = self.patience._replace(restarts=0) if stop else self.patience
            return Games(spec, Crew(launch, form(spec), num_envs, patience))
        if self.render_mode and num_envs == 1:
            without_screen()
            kwargs["render_mode"] = self.render_mode
        return Games(spec, Desk(Launch(self.make, kwargs, layout), form(spec), num_envs))

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
    known = [*PLAIN, *(f"patience.{name}" for name in Patience._fields)]
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
        plain["patience"] = Patience(**waits)
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


class _Gently:
    """Closes an environment; it may not be able to before anything has happened."""

    def __init__(self, env: Any):
        self._env = env

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._env.close()


def look(env: Any, task: PettingZoo) -> Facts:
    """Find out the facts of a task by one of its environments."""
    agents = team(env)
    seen = [env.observation_space(agent) for agent in agents]
    done = [env.action_space(agent) for agent in agents]
    senses = tuple(sense(agent, space) for agent, space in zip(agents, seen, strict=True))
    hands: Any = tuple(hand(agent, space) for agent, space in zip(agents, done, strict=True))
    actions, idle, places = together(agents, hands, done)
    env.reset(seed=0)
    central = state_size(env)
    limit = task.limit or said(env) or FALLBACK
    layout = Layout(
        agents, senses, hands, actions.mask, idle, places, central, task.reward, limit,
        tuple(task.outcomes),
    )  # fmt: skip
    spec = EnvSpec(
        name=task.name,
        actions=actions,
        obs_size=max(one.size for one in senses),
        state_size=central or sum(one.size for one in senses),
        kinds=kinds(agents, list(zip(seen, done, strict=True))),
        truncates=True,
        shares=len(agents) if task.reward == "sum" else 1,
        outcomes=tuple(task.outcomes),
    )
    checked(Table(env, layout).reset(0, 0), form(spec).answer)  # does it keep its word?
    return Facts(spec, layout)


def team(env: Any) -> tuple[Any, ...]:
    """All agents that may ever be there."""
    if hasattr(env, "agent_iter"):
        raise ValueError(
            "this is an AEC environment, in which agents take turns; give the parallel one, as "
            "`parallel_env`, or wrap it with `pettingzoo.utils.aec_to_parallel`"
        )
    agents = getattr(env, "possible_agents", None)
    if not agents:
        raise ValueError(
            f"{type(env).__name__} names no possible_agents; a ParallelEnv that does is needed"
        )
    return tuple(agents)


def sense(agent: Any, space: Any) -> Sense:
    """How an agent's observations become numbers."""
    if isinstance(space, spaces.Dict):
        if "observation" not in space.spaces or space.spaces.keys() - {"observation", MASK}:
            why = f"a Dict must have 'observation' and {MASK!r} only"
            raise unsupported(agent, "observations", space, why)
        inner = plain_sense(agent, space["observation"])
        return Sense(inner.size, inner.choices, inner.start, boxed=True)
    return plain_sense(agent, space)


def plain_sense(agent: Any, space: Any) -> Sense:
    """How observations that are no dictionaries become numbers."""
    if is_image(space):
        raise unsupported(agent, "observations", space, "images need other networks than fp3o has")
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return Sense(int(np.prod(space.shape)))
    if isinstance(space, spaces.Discrete):
        return Sense(int(space.n), (int(space.n),), (int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(space.nvec.ravel().tolist())
        return Sense(sum(sizes), sizes, tuple(np.ravel(space.start).tolist()))
    raise unsupported(
        agent, "observations", space,
        "supported are Box, Discrete, MultiDiscrete, MultiBinary, and a Dict of 'observation' and "
        f"{MASK!r}",
    )  # fmt: skip


def is_image(space: Any) -> bool:
    """A picture in colours, by what environments declare."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def hand(agent: Any, space: Any) -> Choice | Dial:
    """How an agent's choices or numbers become actions."""
    if isinstance(space, spaces.Discrete):
        return Choice((int(space.n),), np.array([space.start], space.dtype), ())
    if isinstance(space, spaces.MultiDiscrete):
        start = np.ravel(space.start).astype(space.dtype)
        return Choice(tuple(space.nvec.ravel().tolist()), start, space.nvec.shape)
    if isinstance(space, spaces.MultiBinary):
        number = int(np.prod(space.shape))
        return Choice((2,) * number, np.zeros(number, space.dtype), space.shape)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return Dial(space.low.ravel(), space.high.ravel(), space.shape)
    raise unsupported(
        agent, "actions", space,
        "supported are Discrete, MultiDiscrete, MultiBinary, and Box of real numbers",
    )  # fmt: skip


def unsupported(agent: Any, what: str, space: Any, why: str) -> ValueError:
    """An error that says which agent's space cannot be used."""
    return ValueError(f"agent {agent!r} has {what} of {space}, which is not supported: {why}")


def together(
    agents: Sequence[Any], hands: Sequence[Choice | Dial], done: Sequence[Any]
) -> tuple[Discrete | Box, np.ndarray, tuple[np.ndarray, ...]]:
    """The team's actions, what is left to the absent, and where entries of action masks go."""
    dials = [one for one in hands if isinstance(one, Dial)]
    picks = [one for one in hands if isinstance(one, Choice)]
    if dials and picks:
        first, other = hands.index(dials[0]), hands.index(picks[0])
        raise ValueError(
            f"agent {agents[first]!r} has actions of {done[first]}, agent {agents[other]!r} of "
            f"{done[other]}: a team must either choose (Discrete, MultiDiscrete, MultiBinary) or "
            "have vectors of real numbers (Box)"
        )
    if dials:
        box = Box(tuple(one.low.size for one in dials))
        return box, box.mask, (np.zeros(0, int),) * len(dials)
    longest = max(len(one.sizes) for one in picks)
    actions = Discrete(tuple(one.sizes + (1,) * (longest - len(one.sizes)) for one in picks))
    offsets = [0, *accumulate(actions.widths[:-1])]
    idle = np.zeros_like(actions.mask)
    idle[:, offsets] = True
    places = tuple(
        np.concatenate([
            offset + np.arange(size) for offset, size in zip(offsets, one.sizes, strict=False)
        ])
        for one in picks
    )  # fmt: skip
    return actions, idle, places


def kinds(agents: Sequence[Any], own: Sequence[tuple[Any, Any]]) -> tuple[int, ...]:
    """Agents of one name but for the number, and of the same spaces, are of one kind."""
    known: list[tuple[str, tuple[Any, Any]]] = []
    found = []
    for agent, pair in zip(agents, own, strict=True):
        mark = re.sub(r"[_-]?\d+$", "", str(agent)), pair
        if mark not in known:
            known.append(mark)
        found.append(known.index(mark))
    return tuple(found)


def state_size(env: Any) -> int:
    """Length of what `env.state()` gives; 0 if it gives nothing a critic could use."""
    with contextlib.suppress(Exception):  # there is none, or it is broken
        state = np.asarray(env.state())
        if state.dtype.kind in "biuf" and np.isfinite(state).all():
            picture = state.dtype == np.uint8 and state.ndim == 3
            return 0 if picture else state.size
    return 0


def said(env: Any) -> int | None:
    """How long an episode can be, by the environment's own words."""
    for source in (env, getattr(env, "unwrapped", env)):
        for name in SAYS:
            number = getattr(source, name, None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return number
    return None
