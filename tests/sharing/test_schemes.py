"""Sharing schemes by name, as maps and as text; custom schemes."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fp3o.envs.toys.probe import PROBES
from fp3o.errors import SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.sharing.schemes import (
    SHARINGS,
    layer_groups,
    parse_sharing,
    register_sharing,
    resolve_groups,
)
from fp3o.spec import EnvSpec

SPEC = PROBES["credit"].spec


@pytest.mark.parametrize(
    ("name", "maps"),
    [
        ("full", ((0, 0, 0), (0, 0, 0))),
        ("partial", ((0, 0, 0), (0, 1, 2))),
        ("none", ((0, 1, 2), (0, 1, 2))),
        ("by_type", ((0, 1, 0), (0, 1, 0))),
    ],
)
def test_built_in_schemes(name: str, maps: Any) -> None:
    assert layer_groups(name, (7, 3, 7), 2) == maps
    assert SHARINGS[name].title and SHARINGS[name].summary and SHARINGS[name].home is None


def test_auto_is_listed_but_must_be_estimated_first() -> None:
    assert "auto" in SHARINGS
    with pytest.raises(SettingError, match=r"fp3o\.auto_sharing"):
        layer_groups("auto", (0, 0), 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("partial", "partial"),
        ("0,0,1", (0, 0, 1)),
        ("[[0,0],[0,1]]", ((0, 0), (0, 1))),
        ('{"legs": [0, 1], "arms": [2]}', {"legs": [0, 1], "arms": [2]}),
        ('{"0": "leg", "1": "arm"}', {0: "leg", 1: "arm"}),
        ([0, 1], (0, 1)),
    ],
)
def test_sharings_are_read(text: Any, value: Any) -> None:
    assert parse_sharing(text) == value


@pytest.mark.parametrize("value", ["[0,0", 3, ""])
def test_unreadable_sharings_are_rejected(value: Any) -> None:
    with pytest.raises(SettingError, match="critic_sharing"):
        parse_sharing(value, "critic_sharing")


@pytest.mark.usefixtures("registries")
def test_a_custom_scheme() -> None:
    @register_sharing
    def last_apart(agent_types: Sequence[int], num_layers: int) -> Any:
        """All agents but the last share."""
        one = (0,) * (len(agent_types) - 1) + (1,)
        return (one,) * num_layers

    scheme = SHARINGS["last_apart"]
    assert (scheme.title, scheme.summary) == ("last apart", "All agents but the last share.")
    assert layer_groups("last_apart", (0, 0, 0), 2) == ((0, 0, 1), (0, 0, 1))
    setup = Setup(SPEC, Config(sharing="last_apart", num_envs=4, rollout=6, hidden=(8,)))
    assert setup.actor_sharing[0] == (0, 0, 1)
    assert parse_sharing("last_apart") == f"{__name__}:last_apart"
    with pytest.raises(SettingError, match="already registered"):
        register_sharing(type("full", (), {}))


@pytest.mark.usefixtures("registries")
def test_a_custom_scheme_is_found_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file is enough; the full name loads it in another process."""
    (tmp_path / "pairing.py").write_text(
        "import fp3o\n\n\n"
        "@fp3o.register_sharing(title='pairs', summary='two agents per network')\n"
        "def pairs(agent_types, num_layers):\n"
        "    return (tuple(i // 2 for i in range(len(agent_types))),) * num_layers\n\n\n"
        "def by_hand(spec):\n"
        "    return 'none'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert parse_sharing("pairing:pairs") == "pairing:pairs"
    assert layer_groups("pairing:pairs", (0, 0, 0), 1) == ((0, 0, 1),)
    del sys.modules["pairing"], SHARINGS["pairs"]
    assert layer_groups("pairing:pairs", (0, 0, 0), 1) == ((0, 0, 1),)
    assert resolve_groups(parse_sharing("pairing:by_hand"), SPEC) == "none"
    with pytest.raises(SettingError, match="unknown sharing 'pairing:trios'"):
        layer_groups("pairing:trios", (0, 0, 0), 1)


def halves(spec: EnvSpec) -> dict[str, list[int]]:
    """Groups as a function of the task."""
    middle = spec.num_agents // 2
    return {"left": [*range(middle)], "right": [*range(middle, spec.num_agents)]}


@pytest.mark.parametrize(
    ("sharing", "groups"),
    [
        ({"a": [0, 2], "b": [1]}, (0, 1, 0)),
        ({0: "a", 1: "b", 2: "a"}, (0, 1, 0)),
        ('{"a": [0, 2], "b": [1]}', (0, 1, 0)),
        ('{"0": "a", "1": "b", "2": "b"}', (0, 1, 1)),
        (halves, (0, 1, 1)),
        (lambda spec: "none", "none"),
        (lambda spec: ((0, 0, 0), (0, 1, 2)), ((0, 0, 0), (0, 1, 2))),
    ],
)
def test_dicts_and_functions_become_maps(sharing: Any, groups: Any) -> None:
    assert resolve_groups(parse_sharing(sharing), SPEC) == groups


def test_dicts_name_each_agent_once() -> None:
    for wrong in ({"a": [0, 1]}, {"a": [0, 1], "b": [1, 2]}, {0: "a"}, {"a": [0, 1, 2, 3]}):
        with pytest.raises(SettingError, match="each of the agents 0 to 2 once"):
            resolve_groups(wrong, SPEC)
