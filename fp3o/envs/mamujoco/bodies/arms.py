"""Bodies with a fixed base: reacher, pusher, pendulums."""

from itertools import pairwise
from typing import Any

from fp3o.envs.mamujoco.partition import JointGraph, body_columns, column_range, make_joint
from fp3o.envs.mamujoco.rewards.manipulation import pusher_bodies


def reacher_graph(model: Any, paper: bool, _: str) -> JointGraph:
    """The reacher."""
    shoulder, elbow = (
        make_joint(
            f"joint{i}", i, i, i, qpos=(("sin", i), ("cos", i)),
            target_offset=column_range("target_offset", 0, 3) * i,
        )
        for i in range(2)
    )  # fmt: skip
    angles = column_range("cos", 0, 2) + column_range("sin", 0, 2)
    offset = column_range("target_offset", 0, 3 if paper else 2)
    return JointGraph(
        partitions={"2x1": ((shoulder,), (elbow,))},
        edges=((shoulder, elbow),),
        common=column_range("qpos", 2, 4),
        state=angles + column_range("qpos", 2, 4) + column_range("qvel", 0, 2) + offset,
        own=("qpos", "qvel", "target_offset"),
    )


def pusher_graph(model: Any, *_: Any) -> JointGraph:
    """The pusher."""
    # In gymnasium-robotics the first two joints have the name of the last one, and the order of
    # observations depends on names.
    names = ("wrist_roll", "wrist_roll", "upper_arm_roll", "elbow_flex", "forearm_roll",
             "wrist_flex", "wrist_roll")  # fmt: skip
    joints = [make_joint(f"r_{name}_joint", i, i, i) for i, name in enumerate(names)]
    positions = body_columns("position", 3, pusher_bodies(model))
    return JointGraph(
        partitions={"3p": (tuple(joints[:3]), (joints[3],), tuple(joints[4:]))},
        edges=tuple(pairwise(joints)),
        common=positions,
        state=column_range("qpos", 0, 7) + column_range("qvel", 0, 7) + positions,
    )


def pendulum_graph(model: Any, *_: Any) -> JointGraph:
    """The inverted pendulum."""
    return JointGraph({}, (), (), column_range("qpos", 0, 2) + column_range("qvel", 0, 2))


def double_pendulum_graph(model: Any, *_: Any) -> JointGraph:
    """The inverted double pendulum."""
    positions = column_range("qpos", 0, 1) + column_range("sin", 1, 3) + column_range("cos", 1, 3)
    velocities = column_range("clipped_qvel", 0, 3)
    return JointGraph({}, (), (), positions + velocities + column_range("constraint", 0, 1))
