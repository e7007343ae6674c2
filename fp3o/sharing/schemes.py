"""Parameter sharing as data: for every layer, a map from agent to group.

Agents of one group use the same numbers in that layer. Everything else follows from these maps:
which matrices exist, who is moved by whose gradient, what one gradient norm covers.

| kind      | every layer but the last | last layer  |
|-----------|--------------------------|-------------|
| `full`    | one group                | one group   |
| `partial` | one group                | own         |
| `none`    | own                      | own         |
| `by_type` | one group a kind         | one a kind  |
| a map     | as given                 | as given    |

A map may also be given as a dict, as groups of agents or as each agent's group, or by a function of
the task's `EnvSpec`; `auto` is a map that is found by random play (`grouping.py`). A run makes a
plain map of these before training begins, and keeps that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fp3o.errors import nearest
from fp3o.spec import EnvSpec

Groups = tuple[int, ...]
"""Agent -> group, for one layer. Groups are numbered from 0 without gaps."""

Sharing = tuple[Groups, ...]
"""One map a layer, from the input to the output."""

AUTO = "auto"
"""Groups that a run finds out by itself; here they must have been found."""

SHARINGS = ("full", "partial", "none", "by_type")
"""The kinds that have a name."""

PlainSharing = str | Sequence[int] | Sequence[Sequence[int]]
"""A named kind, one agent-to-group map for all layers, or one map a layer."""

SharingSpec = PlainSharing | Mapping[Any, Any] | Callable[[EnvSpec], Any]
"""Also a dict, `{"legs": (0, 1), "arms": (2, 3)}` or `{0: "leg", 1: "leg", 2: "arm", 3: "arm"}`,
and a function that gives one of all these."""


def resolve_groups(spec: SharingSpec, task: EnvSpec) -> PlainSharing:
    """Groups as a run keeps them: a function is asked, a dict becomes a map."""
    if callable(spec):
        spec = spec(task)
    if not isinstance(spec, Mapping):
        return spec  # pyright: ignore[reportReturnType]
    by_group = any(isinstance(value, (list, tuple)) for value in spec.values())
    pairs = (
        [(agent, group) for group, agents in spec.items() for agent in agents]
        if by_group
        else list(spec.items())
    )
    team = [*range(task.num_agents)]
    if sorted(agent for agent, _ in pairs) != team:
        raise ValueError(
            f"the sharing {dict(spec)} must name each of the agents 0 to {team[-1]} once"
        )
    labels = dict(pairs)
    order = list(dict.fromkeys(labels[agent] for agent in team))
    return tuple(order.index(labels[agent]) for agent in team)


def layer_groups(spec: PlainSharing, kinds: Sequence[int], num_layers: int) -> Sharing:
    """Spell out a sharing: the map of each of `num_layers` layers for agents of these `kinds`."""
    num_agents = len(kinds)
    own, one = tuple(range(num_agents)), (0,) * num_agents
    if isinstance(spec, str):
        named = {
            "full": (one,) * num_layers,
            "partial": (one,) * (num_layers - 1) + (own,),
            "none": (own,) * num_layers,
            "by_type": (renumber(kinds),) * num_layers,
        }
        if spec == AUTO:
            raise ValueError("sharing 'auto' is found by playing: `fp3o.auto_sharing(env)`")
        if spec not in named:
            raise ValueError(
                f"unknown sharing {spec!r}: {nearest(spec, (*SHARINGS, AUTO))}, or give a map from "
                "agent to group such as (0, 0, 1)"
            )
        return named[spec]
    return tuple(_checked(layer, num_agents) for layer in _per_layer(spec, num_layers))


def _per_layer(
    spec: Sequence[int] | Sequence[Sequence[int]], num_layers: int
) -> list[Sequence[int]]:
    """One map a layer; a single map serves all layers."""
    layers = [layer for layer in spec if not isinstance(layer, int)]
    if not layers:
        return [tuple(group for group in spec if isinstance(group, int))] * num_layers
    if len(layers) != len(spec):
        raise ValueError("a custom sharing is one map (integers) or one map a layer, not a mixture")
    if len(layers) != num_layers:
        raise ValueError(
            f"the custom sharing has {len(layers)} layers, the network has {num_layers} "
            "(hidden layers, then the recurrent layer if there is one, then the output)"
        )
    return layers


def _checked(groups: Sequence[int], num_agents: int) -> Groups:
    if len(groups) != num_agents:
        raise ValueError(
            f"the custom sharing {tuple(groups)} maps {len(groups)} agents, the task has "
            f"{num_agents}: give one group number for each agent"
        )
    if any(isinstance(group, bool) or group < 0 for group in groups):
        raise ValueError(f"groups are numbers from 0 on, got {tuple(groups)}")
    return renumber(groups)


def renumber(labels: Sequence[int]) -> Groups:
    """Number groups from 0 in order of appearance: (3, 1, 3) -> (0, 1, 0)."""
    order: dict[int, int] = {}
    return tuple(order.setdefault(label, len(order)) for label in labels)


def components(sharing: Sequence[Groups]) -> Groups:
    """Agent -> component: agents joined by a shared group in any layer, directly or in a chain.

    Nothing learned in one component can move another, so each has its own loss and its own
    gradient norm.
    """
    label = list(range(len(sharing[0])))
    for groups in sharing:
        for group in set(groups):
            joined = {label[i] for i, own in enumerate(groups) if own == group}
            label = [min(joined) if old in joined else old for old in label]
    return renumber(label)


def default_critic_sharing(actor: Sharing, num_layers: int) -> Sharing:
    """The critic's default sharing: that of the actor's first layer, in every layer.

    One critic for `full` and `partial`, one an agent for `none`, one a kind for `by_type`.
    """
    return (actor[0],) * num_layers
