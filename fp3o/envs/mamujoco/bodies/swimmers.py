"""The swimmer, and swimmers of many segments."""

from itertools import pairwise
from typing import Any

from fp3o.envs.mamujoco.bodies.segments import count_segments, segments_per_agent
from fp3o.envs.mamujoco.partition import JointGraph, column_range, columns_at, make_joint


def long_swimmer_graph(model: Any, _: bool, partition: str) -> JointGraph:
    """The swimmer of many segments."""
    count, each = count_segments("ManyagentSwimmer", partition), segments_per_agent(partition)
    joints = [make_joint(f"rot{i}", 3 + i, 3 + i, i) for i in range(count)]
    team = tuple(tuple(joints[i : i + each]) for i in range(0, count, each))
    state = column_range("qpos", 2, model.nq) + column_range("qvel", 0, model.nv)
    return JointGraph({partition: team}, tuple(pairwise(joints)), (), state)


def swimmer_graph(model: Any, *_: Any) -> JointGraph:
    """The swimmer with three links."""
    joints = [
        make_joint(f"rot{i + 2}", 3 + i, 3 + i, i, qvel=columns_at("qvel", i, 3 + i))
        for i in range(2)
    ]
    return JointGraph(
        partitions={"2x1": tuple((joint,) for joint in joints)},
        edges=(tuple(joints),),
        common=(("qpos", 2), ("qvel", 2)),
        state=column_range("qpos", 2, 5) + column_range("qvel", 0, 5),
    )
