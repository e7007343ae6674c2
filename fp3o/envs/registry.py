"""The tasks that have a name: how to make one, its settings, its scripted policies, its picture."""

import re
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

from fp3o.envs.adapters import python as own
from fp3o.envs.api import Game, HostGame
from fp3o.envs.mamujoco import catalogue as bodies
from fp3o.envs.mamujoco.tasks import _body
from fp3o.envs.mpe.tasks import _particle
from fp3o.envs.smac import maps as battles
from fp3o.envs.smac.tasks import _skirmish
from fp3o.envs.starcraft2.tasks import _real
from fp3o.envs.task import Task
from fp3o.envs.toys import matrix as matrices
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.toys.tasks import _matrix, _probe
from fp3o.errors import nearest

ADAPTERS: Mapping[str, tuple[str, str]] = {
    "pettingzoo": (
        "fp3o.envs.adapters.pettingzoo",
        "a PettingZoo parallel environment, by import path",
    ),
    "jaxmarl": ("fp3o.envs.adapters.jaxmarl", "an environment of JaxMARL"),
    "jumanji": ("fp3o.envs.adapters.jumanji", "a multi-agent environment of Jumanji"),
    "gymnasium": ("fp3o.envs.adapters.gymnasium", "a Gymnasium environment: a team of one"),
    "python": ("fp3o.envs.adapters.python", "your own game, by import path"),
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
