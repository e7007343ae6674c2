"""Bodies that move in a vertical plane: cheetahs, hopper, walker."""

from itertools import pairwise
from typing import Any

from fp3o.envs.mamujoco.partition import (
    Column,
    Joint,
    JointGraph,
    column_range,
    columns_at,
    make_joint,
)

CHEETAH_JOINTS = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")


def cheetah_graph(model: Any, paper: bool, _: str) -> JointGraph:
    """The half cheetah."""
    joints = {name: make_joint(name, 3 + i, 3 + i, i) for i, name in enumerate(CHEETAH_JOINTS)}
    # The paper counts from the feet up.
    names = ("bfoot", "bshin", "bthigh", "ffoot", "fshin", "fthigh") if paper else CHEETAH_JOINTS
    chain = ("bfoot", "bshin", "bthigh", "fthigh", "fshin", "ffoot")
    ordered = [joints[name] for name in names]
    return JointGraph(
        partitions={"2x3": (tuple(ordered[:3]), tuple(ordered[3:])), "6x1": _one_each(ordered)},
        edges=tuple(pairwise(joints[name] for name in chain)),
        common=_torso("qvel", paper),
        state=column_range("qpos", 1, 9) + column_range("qvel", 0, 9),
    )


def _torso(velocity: str, paper: bool) -> tuple[Column, ...]:
    """Height and angle of the torso, and its velocities."""
    if paper:  # x, angle, height
        return (*columns_at("qpos", 2, 1), *columns_at(velocity, 0, 2, 1))
    return (*columns_at("qpos", 1, 2), *columns_at(velocity, 0, 1, 2))


def _one_each(joints: list[Joint]) -> tuple[tuple[Joint, ...], ...]:
    return tuple((joint,) for joint in joints)


def hopper_graph(model: Any, paper: bool, _: str) -> JointGraph:
    """The hopper."""
    joints = [
        make_joint(name, 3 + i, 3 + i, i, qvel=(("clipped_qvel", 3 + i),))
        for i, name in enumerate(("thigh_joint", "leg_joint", "foot_joint"))
    ]
    # The paper's agents observe the vertical velocity where the forward velocity is meant.
    odd = (*columns_at("qpos", 2, 1), *columns_at("clipped_qvel", 1, 2, 1))
    return JointGraph(
        partitions={"3x1": _one_each(joints)},
        edges=tuple(pairwise(joints)),
        common=odd if paper else _torso("clipped_qvel", paper),
        state=column_range("qpos", 1, 6) + column_range("clipped_qvel", 0, 6),
    )


def walker_graph(model: Any, paper: bool, _: str) -> JointGraph:
    """The walker."""
    names = ("thigh", "leg", "foot", "thigh_left", "leg_left", "foot_left")
    joints = [make_joint(f"{name}_joint", 3 + i, 3 + i, i) for i, name in enumerate(names)]
    thigh, leg, foot, thigh_left, leg_left, foot_left = joints
    return JointGraph(
        partitions={"2x3": ((foot, leg, thigh), (foot_left, leg_left, thigh_left))},
        edges=(
            (foot, leg), (leg, thigh), (foot_left, leg_left), (leg_left, thigh_left),
            (thigh, thigh_left),
        ),
        common=() if paper else _torso("qvel", paper),
        state=column_range("qpos", 1, 9) + column_range("clipped_qvel", 0, 9),
    )  # fmt: skip


def coupled_cheetahs_graph(model: Any, *_: Any) -> JointGraph:
    """Two cheetahs; as in gymnasium-robotics, both agents observe the second one's joints."""
    tendon = {"tendon": column_range("tendon", 0, 6)}
    cheetahs = [
        [
            make_joint(f"{name}{number}", 12 + i, 12 + i, 6 * number + i, **({} if i else tendon))
            for i, name in enumerate(CHEETAH_JOINTS)
        ]
        for number in range(2)
    ]
    chain = [(2, 1), (1, 0), (0, 3), (3, 4), (4, 5)]
    positions = column_range("qpos", 1, 9) + column_range("qpos", 10, 18)
    return JointGraph(
        partitions={"1p1": (tuple(cheetahs[0]), tuple(cheetahs[1]))},
        edges=tuple((joints[i], joints[j]) for joints in cheetahs for i, j in chain),
        common=columns_at("qpos", 2, 1, 11, 10) + columns_at("qvel", 0, 2, 1, 9, 11, 10),
        state=positions + column_range("qvel", 0, 18) + column_range("tendon", 0, 6),
        own=("qpos", "qvel", "tendon"),
    )
