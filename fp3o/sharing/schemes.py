"""Parameter sharing as data: for every layer, a map from agent to group. Needs no JAX.

Agents of one group use the same parameters in that layer. Which arrays exist, whose gradients
update them, and which gradients are clipped together all follow from these maps.

| name      | all layers but the last | last layer         |
|-----------|-------------------------|--------------------|
| `full`    | one group               | one group          |
| `partial` | one group               | one per agent      |
| `none`    | one per agent           | one per agent      |
| `by_type` | one per agent type      | one per agent type |
| a map     | as given                | as given           |

A map can also be given as a dict (agents by group, or group by agent) or as a function of the
task's `EnvSpec`. `auto` is a map estimated from random actions (`auto.py`). A run resolves all of
these to an explicit map before training and stores that.
"""

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fp3o.errors import SettingError, nearest
from fp3o.imports import foreign_code, load
from fp3o.options import show, to_type
from fp3o.sharing.maps import Sharing, check_maps, renumber
from fp3o.spec import EnvSpec

AUTO = "auto"
"""Name of the scheme whose groups a run estimates before training."""

PlainSharing = str | Sequence[int] | Sequence[Sequence[int]]
"""A named scheme, one agent-to-group map for all layers, or one map per layer."""

SharingSpec = PlainSharing | Mapping[Any, Any] | Callable[[EnvSpec], Any]
"""Also a dict, `{"legs": (0, 1), "arms": (2, 3)}` or `{0: "leg", 1: "leg", 2: "arm", 3: "arm"}`,
or a function that returns any of these."""


@dataclass(frozen=True)
class Scheme:
    """A named parameter sharing."""

    title: str
    """Name in tables and figures."""
    summary: str
    """One sentence that describes the scheme."""
    groups: Callable[[Sequence[int], int], Sequence[Sequence[int]]]
    """Agent types and number of layers -> one map per layer."""
    home: str | None = None
    """Module that registers a custom scheme; None: built in."""


SHARINGS: dict[str, Scheme] = {}
"""All schemes by name, in the order of tables and figures."""


def register_sharing(
    function: Callable[..., Any] | None = None, *, title: str = "", summary: str = ""
) -> Any:
    """Decorate a function of agent types and number of layers: its name becomes a sharing scheme.

    Without `title` and `summary`, the function's name and the first line of its docstring are
    used. A run stores `my_module:my_scheme` and imports that module to resume.
    """

    def register(target: Callable[..., Any]) -> Callable[..., Any]:
        name, home = target.__name__, target.__module__
        if name in SHARINGS and SHARINGS[name].home != home:
            raise SettingError(f"the sharing {name!r} is already registered: choose another name")
        line = (target.__doc__ or "").strip().partition("\n")[0]
        label = title or name.replace("_", " ")
        SHARINGS[name] = Scheme(label, summary or line, target, home)
        return target

    return register if function is None else register(function)


def _built_in(name: str, title: str, summary: str) -> Callable[..., Any]:
    def register(target: Callable[..., Any]) -> Callable[..., Any]:
        SHARINGS[name] = Scheme(title, summary, target)
        return target

    return register


@_built_in("full", "full", "one network for all agents")
def _full(agent_types: Sequence[int], num_layers: int) -> Sharing:
    return ((0,) * len(agent_types),) * num_layers


@_built_in("partial", "partial", "all layers shared except the last")
def _partial(agent_types: Sequence[int], num_layers: int) -> Sharing:
    return (*_full(agent_types, num_layers - 1), *_none(agent_types, 1))


@_built_in("none", "none", "one network per agent")
def _none(agent_types: Sequence[int], num_layers: int) -> Sharing:
    return (tuple(range(len(agent_types))),) * num_layers


@_built_in("by_type", "by type", "one network per agent type")
def _by_type(agent_types: Sequence[int], num_layers: int) -> Sharing:
    return (renumber(agent_types),) * num_layers


@_built_in(
    AUTO,
    "auto",
    "one network per group of agents whose actions have the same effects, estimated from random "
    "actions",
)
def _auto(agent_types: Sequence[int], num_layers: int) -> Sharing:
    raise SettingError(
        "sharing 'auto' is estimated from an environment before training: call "
        "`fp3o.auto_sharing(env)`"
    )


def get_scheme(name: str) -> Scheme:
    """Scheme by name; `my_module:my_scheme` imports the module that registers it."""
    module, _, inner = name.rpartition(":")
    if module and inner not in SHARINGS:
        load(module)
    if inner not in SHARINGS:
        raise SettingError(
            f"unknown sharing {name!r}: {nearest(name, SHARINGS)}, or give a map from agent to "
            "group such as (0, 0, 1)"
        )
    return SHARINGS[inner]


def parse_sharing(value: Any, setting: str = "sharing") -> Any:
    """Read a sharing: a name, a map, one map per layer, a dict or a function.

    As text: `0,0,1`, `[[0,0],[0,1]]`, `{"legs": [0, 1], "arms": [2]}`, `my_module:my_groups`.
    """
    if isinstance(value, str):
        structured = value[:1] in ("", "[", "{")
        if not structured and not re.fullmatch(r"[0-9]+(,[0-9]+)*", value):
            return _parse_name(value, setting)
        try:
            value = json.loads(value if structured else f"[{value}]")
        except (ValueError, RecursionError):
            raise SettingError(f"{setting}: cannot read {show(value)}, write [0,0,1]") from None
    return _parse_groups(value, setting)


def _parse_groups(value: Any, setting: str) -> Any:
    """A map, one map per layer, a dict or a function; maps contain integers only."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {_parse_key(key): group for key, group in value.items()}
    if callable(value):
        return value
    if not isinstance(value, list | tuple):
        raise SettingError(
            f"{setting} must be a name or a map from agent to group, got {show(value)}"
        )
    layered = any(isinstance(layer, list | tuple) for layer in value)
    if layered and not all(isinstance(layer, list | tuple) for layer in value):
        raise SettingError(f"{setting} is one map (integers) or one map per layer, not both")
    groups = tuple[int, ...]
    if layered:
        return tuple(to_type(f"a layer of {setting}", groups, layer) for layer in value)
    return to_type(setting, groups, value)


def _parse_key(key: Any) -> Any:
    """The index of an agent, which JSON writes as text, or the name of a group."""
    text = str(key)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else key


def _parse_name(name: str, setting: str) -> Any:
    """A scheme's full name, or the function of the task at an import path."""
    loaded = load(name) if ":" in name else None
    for known, scheme in SHARINGS.items():
        if scheme.home and (known == name or scheme.groups is loaded):
            return f"{scheme.home}:{known}"
    return name if loaded is None else _parse_groups(loaded, setting)


def resolve_groups(sharing: SharingSpec, task: EnvSpec) -> PlainSharing:
    """Sharing as a run stores it: functions are called, dicts become maps."""
    if callable(sharing):
        with foreign_code("the function of the sharing cannot be used"):
            sharing = parse_sharing(sharing(task))
    if not isinstance(sharing, Mapping):
        return sharing  # pyright: ignore[reportReturnType]
    values = sharing.values()
    by_group = all(isinstance(value, list | tuple) for value in values)
    pairs = [
        (agent, group)
        for key, value in sharing.items()
        for agent, group in ([(agent, key) for agent in value] if by_group else [(key, value)])
    ]
    agents = [agent for agent, _ in pairs if isinstance(agent, int)]
    readable = len(agents) == len(pairs) and all(isinstance(x, Hashable) for _, x in pairs)
    labels = dict(pairs) if readable else {}
    if len(pairs) != task.num_agents or {*labels} != {*range(task.num_agents)}:
        raise SettingError(
            f"the sharing {show(dict(sharing))} must name each of the agents 0 to "
            f"{task.num_agents - 1} once"
        )
    order = list(dict.fromkeys(labels[agent] for agent in range(task.num_agents)))
    return tuple(order.index(labels[agent]) for agent in range(task.num_agents))


def layer_groups(sharing: PlainSharing, agent_types: Sequence[int], num_layers: int) -> Sharing:
    """Map from agent to group in each of `num_layers` layers, for agents of these types."""
    if isinstance(sharing, str):
        with foreign_code(f"the sharing {sharing} cannot be used"):
            sharing = get_scheme(sharing).groups(agent_types, num_layers)
    return check_maps(sharing, len(agent_types), num_layers)
