"""Parameters of one network as the start of another, for other agents or another sharing.

Arrays are found by their names, so that whatever a network keeps in its parameters is taken along.
For every array and every group of the new network, the values are those of the group from which
its agents come. The entries of an agent's one-hot index are moved with the agents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fp3o.errors import SettingError
from fp3o.learning.optim import PackedParams
from fp3o.learning.setup import Role, Setup
from fp3o.policy.export import array_name, pack_params, parameter_shapes, unpack_params
from fp3o.sharing.maps import Groups


@dataclass(frozen=True)
class GroupedArrays:
    """The arrays of a network by name, each with its groups."""

    arrays: Mapping[str, np.ndarray]
    """Name -> values; the first axis is the group."""
    groups: Mapping[str, Groups]
    """Name -> agent -> group."""
    id_axes: Mapping[str, int]
    """Name -> axis that ends with the agents' one-hot index, for the arrays that have one."""

    @classmethod
    def of(cls, setup: Setup, role: Role, params: PackedParams) -> "GroupedArrays":
        """The parameters of the policy or the value network."""
        layout = setup.actor_layout if role == "actor" else setup.critic_layout
        leaves = jax.tree_util.tree_leaves_with_path(unpack_params(layout, params))
        names = [array_name(path) for path, _ in leaves]
        arrays = {name: np.asarray(leaf) for name, (_, leaf) in zip(names, leaves, strict=True)}
        groups = dict(zip(names, layout.map_of_leaf, strict=True))
        return cls(arrays, groups, _id_axes(setup, role, arrays))


@dataclass(frozen=True)
class Origin:
    """Saved parameters, and the agents of a new team that start from them."""

    name: str
    """Where they are, for messages."""
    saved: GroupedArrays
    num_agents: int
    """Number of agents of the saved team."""
    agents: Mapping[int, int]
    """Agent of the new team -> agent of the saved one."""


def transferred(new: GroupedArrays, origins: Sequence[Origin]) -> dict[str, np.ndarray]:
    """The new network's arrays with the values of the origins; other agents keep theirs."""
    for origin in origins:
        if unknown := {*new.arrays} ^ {*origin.saved.arrays}:
            raise SettingError(
                f"{origin.name} does not fit: only one of both networks has {sorted(unknown)[0]}"
            )
    return {name: _transferred_array(name, new, origins) for name in new.arrays}


def transferred_params(
    setup: Setup, role: Role, params: PackedParams, origins: Sequence[Origin]
) -> PackedParams:
    """Packed parameters of the policy or the value network with the values of the origins."""
    layout = setup.actor_layout if role == "actor" else setup.critic_layout
    new = transferred(GroupedArrays.of(setup, role, params), origins)
    return pack_params(
        layout,
        jax.tree_util.tree_map_with_path(
            lambda path, old: new[array_name(path)].astype(old.dtype),
            jax.eval_shape(layout.unpack, params),
        ),
    )


def complete_map(agents: Mapping[int, int], team: int, saved: int) -> list[int]:
    """An agent of the saved team for every agent of the new one, all different if they can be."""
    free = [agent for agent in range(saved) if agent not in agents.values()]
    chosen = dict(agents)
    for agent in (x for x in range(team) if x not in agents):
        taken = agent if agent in free else free[0] if free else agent % saved
        chosen[agent] = taken
        free = [x for x in free if x != taken]
    return [chosen[agent] for agent in range(team)]


def _transferred_array(name: str, new: GroupedArrays, origins: Sequence[Origin]) -> np.ndarray:
    groups, result = new.groups[name], new.arrays[name].copy()
    for group in range(max(groups) + 1):
        members = [agent for agent, own in enumerate(groups) if own == group]
        if (found := _origin(name, members, origins)) is None:
            continue
        origin, old_group = found
        values = origin.saved.arrays[name][old_group]
        if (axis := origin.saved.id_axes.get(name)) is not None:
            values = _with_moved_ids(values, axis - 1, origin, len(groups))
        if values.shape != result.shape[1:]:
            raise SettingError(
                f"{origin.name} does not fit: its array {name} has the shape {values.shape}, that "
                f"of this run {result.shape[1:]}"
            )
        result[group] = values
    return result


def _origin(
    name: str, members: Sequence[int], origins: Sequence[Origin]
) -> tuple[Origin, int] | None:
    """The origin of a group and the group there; None: it has none."""
    found: dict[tuple[int, int], int] = {}
    for agent in members:
        for number, origin in enumerate(origins):
            if agent in origin.agents:
                old = origin.agents[agent]
                found.setdefault((number, origin.saved.groups[name][old]), agent)
    if len(found) > 1:
        first, second = [*found.values()][:2]
        old = [origins[number].agents[agent] for (number, _), agent in [*found.items()][:2]]
        raise SettingError(
            f"agents {first} and {second} share {name}, but start from agents {old[0]} and "
            f"{old[1]}, which do not share it: start them from the same agent (start_agents, "
            f"--from-agents: {old[0]} for both), or choose a sharing that separates them"
        )
    if not found:
        return None
    (number, group), _ = found.popitem()
    return origins[number], group


def _with_moved_ids(values: np.ndarray, axis: int, origin: Origin, team: int) -> np.ndarray:
    """Values with the entries of the one-hot index in the order of the new team."""
    first = values.shape[axis] - origin.num_agents
    agents = complete_map(origin.agents, team, origin.num_agents)
    rows = [*range(first), *(first + agent for agent in agents)]
    return np.take(values, rows, axis)


def _id_axes(setup: Setup, role: Role, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The axes that are shorter in the same network without `agent_id`."""
    if not setup.config.agent_id:
        return {}
    without = Setup(setup.spec, setup.config.replace(agent_id=False))
    layout = without.actor_layout if role == "actor" else without.critic_layout
    shorter: dict[str, Any] = parameter_shapes(layout)
    found = {}
    for name, array in arrays.items():
        axes = [k for k, n in enumerate(shorter[name]) if n != array.shape[k]]
        found |= dict.fromkeys([name], axes[0]) if axes else {}
    return found
