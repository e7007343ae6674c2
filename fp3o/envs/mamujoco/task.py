"""`BodyTask`: a body, its team, and what each agent observes and controls, as index arrays."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import mujoco
import numpy as np

from fp3o.envs.mamujoco.bodies.body import Body, make_body
from fp3o.envs.mamujoco.catalogue import MAMUJOCO, single_agent_partition, split_name
from fp3o.envs.mamujoco.partition import (
    Column,
    Joint,
    JointGraph,
    neighbouring_agents,
    observed_columns,
)
from fp3o.envs.mamujoco.readings import SOURCES, standardise_rows, zero_and_one
from fp3o.envs.mamujoco.rewards.rules import Fields
from fp3o.envs.mamujoco.variant import Variant
from fp3o.errors import SettingError, nearest
from fp3o.spec import Box, EnvSpec

Actuators = tuple[tuple[int, ...], ...]
"""The actuators of each agent."""


@dataclass(frozen=True, eq=False)
class BodyTask:
    """A task: which readings form an observation, and which actions go to which actuator."""

    spec: EnvSpec
    body: Body
    variant: Variant
    owned: Actuators
    """The actuators of each agent's own joints."""
    sources: tuple[str, ...]
    """Sources of the readings, in order."""
    field_names: tuple[str, ...]
    """MuJoCo fields that readings and rewards need besides qpos and qvel."""
    obs_indices: np.ndarray
    """(n, f): indices of the readings in the observations."""
    state_indices: np.ndarray
    """(n, f2): indices of the readings in the states."""
    control_indices: np.ndarray
    """(nu,): indices of the controls in the concatenated actions."""

    @property
    def model(self) -> mujoco.MjModel:
        """The MuJoCo model of the body."""
        return self.body.model

    @property
    def controlled(self) -> list[list[int]]:
        """The actuators each agent controls; under `routing=order` not those of its own joints."""
        agent = self.control_indices // max(map(len, self.owned))
        return [np.flatnonzero(agent == i).tolist() for i in range(len(self.owned))]

    @cached_property
    def step_seconds(self) -> float:
        """Simulated time per step, in seconds."""
        return self.body.frame_skip * self.model.opt.timestep

    def readings(self, xp: Any, fields: Fields, dtype: Any = None) -> Any:
        """All columns that an agent or critic observes, followed by 0 and 1."""
        parts = [SOURCES[name][1](xp, fields) for name in self.sources]
        return xp.concatenate([*parts, zero_and_one(fields["qpos"].shape[:-1])], -1, dtype=dtype)

    def obs_from(self, xp: Any, readings: Any) -> Any:
        """The observations of all agents, `(*e, n, f)`."""
        return self._select(xp, readings, self.obs_indices)

    def state_from(self, xp: Any, readings: Any) -> Any:
        """The states of all agents, `(*e, n, f2)`."""
        return self._select(xp, readings, self.state_indices)

    def _select(self, xp: Any, readings: Any, indices: np.ndarray) -> Any:
        selected = readings.take(indices, axis=-1)
        return selected if self.variant.profile == "farama" else standardise_rows(xp, selected)

    def controls(self, action: Any) -> Any:
        """The team's actions `(*e, n, d)` as controls `(*e, nu)`."""
        return action.reshape(*action.shape[:-2], -1).take(self.control_indices, axis=-1)


class TaskProperties:
    """Members that environments of a `BodyTask` have in common."""

    task: BodyTask
    renderable = True

    @property
    def spec(self) -> EnvSpec:
        """Number of agents, sizes of observations and actions."""
        return self.task.spec

    @property
    def step_seconds(self) -> float:
        """Simulated time per step, in seconds."""
        return self.task.step_seconds

    @property
    def max_episode_steps(self) -> int:
        """The time limit."""
        return self.task.body.max_episode_steps


@cache
def body_task(name: str, variant: str) -> BodyTask:
    """A task by name, such as `HalfCheetah-6x1`, and variant."""
    body_name, partition = split_name(name)
    chosen = Variant.parse(variant)
    body = make_body(body_name, chosen.profile, partition)
    graph, count = body.graph, body.model.nu
    team = _team(body_name, partition, graph)
    if team is None:  # one agent observes and controls everything
        observed, owned = [list(graph.state)], (tuple(range(count)),)
    else:
        observed = [observed_columns(own, graph, chosen.obsk) for own in team]
        owned = tuple(tuple(joint.actuator for joint in own) for own in team)
    # Policies are named by it: they can be evaluated where the kernel cannot be compiled.
    full_name = f"{MAMUJOCO}/{body_name}-{partition}:{chosen.canonical}"
    task = _index_task(full_name, body, chosen, observed, owned)
    spec = replace(task.spec, adjacency=neighbouring_agents(team or ((),), graph))
    return replace(task, spec=spec)


def _team(body: str, partition: str, graph: JointGraph) -> tuple[tuple[Joint, ...], ...] | None:
    """The joints of each agent; None if one agent has them all."""
    if partition in graph.partitions:
        return graph.partitions[partition]
    if partition != single_agent_partition(body):
        known = [*graph.partitions, single_agent_partition(body)]
        raise SettingError(f"{body} has no partition {partition!r}: {nearest(partition, known)}")
    return None


def _index_task(
    name: str, body: Body, variant: Variant, observed: list[list[Column]], owned: Actuators
) -> BodyTask:
    """Turn the columns of observations and states into indices of the readings."""
    state, count = body.graph.state, len(owned)
    used = {source for columns in [*observed, state] for source, _ in columns} - {"constant"}
    sources = tuple(source for source in SOURCES if source in used)
    needed = {field for source in sources for field in SOURCES[source][0]}
    needed |= {*body.rewards.field_names}
    index = _reading_index(body.model, sources, tuple(sorted(needed)))
    zero, one = index["constant", 0], index["constant", 1]
    ids = [[one if i == j else zero for j in range(count)] for i in range(count)]
    widest = max(map(len, observed))
    # The paper's observations and states end in the agent's one-hot index.
    tail = ids if variant.profile == "paper" else [[] for _ in ids]
    obs = [
        [index[column] for column in columns] + [zero] * (widest - len(columns)) + tail[i]
        for i, columns in enumerate(observed)
    ]
    states = [[index[column] for column in state] + tail[i] for i in range(count)]
    sizes, controls = tuple(map(len, owned)), _control_indices(owned, variant.routing)
    spec = EnvSpec(
        name=name,
        actions=Box(sizes),
        obs_size=len(obs[0]),
        state_size=len(states[0]),
        agent_types=_agent_types(list(zip(map(len, observed), sizes, strict=True))),
        truncates=True,
        action_names=_joint_names(body.model, controls, sizes),
    )
    return BodyTask(
        spec, body, variant, owned, sources, tuple(sorted(needed)), np.array(obs),
        np.array(states), controls,
    )  # fmt: skip


def _joint_names(
    model: mujoco.MjModel, controls: np.ndarray, sizes: tuple[int, ...]
) -> tuple[tuple[str, ...], ...]:
    """The joint that each dimension of each agent's action drives."""
    joints = {
        int(control): model.joint(model.actuator_trnid[actuator, 0]).name
        for actuator, control in enumerate(controls)
    }
    width = max(sizes)
    return tuple(tuple(joints[width * i + j] for j in range(size)) for i, size in enumerate(sizes))


def _reading_index(
    model: mujoco.MjModel, sources: tuple[str, ...], needed: tuple[str, ...]
) -> dict[Column, int]:
    """Column -> its index in the readings, which end in the constants 0 and 1."""
    data = mujoco.MjData(model)
    fields = {name: getattr(data, name) for name in ("qpos", "qvel", *needed)}
    columns = [
        (source, i) for source in sources for i in range(SOURCES[source][1](np, fields).shape[-1])
    ]
    columns += [("constant", 0), ("constant", 1)]
    return {column: index for index, column in enumerate(columns)}


def _control_indices(owned: Actuators, routing: str) -> np.ndarray:
    """For each actuator, the index of its control in the padded actions of the team."""
    width = max(map(len, owned))
    offered = [width * i + j for i, actuators in enumerate(owned) for j in range(len(actuators))]
    if routing == "order":
        return np.array(offered)
    indices = np.empty(len(offered), int)
    indices[[actuator for actuators in owned for actuator in actuators]] = offered
    return indices


def _agent_types(sizes: list[tuple[int, int]]) -> tuple[int, ...]:
    """Agents with equal sizes of observations and actions are of one type."""
    order = list(dict.fromkeys(sizes))
    return tuple(order.index(size) for size in sizes)
