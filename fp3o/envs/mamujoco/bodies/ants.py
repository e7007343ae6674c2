"""The ant, and ants of many segments."""

from dataclasses import replace
from typing import Any

from fp3o.envs.mamujoco.bodies.segments import count_segments, segments_per_agent
from fp3o.envs.mamujoco.partition import (
    Joint,
    JointGraph,
    body_columns,
    column_range,
    columns_at,
    make_joint,
)


def ant_graph(model: Any, paper: bool, _: str) -> JointGraph:
    """The ant with four legs."""
    legs = [_leg(i) for i in range(4)]
    pair = lambda i, j: (*legs[i], *legs[j])  # noqa: E731
    forces = columns_at("constant", *[0] * 84) if paper else column_range("clipped_force", 6, 84)
    return JointGraph(
        # Diagonal legs in the paper's code; in farama's they are on one side.
        partitions={
            "2x4": (pair(0, 1), pair(2, 3)),
            "4x2": tuple(legs),
            "2x4d": (pair(0, 2), pair(1, 3)) if paper else (pair(0, 3), pair(1, 2)),
        },
        edges=(*legs, tuple(hip for hip, _ in legs)),
        common=column_range("qpos", 0 if paper else 2, 7) + column_range("qvel", 0, 6),
        state=column_range("qpos", 2, 15) + column_range("qvel", 0, 14) + forces,
        own=("qpos", "qvel") if paper else ("qpos", "qvel", "force"),
    )


def _leg(i: int) -> tuple[Joint, Joint]:
    """Hip and ankle of a leg."""
    first = 2 + 3 * i  # the leg's bodies: stump, thigh, shin
    hip = make_joint(
        f"hip{i + 1}", 7 + 2 * i, 6 + 2 * i, (2 + 2 * i) % 8,
        force=body_columns("clipped_force", 6, (1, first)),
    )  # fmt: skip
    ankle = make_joint(
        f"ankle{i + 1}", 8 + 2 * i, 7 + 2 * i, (3 + 2 * i) % 8,
        force=body_columns("clipped_force", 6, (first, first + 1, first + 2)),
    )  # fmt: skip
    return hip, ankle


def long_ant_graph(model: Any, _: bool, partition: str) -> JointGraph:
    """The ant of many segments, with the deviations of gymnasium-robotics.

    Positions are counted from the wrong end, so that the first joints of a long ant show numbers of
    the torso. An agent observes the hips of the segment before its own, not of the one after: the
    edge between segments ends in copies of the joints in front.
    """
    count, each = count_segments("ManySegmentAnt", partition), segments_per_agent(partition)
    segments: list[list[Joint]] = []
    edges: list[tuple[Joint, ...]] = []
    for i in range(count):
        hip1, ankle1, hip2, ankle2 = joints = _segment(model, i, count)
        edges += [(ankle1, hip1), (ankle2, hip2), (hip1, hip2)]
        if i:
            copies = [replace(segments[-1][j], copy=True) for j in (0, 2)]
            edges.append((*copies, hip1, hip2))
        segments.append(joints)
    team = tuple(
        tuple(joint for joints in segments[start : start + each] for joint in joints)
        for start in range(0, count, each)
    )
    positions, velocities = column_range("qpos", 2, model.nq), column_range("qvel", 0, model.nv)
    return JointGraph(
        partitions={partition: team},
        edges=tuple(edges),
        common=column_range("qpos", 2, 7) + column_range("qvel", 0, 6),
        state=positions + velocities + column_range("clipped_force", 6, 6 * model.nbody),
        own=("qpos", "qvel", "force"),
    )


def _segment(model: Any, i: int, count: int) -> list[Joint]:
    """The four joints of segment `i`."""
    first, torso = 4 * (count - 1 - i) - 4, 1 + 7 * i
    touched = {
        "hip1": (torso, torso + 1), "ankle1": (torso + 1, torso + 2, torso + 3),
        "hip2": (torso, torso + 4), "ankle2": (torso + 4, torso + 5, torso + 6),
    }  # fmt: skip
    return [
        make_joint(
            f"{name}_{i}", (first + place) % model.nq, (first + place) % model.nv,
            4 * i + (2 + place) % 4, force=body_columns("clipped_force", 6, bodies),
        )
        for place, (name, bodies) in enumerate(touched.items())
    ]  # fmt: skip
