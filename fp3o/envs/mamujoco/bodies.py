"""The bodies: their joints as graphs, the teams they can be split into, their tasks.

`paper` and `farama` are the two profiles. They differ in what agents see and in details of the
tasks; every difference is an explicit branch here, in `rules.py` or in `models.py`.
"""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import mujoco

from fp3o.envs.mamujoco import rewards as rules
from fp3o.envs.mamujoco.catalogue import ENTRIES
from fp3o.envs.mamujoco.models import compile_model
from fp3o.envs.mamujoco.partition import Column, Graph, Joint, block, bodies, joint, span
from fp3o.envs.mamujoco.rewards import Rules
from fp3o.errors import nearest


@dataclass(frozen=True)
class Robot:
    """A body under a profile: all that its tasks have in common."""

    model: mujoco.MjModel
    skip: int
    """Simulation steps of one step of the task."""
    limit: int
    """Steps of an episode."""
    graph: Graph
    rules: Rules


def robot(name: str, profile: str, partition: str) -> Robot:
    """A body by its name; the partition tells the length of bodies of many segments."""
    if name not in BODIES:
        raise ValueError(f"unknown body {name!r}: {nearest(name, BODIES)}")
    body = BODIES[name]
    if profile not in (offered := ENTRIES[name].profiles):
        raise ValueError(f"{name} has no profile {profile!r}: {nearest(profile, offered)}")
    segments = _segments(name, partition) if body.long else 0
    model = compile_model(name, profile, segments)
    graph = body.graph(model, profile == "paper", partition)
    limit = 1000 if profile == "paper" else body.limit
    return Robot(model, body.skip, limit, graph, body.rules(model, profile == "paper"))


@dataclass(frozen=True)
class _Body:
    """How a `Robot` is made."""

    skip: int
    graph: Callable[[mujoco.MjModel, bool, str], Graph]
    rules: Callable[[mujoco.MjModel, bool], Rules]
    limit: int = 1000
    long: bool = False
    """Whether it has as many segments as the partition `agents x segments` asks for."""


def _segments(name: str, partition: str) -> int:
    agents, _, each = partition.partition("x")
    if not (agents.isdecimal() and each.isdecimal() and int(agents) * int(each)):
        raise ValueError(f"{name} is split as AGENTSxSEGMENTS, for example 4x2, got {partition!r}")
    return int(agents) * int(each)


def _cheetah(model: mujoco.MjModel, paper: bool, _: str) -> Graph:
    joints = {
        name: joint(name, 3 + i, 3 + i, i)
        for i, name in enumerate(("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"))
    }
    # The paper counts from the feet up.
    names = ("bfoot", "bshin", "bthigh", "ffoot", "fshin", "fthigh") if paper else tuple(joints)
    chain = ("bfoot", "bshin", "bthigh", "fthigh", "fshin", "ffoot")
    ordered = [joints[name] for name in names]
    return Graph(
        teams={"2x3": (tuple(ordered[:3]), tuple(ordered[3:])), "6x1": _each(ordered)},
        edges=tuple(pairwise(joints[name] for name in chain)),
        root=_planar_root("v", paper),
        state=span("q", 1, 9) + span("v", 0, 9),
    )


def _planar_root(speed: str, paper: bool) -> tuple[Column, ...]:
    """Height and angle of a body that moves in the plane, and its velocities."""
    if paper:  # x, angle, height
        return (*block("q", 2, 1), *block(speed, 0, 2, 1))
    return (*block("q", 1, 2), *block(speed, 0, 1, 2))


def _hopper(model: mujoco.MjModel, paper: bool, _: str) -> Graph:
    joints = [
        joint(name, 3 + i, 3 + i, i, qvel=(("v10", 3 + i),))
        for i, name in enumerate(("thigh_joint", "leg_joint", "foot_joint"))
    ]
    # The paper's agents are shown the vertical speed where the forward speed is meant.
    root = (*block("q", 2, 1), *block("v10", 1, 2, 1)) if paper else _planar_root("v10", paper)
    return Graph(
        teams={"3x1": _each(joints)},
        edges=tuple(pairwise(joints)),
        root=root,
        state=span("q", 1, 6) + span("v10", 0, 6),
    )


def _walker(model: mujoco.MjModel, paper: bool, _: str) -> Graph:
    names = ("thigh", "leg", "foot", "thigh_left", "leg_left", "foot_left")
    joints = [joint(f"{name}_joint", 3 + i, 3 + i, i) for i, name in enumerate(names)]
    thigh, leg, foot, thigh_left, leg_left, foot_left = joints
    return Graph(
        teams={"2x3": ((foot, leg, thigh), (foot_left, leg_left, thigh_left))},
        edges=((foot, leg), (leg, thigh), (foot_left, leg_left), (leg_left, thigh_left),
               (thigh, thigh_left)),
        root=() if paper else _planar_root("v", paper),
        state=span("q", 1, 9) + span("v10", 0, 9),
    )  # fmt: skip


def _ant(model: mujoco.MjModel, paper: bool, _: str) -> Graph:
    legs = []
    for i in range(4):
        first = 2 + 3 * i  # the leg's bodies: stump, thigh, shin
        hip = joint(
            f"hip{i + 1}", 7 + 2 * i, 6 + 2 * i, (2 + 2 * i) % 8,
            contact=bodies("contact", 6, (1, first)),
        )  # fmt: skip
        ankle = joint(
            f"ankle{i + 1}", 8 + 2 * i, 7 + 2 * i, (3 + 2 * i) % 8,
            contact=bodies("contact", 6, (first, first + 1, first + 2)),
        )  # fmt: skip
        legs.append((hip, ankle))
    pair = lambda i, j: (*legs[i], *legs[j])  # noqa: E731
    forces = block("zero", *[0] * 84) if paper else span("contact", 6, 84)
    return Graph(
        # Diagonal legs in the paper's code; what farama calls so lies on one side.
        teams={"2x4": (pair(0, 1), pair(2, 3)), "4x2": tuple(legs),
               "2x4d": (pair(0, 2), pair(1, 3)) if paper else (pair(0, 3), pair(1, 2))},
        edges=(*legs, tuple(hip for hip, _ in legs)),
        root=span("q", 0 if paper else 2, 7) + span("v", 0, 6),
        state=span("q", 2, 15) + span("v", 0, 14) + forces,
        own=("qpos", "qvel") if paper else ("qpos", "qvel", "contact"),
    )  # fmt: skip


def _ant_train(model: mujoco.MjModel, _: bool, partition: str) -> Graph:
    """As in the package of today, with its oddities.

    Positions are counted from the wrong end (the first joints of a long ant are shown numbers of
    the torso), and an agent sees the hips of the segment before its own, not of the one after: the
    edge between segments ends in copies of the joints in front.
    """
    count = _segments("ManySegmentAnt", partition)
    per_agent = int(partition.partition("x")[2])
    segments, edges = [], []
    for i in range(count):
        first, torso = 4 * (count - 1 - i) - 4, 1 + 7 * i
        near = {
            "hip1": (torso, torso + 1), "ankle1": (torso + 1, torso + 2, torso + 3),
            "hip2": (torso, torso + 4), "ankle2": (torso + 4, torso + 5, torso + 6),
        }  # fmt: skip
        four = [
            joint(
                f"{name}_{i}", (first + place) % model.nq, (first + place) % model.nv,
                4 * i + (2 + place) % 4, contact=bodies("contact", 6, touched),
            )
            for place, (name, touched) in enumerate(near.items())
        ]  # fmt: skip
        hip1, ankle1, hip2, ankle2 = four
        edges += [(ankle1, hip1), (ankle2, hip2), (hip1, hip2)]
        if i:
            copies = [replace(segments[-1][j], copy=True) for j in (0, 2)]
            edges.append((*copies, hip1, hip2))
        segments.append(four)
    teams = tuple(
        tuple(one for four in segments[start : start + per_agent] for one in four)
        for start in range(0, count, per_agent)
    )
    return Graph(
        teams={partition: teams},
        edges=tuple(edges),
        root=span("q", 2, 7) + span("v", 0, 6),
        state=span("q", 2, model.nq) + span("v", 0, model.nv)
        + span("contact", 6, 6 * model.nbody),
        own=("qpos", "qvel", "contact"),
    )  # fmt: skip


def _swimmer_train(model: mujoco.MjModel, _: bool, partition: str) -> Graph:
    count = _segments("ManyagentSwimmer", partition)
    per_agent = int(partition.partition("x")[2])
    joints = [joint(f"rot{i}", 3 + i, 3 + i, i) for i in range(count)]
    teams = tuple(tuple(joints[i : i + per_agent]) for i in range(0, count, per_agent))
    state = span("q", 2, model.nq) + span("v", 0, model.nv)
    return Graph({partition: teams}, tuple(pairwise(joints)), (), state)


def _swimmer(model: mujoco.MjModel, _: bool, __: str) -> Graph:
    joints = [joint(f"rot{i + 2}", 3 + i, 3 + i, i, qvel=block("v", i, 3 + i)) for i in range(2)]
    return Graph(
        teams={"2x1": _each(joints)},
        edges=(tuple(joints),),
        root=(("q", 2), ("v", 2)),
        state=span("q", 2, 5) + span("v", 0, 5),
    )


def _reacher(model: mujoco.MjModel, paper: bool, _: str) -> Graph:
    shoulder, elbow = (
        joint(f"joint{i}", i, i, i, qpos=(("sin", i), ("cos", i)), tip=span("reach", 0, 3) * i)
        for i in range(2)
    )
    return Graph(
        teams={"2x1": ((shoulder,), (elbow,))},
        edges=((shoulder, elbow),),
        root=span("q", 2, 4),
        state=span("cos", 0, 2) + span("sin", 0, 2) + span("q", 2, 4) + span("v", 0, 2)
        + span("reach", 0, 3 if paper else 2),
        own=("qpos", "qvel", "tip"),
    )  # fmt: skip


def _pusher(model: mujoco.MjModel, _: bool, __: str) -> Graph:
    # The first two have the name of the last one in the package of today; the order of what is
    # seen depends on names.
    names = ("wrist_roll", "wrist_roll", "upper_arm_roll", "elbow_flex", "forearm_roll",
             "wrist_flex", "wrist_roll")  # fmt: skip
    joints = [joint(f"r_{name}_joint", i, i, i) for i, name in enumerate(names)]
    places = bodies("place", 3, [model.body(name).id for name in PUSHED])
    return Graph(
        teams={"3p": (tuple(joints[:3]), (joints[3],), tuple(joints[4:]))},
        edges=tuple(pairwise(joints)),
        root=places,
        state=span("q", 0, 7) + span("v", 0, 7) + places,
    )


PUSHED = ("tips_arm", "object", "goal")
"""Bodies of the pusher that everyone sees."""


def _humanoid(model: mujoco.MjModel, _: bool, __: str) -> Graph:
    joints = {
        name: joint(
            name, 7 + i, 6 + i, i, torque=(("torque", 6 + i),),
            inertia=bodies("inertia", 10, touched), spin=bodies("spin", 6, touched),
            impact=bodies("impact", 6, touched),
        )
        for i, (name, touched) in enumerate(HUMANOID.items())
    }  # fmt: skip
    abdomen, right_hip, left_hip = (
        tuple(joints[f"{part}_{axis}"] for axis in "xyz")
        for part in ("abdomen", "right_hip", "left_hip")
    )
    arm = lambda side: tuple(joints[f"{side}_shoulder{i}"] for i in (1, 2))  # noqa: E731
    right_arm, left_arm = arm("right"), arm("left")
    one = lambda name: (joints[name],)  # noqa: E731
    upper = abdomen + right_arm + one("right_elbow") + left_arm + one("left_elbow")
    lower = right_hip + one("right_knee") + left_hip + one("left_knee")
    return Graph(
        teams={"9p8": (upper, lower)},
        edges=(
            abdomen, right_hip, left_hip,
            one("left_elbow") + left_arm, one("right_elbow") + right_arm,
            one("left_knee") + left_hip, one("right_knee") + right_hip,
            left_arm + abdomen, right_arm + abdomen, abdomen + left_hip, abdomen + right_hip,
        ),
        root=span("q", 2, 7) + span("v", 0, 6),
        state=span("q", 2, 24) + span("v", 0, 23) + span("inertia", 10, 140)
        + span("spin", 6, 84) + span("torque", 6, 23) + span("impact", 6, 84),
        own=("qpos", "qvel", "inertia", "spin", "torque", "impact"),
    )  # fmt: skip


HUMANOID = {
    "abdomen_y": (1, 2, 3), "abdomen_z": (1, 2, 3), "abdomen_x": (3, 4, 7),
    "right_hip_x": (4, 5), "right_hip_z": (4, 5), "right_hip_y": (4, 5), "right_knee": (5, 6),
    "left_hip_x": (7, 8), "left_hip_z": (7, 8), "left_hip_y": (7, 8), "left_knee": (8, 9),
    "right_shoulder1": (1, 10, 11), "right_shoulder2": (1, 10, 11), "right_elbow": (11,),
    "left_shoulder1": (1, 12, 13), "left_shoulder2": (1, 12, 13), "left_elbow": (13,),
}  # fmt: skip
"""Joints in the order of their positions, with the bodies their owner feels."""


def _coupled(model: mujoco.MjModel, _: bool, __: str) -> Graph:
    """As in the package of today, in which both agents are shown the second cheetah's joints."""
    names = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
    band = {"rope": span("rope", 0, 6)}
    twins = [
        [
            joint(f"{name}{twin}", 12 + i, 12 + i, 6 * twin + i, **({} if i else band))
            for i, name in enumerate(names)
        ]
        for twin in range(2)
    ]
    chain = [(2, 1), (1, 0), (0, 3), (3, 4), (4, 5)]
    return Graph(
        teams={"1p1": (tuple(twins[0]), tuple(twins[1]))},
        edges=tuple((twin[i], twin[j]) for twin in twins for i, j in chain),
        root=block("q", 2, 1, 11, 10) + block("v", 0, 2, 1, 9, 11, 10),
        state=span("q", 1, 9) + span("q", 10, 18) + span("v", 0, 18) + span("rope", 0, 6),
        own=("qpos", "qvel", "rope"),
    )


def _pendulum(model: mujoco.MjModel, _: bool, __: str) -> Graph:
    return Graph({}, (), (), span("q", 0, 2) + span("v", 0, 2))


def _double_pendulum(model: mujoco.MjModel, _: bool, __: str) -> Graph:
    angles = span("sin", 1, 3) + span("cos", 1, 3)
    return Graph({}, (), (), span("q", 0, 1) + angles + span("v10", 0, 3) + span("push", 0, 1))


def _each(joints: list[Joint]) -> tuple[tuple[Joint, ...], ...]:
    return tuple((one,) for one in joints)


def _pushing(model: mujoco.MjModel, _: bool) -> Rules:
    return rules.pusher(*(model.body(name).id for name in PUSHED))


BODIES: Mapping[str, _Body] = {
    "Reacher": _Body(2, _reacher, lambda _, paper: rules.reacher(paper), limit=50),
    "Ant": _Body(5, _ant, lambda _, paper: rules.ant(paper)),
    "Walker2d": _Body(4, _walker, lambda _, paper: rules.walker(paper)),
    "Hopper": _Body(4, _hopper, lambda _, paper: rules.hopper(paper)),
    "HalfCheetah": _Body(5, _cheetah, lambda _, __: rules.cheetah()),
    "ManyagentSwimmer": _Body(4, _swimmer_train, lambda _, __: rules.swimmer(), long=True),
    "ManySegmentAnt": _Body(5, _ant_train, lambda _, __: rules.ant(False), long=True),
    "CoupledHalfCheetah": _Body(5, _coupled, lambda _, __: rules.coupled_cheetah()),
    "Humanoid": _Body(5, _humanoid, lambda model, _: rules.humanoid(model)),
    "HumanoidStandup": _Body(5, _humanoid, lambda model, _: rules.standing_up(model)),
    "Swimmer": _Body(4, _swimmer, lambda _, __: rules.swimmer()),
    "Pusher": _Body(5, _pusher, _pushing, limit=100),
    "InvertedPendulum": _Body(2, _pendulum, lambda _, __: rules.pendulum()),
    "InvertedDoublePendulum": _Body(5, _double_pendulum, lambda _, __: rules.double_pendulum()),
}
"""How the bodies of the catalogue are made."""
