"""Maps from agent to group, their validation and connected components. Needs no JAX."""

from collections.abc import Sequence

from fp3o.errors import SettingError
from fp3o.spec import EnvSpec

Groups = tuple[int, ...]
"""Agent -> group in one layer. Groups are numbered from 0 without gaps."""

Sharing = tuple[Groups, ...]
"""One map per layer, from the input to the output: convolutions come first."""


def check_maps(
    maps: Sequence[int] | Sequence[Sequence[int]], num_agents: int, num_layers: int
) -> Sharing:
    """Check one map for all layers, or one map per layer, and number the groups from 0."""
    layers = _one_map_per_layer(maps, num_layers)
    return tuple(_check_map(layer, num_agents) for layer in layers)


def _one_map_per_layer(
    maps: Sequence[int] | Sequence[Sequence[int]], num_layers: int
) -> list[Sequence[int]]:
    """Maps of all layers; a single map is used in every layer."""
    layers = [layer for layer in maps if not isinstance(layer, int)]
    if not layers:
        return [tuple(group for group in maps if isinstance(group, int))] * num_layers
    if len(layers) != len(maps):
        raise SettingError("a sharing map is one map (integers) or one map per layer, not both")
    if len(layers) != num_layers:
        raise SettingError(
            f"the sharing map has {len(layers)} layers, the network has {num_layers} "
            "(convolutions if there are any, hidden layers, the recurrent layer if there is one, "
            "the output)"
        )
    return layers


def _check_map(groups: Sequence[int], num_agents: int) -> Groups:
    if len(groups) != num_agents:
        raise SettingError(
            f"the sharing map {tuple(groups)} is for {len(groups)} agents, the task has "
            f"{num_agents}: give one group number per agent"
        )
    if any(isinstance(group, bool) or group < 0 for group in groups):
        raise SettingError(f"groups are numbers from 0 on, got {tuple(groups)}")
    return renumber(groups)


def renumber(labels: Sequence[int]) -> Groups:
    """Number groups from 0 in order of appearance: (3, 1, 3) -> (0, 1, 0)."""
    order: dict[int, int] = {}
    return tuple(order.setdefault(label, len(order)) for label in labels)


def split_off(sharing: Sharing, agents: Sequence[int]) -> Sharing:
    """The same sharing, but each of these agents is alone in its group in every layer."""
    if not agents:
        return sharing
    return tuple(
        renumber([-1 - i if i in agents else group for i, group in enumerate(groups)])
        for groups in sharing
    )


def obs_groups(spec: EnvSpec, alone: Sequence[int] = ()) -> Groups:
    """Agent -> agents of the same type whose observations have the same length.

    Each of those in `alone` is in a separate group.
    """
    labels = [*zip(spec.agent_types, spec.agent_obs_sizes, strict=True)]
    return split_off((renumber([labels.index(label) for label in labels]),), alone)[0]


def components(sharing: Sequence[Groups]) -> Groups:
    """Agent -> component: agents connected by a shared group in any layer, possibly in a chain.

    No gradient crosses components, so each has a separate loss and gradient norm.
    """
    label = list(range(len(sharing[0])))
    for groups in sharing:
        for group in set(groups):
            joined = {label[i] for i, other in enumerate(groups) if other == group}
            label = [min(joined) if old in joined else old for old in label]
    return renumber(label)


def default_critic_sharing(actor: Sharing, num_layers: int) -> Sharing:
    """Default sharing of the critic: that of the actor's first layer, in every layer.

    One critic for `full` and `partial`, one per agent for `none`, one per type for `by_type`.
    """
    return (actor[0],) * num_layers
