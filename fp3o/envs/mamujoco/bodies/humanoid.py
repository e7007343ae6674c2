"""The humanoid."""

from typing import Any

from fp3o.envs.mamujoco.partition import Joint, JointGraph, body_columns, column_range, make_joint

HUMANOID_JOINTS = {
    "abdomen_y": (1, 2, 3), "abdomen_z": (1, 2, 3), "abdomen_x": (3, 4, 7),
    "right_hip_x": (4, 5), "right_hip_z": (4, 5), "right_hip_y": (4, 5), "right_knee": (5, 6),
    "left_hip_x": (7, 8), "left_hip_z": (7, 8), "left_hip_y": (7, 8), "left_knee": (8, 9),
    "right_shoulder1": (1, 10, 11), "right_shoulder2": (1, 10, 11), "right_elbow": (11,),
    "left_shoulder1": (1, 12, 13), "left_shoulder2": (1, 12, 13), "left_elbow": (13,),
}  # fmt: skip
"""Joints in the order of their positions, with the bodies that their agent observes."""


def humanoid_graph(model: Any, *_: Any) -> JointGraph:
    """The humanoid; one agent controls the upper body, one the lower body."""
    joints = _joints()
    abdomen, right_hip, left_hip = (
        tuple(joints[f"{part}_{axis}"] for axis in "xyz")
        for part in ("abdomen", "right_hip", "left_hip")
    )
    right_arm, left_arm = (
        tuple(joints[f"{side}_shoulder{i}"] for i in (1, 2)) for side in ("right", "left")
    )
    one = lambda name: (joints[name],)  # noqa: E731
    upper = abdomen + right_arm + one("right_elbow") + left_arm + one("left_elbow")
    lower = right_hip + one("right_knee") + left_hip + one("left_knee")
    motion = column_range("qpos", 2, 24) + column_range("qvel", 0, 23)
    bodies = column_range("inertia", 10, 140) + column_range("velocity", 6, 84)
    forces = column_range("torque", 6, 23) + column_range("force", 6, 84)
    return JointGraph(
        partitions={"9p8": (upper, lower)},
        edges=(
            abdomen, right_hip, left_hip,
            one("left_elbow") + left_arm, one("right_elbow") + right_arm,
            one("left_knee") + left_hip, one("right_knee") + right_hip,
            left_arm + abdomen, right_arm + abdomen, abdomen + left_hip, abdomen + right_hip,
        ),
        common=column_range("qpos", 2, 7) + column_range("qvel", 0, 6),
        state=motion + bodies + forces,
        own=("qpos", "qvel", "inertia", "velocity", "torque", "force"),
    )  # fmt: skip


def _joints() -> dict[str, Joint]:
    return {
        name: make_joint(
            name, 7 + i, 6 + i, i, torque=(("torque", 6 + i),),
            inertia=body_columns("inertia", 10, touched),
            velocity=body_columns("velocity", 6, touched),
            force=body_columns("force", 6, touched),
        )
        for i, (name, touched) in enumerate(HUMANOID_JOINTS.items())
    }  # fmt: skip
