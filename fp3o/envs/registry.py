"""Tasks by name: families found in the folders of `fp3o.envs`, and registered objects."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from fp3o.envs.adapters.python import OBJECTS, env_of
from fp3o.envs.api import VecEnv
from fp3o.envs.task import MEASURED_PRESETS, Family, Task, random_baseline
from fp3o.envs.vectorise import CompiledEnv, vectorise
from fp3o.errors import SettingError, nearest
from fp3o.imports import open_search_folders

DEFAULT_TASK, DEFAULT_PRESET = "mpe/simple_speaker_listener", "demo"
"""Task and preset of `fp3o train` without arguments."""

_WITH_VARIANT = r"(.+?)(?::(default(?::.*)?|[A-Za-z_][\w.]*=.*))?"
"""Name and variant of a task that is named by an import path."""

REGISTERED: dict[str, Task] = {}
"""Tasks registered from objects of this process."""


@cache
def families() -> Mapping[str, Family]:
    """Every family by name, from `tasks.FAMILIES` of each folder beside this module."""
    package = __name__.rpartition(".")[0]
    folders = [info.name for info in iter_modules(import_module(package).__path__) if info.ispkg]
    names = [f"{package}.{folder}.tasks" for folder in folders]
    modules = [import_module(name) for name in names if find_spec(name)]
    return {family.name: family for module in modules for family in module.FAMILIES}


class _Tasks(Mapping[str, Task]):
    """The listed tasks of all families; each is made when it is looked up."""

    def __getitem__(self, name: str) -> Task:
        family, _, rest = name.partition("/")
        if family in families() and rest in families()[family].listed:
            return get_task(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (f"{family.name}/{name}" for family in families().values() for name in family.listed)

    def __len__(self) -> int:
        return sum(len(family.listed) for family in families().values())


TASKS: Mapping[str, Task] = _Tasks()
"""The listed tasks by name."""


def register_env(env: Any) -> Task:
    """Make a task of an object: an `Env`, a PettingZoo `ParallelEnv`, or a function that makes one.

    `fp3o.train(env)` does so automatically. A process that resumes, evaluates or renders such a run
    later registers the object first, because it has no import path by which it could be found.
    """
    env = env_of(env)
    name = env.spec.name
    REGISTERED[name] = Task(
        name, "a Python object", lambda _: env, baselines=random_baseline, presets=MEASURED_PRESETS
    )
    return REGISTERED[name]


def get_task(name: str) -> Task:
    """A task by name; `pettingzoo:my_package.my_env:parallel_env` names one by import path."""
    if name in REGISTERED:
        return REGISTERED[name]
    family, rest = _split(name)
    if family == OBJECTS:
        raise SettingError(
            f"{name} is a Python object that this process does not know: call "
            "`fp3o.register_env(env)` first, or train it by its import path"
        )
    if imports_code(name):
        open_search_folders()
    task = families()[family].get(rest) if family in families() and rest else None
    if task is None:
        raise SettingError(f"unknown task {name!r}: {nearest(name, TASKS)}")
    return task


def parse_task(text: str) -> tuple[Task, str | None]:
    """The task and the variant of `task:variant`, the form of `EnvSpec.name`."""
    if text in REGISTERED:
        return REGISTERED[text], None
    name, _, variant = text.partition(":")
    if imports_code(text):  # import paths contain colons, and the only variant is `default`
        name, variant = re.fullmatch(_WITH_VARIANT, text, re.DOTALL).groups()  # pyright: ignore
    return get_task(name), variant or None


def imports_code(task: str) -> bool:
    """Whether making a task imports code outside fp3o, in any spelling of its name.

    A task of an object that was registered in this process imports nothing.
    """
    family, _ = _split(task)
    return task not in REGISTERED and family in families() and families()[family].imports_code


def make(name: str, num_envs: int = 1, *, variant: str | None = None) -> VecEnv:
    """A batch of `num_envs` environments of a task, `mpe/simple_spread` or `smac/3m:smac`.

    Its `reset` and `step` are compiled where the environment is a pure JAX function.
    """
    task, named = parse_task(name)
    env = vectorise(task.env(variant or named), num_envs)
    return CompiledEnv(env) if env.jittable else env


def _split(name: str) -> tuple[str, str]:
    """The family and the rest of `family/rest` or `family:rest`."""
    family, *rest = re.split("[:/]", name, maxsplit=1)
    return family, "".join(rest)
