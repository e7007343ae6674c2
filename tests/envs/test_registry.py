"""Tests of the registry: families as folders, spellings of names, trust."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import fp3o
from fp3o import envs
from fp3o.envs.registry import families, get_task, imports_code, parse_task
from fp3o.errors import SettingError

TASKS = """
from fp3o.envs.task import Family, Task
from fp3o.envs.toys.probe import PROBES


def _get(name):
    env = PROBES.get(name)
    return env and Task(f"added/{name}", "a probe again", lambda variant: env, title="Added")


FAMILIES = (Family("added", "tasks of one new folder", _get, ("credit",)),)
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A family that is one folder, elsewhere on the package's path."""
    folder = tmp_path / "added_family"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tasks.py").write_text(TASKS)
    monkeypatch.setattr(envs, "__path__", [*envs.__path__, str(tmp_path)])
    families.cache_clear()
    yield
    families.cache_clear()


def test_a_family_is_one_folder(added: None) -> None:
    """Listed, made, stepped and checked like the others, without any other file."""
    assert "added/credit" in fp3o.TASKS and "added/roles" not in fp3o.TASKS
    assert get_task("added/roles").title == "Added"
    _, timestep = fp3o.make("added/credit", 3).reset(jax.random.key(0))
    assert timestep.obs.shape[0] == 3
    assert fp3o.check_env("added/credit", steps=20).ok
    with pytest.raises(SettingError, match="unknown task 'added/nothing'"):
        get_task("added/nothing")


def test_folders_without_tasks_are_not_families() -> None:
    assert "workers" not in families()
    assert {"probe", "matrix", "mpe", "mamujoco", "smac", "starcraft2", "python"} <= {*families()}


@pytest.mark.parametrize(
    "name",
    [
        "python:a.b:f", "python/a.b.f", "pettingzoo:a.b:parallel_env",
        "pettingzoo/a.b.f:default:env.n=3", "gymnasium/CartPole-v1",
    ],
)  # fmt: skip
def test_import_paths_are_known_as_such_in_every_spelling(name: str) -> None:
    assert imports_code(name)


@pytest.mark.parametrize("name", ["mpe/simple_spread:mpe2", "smac/3m", "own/Thing", "python", "x"])
def test_other_names_import_nothing(name: str) -> None:
    assert imports_code(name) == (name == "python")


def test_spec_names_find_their_task() -> None:
    """Import paths have colons themselves; variants have options."""
    for text, name, variant in (
        ("mpe/simple_spread:mpe2", "mpe/simple_spread", "mpe2"),
        ("pettingzoo:a.b:parallel_env", "pettingzoo/a.b.parallel_env", None),
        ("pettingzoo/a.b.f:default:reward=sum,env.N=3", "pettingzoo/a.b.f",
         "default:reward=sum,env.N=3"),
    ):  # fmt: skip
        task, found = parse_task(text)
        assert (task.name, found) == (name, variant)


@pytest.mark.usefixtures("registries")
def test_an_object_is_known_after_registration() -> None:
    with pytest.raises(SettingError, match="register_env"):
        get_task("own/Target")
    task = fp3o.register_env(fp3o.probe("target"))
    assert parse_task(task.name) == (task, None) and get_task("own/Target") is task
    assert fp3o.make("own/Target", 2).num_envs == 2
