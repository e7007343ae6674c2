"""The tasks that have a name: how to make one, its settings, its scripted policies, its picture."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any

import jax
import numpy as np

from fp3o.envs import matrix as matrices
from fp3o.envs import mpe, mpe_scripted, mpe_view, mpe_world, own
from fp3o.envs.base import Env, Game, HostGame, batch_of
from fp3o.envs.mamujoco import catalogue as bodies
from fp3o.envs.probe import PROBES
from fp3o.envs.smac import maps as battles
from fp3o.errors import nearest
from fp3o.presets import MATRIX, PRESETS, Settings, battle, body
from fp3o.spaces import EnvSpec

Scripted = Callable[..., Any]
"""Game state and random key -> the team's actions: a policy that may look behind the scenes."""


@dataclass(frozen=True)
class Task:
    """A named task; `variants` are rules it can be played by, the first one is the default."""

    name: str
    summary: str
    build: Callable[[str], Game | HostGame]
    limit: int | None
    """The longest an episode can be; None: the game itself knows (`longest`)."""
    variants: tuple[str, ...] = ("default",)
    scripted: Callable[[Any], Mapping[str, Scripted]] | None = None
    picture: Callable[[Any, Any, str], np.ndarray] | None = None
    """Game, state of a batch and caption -> the batch's first environment as a picture."""
    presets: Mapping[str, Settings] = field(default_factory=dict)
    together: int = 500
    """Episodes that may be played at once where somebody asks for many."""

    def game(self, variant: str | None = None) -> Game | HostGame:
        """The task under one of its variants; some take options, as in `paper:obsk=2`."""
        chosen = self.variants[0] if variant is None else variant
        if (rules := chosen.partition(":")[0]) not in self.variants:
            raise ValueError(
                f"{self.name} has no variant {rules!r}: {nearest(rules, self.variants)}"
            )
        return self.build(chosen)

    def spec(self, variant: str | None = None) -> EnvSpec:
        """The task's facts."""
        return self.game(variant).spec

    def env(self, variant: str | None, num_envs: int) -> Env:
        """A batch of environments."""
        return batch_of(self.game(variant), num_envs)

    def longest(self, variant: str | None = None) -> int:
        """The longest an episode can be."""
        game: Any = self.game(variant)
        return self.limit or getattr(game, "longest", None) or game.limit

    def shown(self, variant: str | None = None) -> bool:
        """Whether there are pictures of it."""
        return self.picture is not None or hasattr(self.game(variant), "filmed")

    def preset(self, name: str | None = None) -> Settings:
        """Settings by name; without a name the task's default ones."""
        if name is None:
            return next(iter(self.presets.values()), {})
        if name not in self.presets:
            raise ValueError(f"{self.name} has no preset {name!r}: {nearest(name, self.presets)}")
        return self.presets[name]


def _particle(name: str, summary: str) -> Task:
    return Task(
        f"mpe/{name}", summary, partial(mpe.particle, name), mpe_world.LENGTH, mpe.VARIANTS,
        mpe_scripted.scripted, _particles, PRESETS[f"mpe/{name}"],
    )  # fmt: skip


def _particles(game: Any, state: Any, caption: str) -> np.ndarray:
    return mpe_view.picture(game, jax.tree.map(lambda x: x[0], state[0]), caption)


def _body(name: str) -> Task:
    """A MuJoCo task: any body, split in any way it can be."""
    name = bodies.canonical(name)
    profiles = bodies.profiles(name)
    presets = body(name, bodies.agents(name), "paper" in profiles)
    return Task(
        f"{bodies.FAMILY}/{name}", bodies.summary(name), partial(_mujoco, name), bodies.LIMIT,
        profiles, None, lambda game, state, caption: game.picture(state, caption), presets,
    )  # fmt: skip


def _mujoco(name: str, variant: str) -> Game | HostGame:
    from fp3o.envs.mamujoco.native import make  # imports MuJoCo, which takes a moment

    return make(name, variant)


def _skirmish(name: str) -> Task:
    """A battle of the published maps in the simulator."""
    return Task(
        f"{battles.FAMILY}/{name}", battles.summary(name), partial(_battle, name),
        battles.MAPS[name].limit, battles.LAYOUTS, _rules, _battlefield,
        battle(name, battles.agents(name)),
    )  # fmt: skip


def _battle(name: str, variant: str) -> Game:
    from fp3o.envs.smac.game import skirmish

    return skirmish(name, variant)


def _rules(game: Any) -> Mapping[str, Scripted]:
    from fp3o.envs.smac.scripted import scripted

    return scripted(game)


def _battlefield(game: Any, state: Any, caption: str) -> np.ndarray:
    from fp3o.envs.smac.view import picture

    return picture(game, jax.tree.map(lambda x: x[0], state[0]), caption)


def _real(name: str) -> Task:
    """The same map in StarCraft II itself, which the user brings."""
    presets = {
        kind: {**settings, "eval_episodes": 8, "final_episodes": 32}
        for kind, settings in battle(name, battles.agents(name)).items()
        if kind.startswith("paper")
    }
    return Task(
        f"{battles.REAL}/{name}", f"StarCraft II: {battles.summary(name)}",
        partial(_starcraft, name), battles.MAPS[name].limit, battles.LAYOUTS, presets=presets,
        together=8,
    )  # fmt: skip


def _starcraft(name: str, variant: str) -> HostGame:
    from fp3o.envs.starcraft2 import starcraft2

    return starcraft2(name, variant)


ADAPTERS: Mapping[str, tuple[str, str]] = {
    "pettingzoo": ("fp3o.envs.pettingzoo", "a PettingZoo parallel environment, by import path"),
    "jaxmarl": ("fp3o.envs.jaxmarl", "an environment of JaxMARL"),
    "jumanji": ("fp3o.envs.jumanji", "a multi-agent environment of Jumanji"),
    "gymnasium": ("fp3o.envs.gymnasium", "a Gymnasium environment: a team of one"),
    "python": ("fp3o.envs.own", "your own game, by import path"),
}
"""Families of tasks from elsewhere: the module whose `make(name, variant)` brings them here."""


def _adapted(family: str, target: str) -> Task:
    """A task from elsewhere; its options are those of the variant `default`."""
    path = target.replace(":", ".")
    # Each of those that are played at once may be a process.
    build, words = partial(_adapt, family, path), ADAPTERS[family][1]
    return Task(f"{family}/{path}", words, build, None, together=32)


@cache
def _adapt(family: str, path: str, variant: str) -> Game | HostGame:
    # One game for all who ask: what is compiled for it is found again.
    return import_module(ADAPTERS[family][0]).make(path, variant)


PROBE_WORDS = {
    "value": "nothing to do; is the value learned?",
    "credit": "is an action paid two steps later learned?",
    "roles": "do agents that see the same learn to differ?",
    "memory": "is a cue of two steps ago remembered?",
    "unequal": "do agents of unequal sizes learn together?",
    "target": "are continuous actions learned?",
}


def _probe(name: str) -> Task:
    game = PROBES[name]
    summary = f"tests: {PROBE_WORDS[name]}"
    return Task(f"probe/{name}", summary, lambda _: game, getattr(game, "length", 1))


def _matrix(name: str) -> Task:
    game = matrices.GAMES[name]
    summary = f"two agents choose once; the best pair is paid {game.best:g}"
    return Task(f"{matrices.FAMILY}/{name}", summary, lambda _: game, game.limit, presets=MATRIX)


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        _particle("simple_speaker_listener", "one agent sees the goal and speaks, the other moves"),
        _particle("simple_reference", "each agent knows the other's goal; both speak and move"),
        _particle("simple_spread", "three agents cover three landmarks without collisions"),
        *map(_body, bodies.names()),
        *map(_skirmish, battles.MAPS),
        *map(_probe, PROBES),
        *map(_matrix, matrices.GAMES),
    )
}
"""The tasks by name."""


ADOPTED: dict[str, Task] = {}
"""Tasks that are objects of this process."""


def adopt(thing: Any) -> Task:
    """Make a task of an object: a game, a ParallelEnv of PettingZoo, or a function that makes one.

    `fp3o.train(thing)` does so by itself. Another process that resumes, evaluates or films such a
    run adopts the object first: it has no import path by which it could be found.
    """
    game = own.game_of(thing)
    name = game.spec.name
    ADOPTED[name] = Task(name, "an object of Python", lambda _: game, None)
    return ADOPTED[name]


def find(name: str) -> Task:
    """A task by its name; `pettingzoo:my_package.my_env:parallel_env` is one of `ADAPTERS`."""
    if name in TASKS:
        return TASKS[name]
    if name in ADOPTED:
        return ADOPTED[name]
    family, _, rest = name.partition("/")
    if family == bodies.FAMILY and bodies.known(rest):
        return _body(rest)
    if family == battles.REAL and rest in battles.MAPS:
        return _real(rest)
    if family == own.OBJECTS:
        raise ValueError(
            f"{name} is an object of Python that this process does not know: `fp3o.adopt(env)` "
            "first, or train it by its import path"
        )
    family, _, rest = re.sub("[:/]", "/", name, count=1).partition("/")
    if family in ADAPTERS and rest:
        return _adapted(family, rest)
    raise ValueError(f"unknown task {name!r}: {nearest(name, TASKS)}")


def locate(text: str) -> tuple[Task, str | None]:
    """The task and the variant that `task:variant` (the name of a spec) stands for."""
    if text.partition(":")[0] in ADAPTERS:  # an import path, which has colons of its own
        return find(text), None
    if text in ADOPTED:
        return ADOPTED[text], None
    name, _, variant = text.partition(":")
    return find(name), variant or None


def make(name: str, variant: str | None = None) -> Any:
    """A named task: a pure game, ready for `Vectorised`, or one that makes its own batches."""
    return find(name).game(variant)
