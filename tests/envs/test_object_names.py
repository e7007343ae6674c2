"""Names of tasks that are made of objects, and of the run directories of such runs."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fp3o
from fp3o.envs.registry import REGISTERED
from fp3o.envs.toys.probe import PROBES
from fp3o.imports import readable_name
from fp3o.runs.directory_name import free_path
from fp3o.runs.run_config import RunConfig

pytestmark = pytest.mark.usefixtures("registries")


def zoo(**kwargs: Any) -> Any:
    """A PettingZoo environment of one step."""
    from tiny_zoo import CHOSEN, SEEN, Scripted

    frame = {"obs": {"a": [0.0, 1.0]}, "ended": {"a": True}}
    return Scripted({"a": (SEEN, CHOSEN)}, [{"obs": {"a": [0.0, 1.0]}}, frame])


def closure() -> Callable[..., Any]:
    def team(**kwargs: Any) -> Any:
        return zoo(**kwargs)

    return team


class Maker:
    def __call__(self, **kwargs: Any) -> Any:
        return zoo(**kwargs)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (zoo, "zoo"),
        (closure(), "closure.team"),
        (lambda **kwargs: zoo(**kwargs), "scripted"),
        (functools.partial(zoo), "zoo"),
        (functools.partial(lambda: zoo()), "scripted"),
        (Maker(), "Maker"),
        (lambda: PROBES["credit"], "Probe"),
        (PROBES["credit"], "Probe"),
    ],
)
def test_objects_have_readable_names(source: Any, name: str) -> None:
    """No `<locals>`, no `<lambda>`: an environment's own name where a function has none."""
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    assert fp3o.register_env(source).name == f"own/{name}"


def test_an_object_of_pettingzoo() -> None:
    """It is called what it calls itself, else as its class."""
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    env = zoo()
    assert fp3o.register_env(env).name == "own/scripted"
    env.metadata = {}
    assert fp3o.register_env(env).name == "own/Scripted"


def test_readable_names_of_callables() -> None:
    assert readable_name(closure) == "closure" and readable_name(Maker) == "Maker"
    assert readable_name(lambda: 0) == "" and readable_name(functools.partial(zoo, a=1)) == "zoo"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"task": "probe/credit"}, "credit-mappo-full-1"),
        ({"task": "probe/credit", "algorithm": "fp3o:gated=false"}, "credit-fp3o-full-1"),
        ({"task": "probe/credit", "sharing": (0, 1, 1)}, "credit-mappo-custom-1"),
        ({"task": "own/a <b>:c d"}, "c_d-mappo-full-1"),
        ({"task": "own/.hidden*"}, "hidden_-mappo-full-1"),
    ],
)
def test_run_directories_have_safe_names(
    settings: dict[str, Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters, digits and `._+-`, whatever the task, algorithm and sharing are called."""
    monkeypatch.chdir(tmp_path)
    task = fp3o.register_env(PROBES["credit"])
    monkeypatch.setitem(REGISTERED, settings["task"], task)
    config = RunConfig().with_settings({"algorithm": "mappo", "sharing": "full", **settings})
    assert free_path(config) == Path("runs") / name
