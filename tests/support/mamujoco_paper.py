"""The paper's MuJoCo tasks as one simulation in plain loops, an independent reference.

It follows the paper's code, one number at a time. An observation is a list of symbols: `q3` is
qpos[3], `v3` qvel[3], `w3` qvel[3] clipped to 10, `sin0` the sine of qpos[0], `dx` the offset from
target to fingertip, `0` zero. Rewards are formulas, the bodies are gymnasium's files. Nothing is
shared with the package, except in `place`.
"""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import mujoco
import numpy as np

from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv

REACH = 5
"""Distance up to which an agent observes other joints in the paper."""


def place(env: NativeVecEnv, qpos: np.ndarray, qvel: np.ndarray) -> NativeState:
    """All environments at one position and velocity, as at the start of an episode."""
    state, _ = env.reset(jax.random.key(0))
    everyone = np.arange(env.num_envs)
    batch, fields = env.simulation.batch, env.simulation.fields
    batch.reset(everyone, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
    fields["qpos"][...], fields["qvel"][...] = qpos, qvel
    batch.forward(everyone)
    progress = np.array(env.task.body.rewards.progress(np, fields))
    return state._replace(physics=batch.state.copy(), progress=progress)


def symbols(letter: str, start: int, stop: int) -> str:
    """`q2 q3 q4` and so on."""
    return " ".join(f"{letter}{i}" for i in range(start, stop))


ANT_ROOT = f"{symbols('q', 0, 7)} {symbols('v', 0, 6)}"
HOPPER_ROOT = "q2 q1 w1 w2 w1"
CHEETAH_ROOT = "q2 q1 v0 v2 v1"

LITERAL = {
    "Ant-2x4": [
        f"q8 v7 q10 v9 q7 v6 q9 v8 q11 q13 q12 q14 {ANT_ROOT}",
        f"q12 v11 q14 v13 q11 v10 q13 v12 q7 q9 q8 q10 {ANT_ROOT}",
    ],
    "Walker2d-2x3": ["q5 v5 q4 v4 q3 v3 q6 q7 q8", "q8 v8 q7 v7 q6 v6 q3 q4 q5"],
    "Hopper-3x1": [
        f"q3 w3 q4 q5 {HOPPER_ROOT}",
        f"q4 w4 q5 q3 {HOPPER_ROOT}",
        f"q5 w5 q4 q3 {HOPPER_ROOT}",
    ],
    "HalfCheetah-6x1": [
        f"q5 v5 q4 q3 q6 q7 q8 {CHEETAH_ROOT}",
        f"q4 v4 q5 q3 q6 q7 q8 {CHEETAH_ROOT}",
        f"q3 v3 q4 q6 q5 q7 q8 {CHEETAH_ROOT}",
        f"q8 v8 q7 q6 q3 q4 q5 {CHEETAH_ROOT}",
        f"q7 v7 q8 q6 q3 q4 q5 {CHEETAH_ROOT}",
        f"q6 v6 q3 q7 q4 q8 q5 {CHEETAH_ROOT}",
    ],
    "Reacher-2x1": [
        "sin0 cos0 v0 sin1 cos1 q2 q3",
        "sin1 cos1 v1 dx dy dz sin0 cos0 q2 q3",
    ],
    "ManyagentSwimmer-8x2": [
        "q3 v3 q4 v4 q5 q6 q7 q8 q9",
        "q5 v5 q6 v6 q4 q7 q3 q8 q9 q10 q11",
        "q7 v7 q8 v8 q6 q9 q5 q10 q4 q11 q3 q12 q13",
        "q9 v9 q10 v10 q8 q11 q7 q12 q13 q6 q14 q5 q4 q15",
    ],
}
"""Observations of the paper's agents; of the swimmer, the first four agents."""

STATES = {
    "Reacher": "cos0 cos1 sin0 sin1 q2 q3 v0 v1 dx dy dz",
    "Ant": f"{symbols('q', 2, 15)} {symbols('v', 0, 14)} {'0 ' * 84}",
    "HalfCheetah": f"{symbols('q', 1, 9)} {symbols('v', 0, 9)}",
    "Hopper": f"{symbols('q', 1, 6)} {symbols('w', 0, 6)}",
    "Walker2d": f"{symbols('q', 1, 9)} {symbols('w', 0, 9)}",
    "ManyagentSwimmer": f"{symbols('q', 2, 19)} {symbols('v', 0, 19)}",
}

Own = list[tuple[str, ...]]


def legs(*of_agents: tuple[int, ...]) -> Own:
    """The joints of ant agents that have these legs."""
    return [tuple(f"{part}_{i}" for i in agent for part in ("hip", "ankle")) for agent in of_agents]


CHEETAH = ("bfoot", "bshin", "bthigh", "ffoot", "fshin", "fthigh")
OWNED: dict[str, Own] = {
    "Reacher-2x1": [("joint0",), ("joint1",)],
    "Ant-2x4": legs((1, 2), (3, 4)),
    "Ant-4x2": legs((1,), (2,), (3,), (4,)),
    "Walker2d-2x3": [
        ("foot_joint", "leg_joint", "thigh_joint"),
        ("foot_left_joint", "leg_left_joint", "thigh_left_joint"),
    ],
    "Hopper-3x1": [("thigh_joint",), ("leg_joint",), ("foot_joint",)],
    "HalfCheetah-6x1": [(name,) for name in CHEETAH],
    "HalfCheetah-2x3": [CHEETAH[:3], CHEETAH[3:]],
    "ManyagentSwimmer-8x2": [(f"rot{2 * i}", f"rot{2 * i + 1}") for i in range(8)],
}
"""The joints of each agent, by their names in the model."""

LINKS: dict[str, list[tuple[str, ...]]] = {
    "Reacher": [("joint0", "joint1")],
    "Ant": [*legs((1,), (2,), (3,), (4,)), ("hip_1", "hip_2", "hip_3", "hip_4")],
    "Walker2d": [
        ("foot_joint", "leg_joint"),
        ("leg_joint", "thigh_joint"),
        ("foot_left_joint", "leg_left_joint"),
        ("leg_left_joint", "thigh_left_joint"),
        ("thigh_joint", "thigh_left_joint"),
    ],
    "Hopper": [("thigh_joint", "leg_joint"), ("leg_joint", "foot_joint")],
    "HalfCheetah": [
        ("bfoot", "bshin"),
        ("bshin", "bthigh"),
        ("bthigh", "fthigh"),
        ("fthigh", "fshin"),
        ("fshin", "ffoot"),
    ],
    "ManyagentSwimmer": [(f"rot{i}", f"rot{i + 1}") for i in range(15)],
}
"""Joints that are neighbours of each other."""

ROOTS = {
    "Reacher": "q2 q3",
    "Ant": ANT_ROOT,
    "Hopper": HOPPER_ROOT,
    "HalfCheetah": CHEETAH_ROOT,
}
"""What all agents observe after the joints; nothing for the walker and the swimmer."""


def steps_between(start: str, end: str, links: list[tuple[str, ...]]) -> int:
    """Distance of two joints in the graph."""
    reached, distance = {start}, 0
    while end not in reached:
        reached |= {joint for link in links if reached & {*link} for joint in link}
        distance += 1
    return distance


def by_label(task: str, model: mujoco.MjModel, reach: int = REACH) -> list[str]:
    """Observations of the agents of a task from its graph, sorted by name at each distance."""
    body = task.split("-")[0]
    links = LINKS[body]
    everyone = sorted({joint for link in links for joint in link})
    seen = []
    for own in OWNED[task]:
        row: list[str] = []
        for distance in range(reach + 1):
            for joint in everyone:
                if min(steps_between(mine, joint, links) for mine in own) == distance:
                    row += joint_symbols(body, model.joint(joint), distance == 0)
        seen.append(" ".join([*row, ROOTS.get(body, "")]))
    return seen


def joint_symbols(body: str, joint: Any, mine: bool) -> list[str]:
    """Observed numbers of a joint: its position, and the velocity of own joints."""
    q, v = int(joint.qposadr[0]), int(joint.dofadr[0])
    position = [f"sin{q}", f"cos{q}"] if body == "Reacher" else [f"q{q}"]
    velocity = [f"{'w' if body == 'Hopper' else 'v'}{v}"] if mine else []
    tip = ["dx", "dy", "dz"] if mine and joint.name == "joint1" else []
    return position + velocity + tip


class PlainTask:
    """A task of the paper as one simulation, stepped in a loop."""

    def __init__(self, task: str, reach: int = REACH) -> None:
        self.task, self.body = task, task.split("-")[0]
        self.model = load(self.body)
        self.data = mujoco.MjData(self.model)
        self.skip = {"Ant": 5, "HalfCheetah": 5, "Reacher": 2}.get(self.body, 4)
        self.observed = by_label(task, self.model, reach)

    def place(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Start an episode."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self.data)

    def read(self, symbol: str) -> float:
        """One number of an observation."""
        data = self.data
        if symbol == "0":
            return 0.0
        if symbol in ("dx", "dy", "dz"):
            axis = "xyz".index(symbol[1])
            return float(data.body("fingertip").xpos[axis] - data.body("target").xpos[axis])
        source, index = symbol.rstrip("0123456789"), int(symbol.lstrip("qvwsinco"))
        if source in ("sin", "cos"):
            return getattr(math, source)(float(data.qpos[index]))
        value = float(data.qpos[index] if source == "q" else data.qvel[index])
        return min(10.0, max(-10.0, value)) if source == "w" else value

    def observe(self) -> tuple[list[list[float]], list[list[float]]]:
        """Observations and states of all agents."""
        rows = [[self.read(symbol) for symbol in row.split()] for row in self.observed]
        state = [self.read(symbol) for symbol in STATES[self.body].split()]
        widest = max(map(len, rows))
        ids = [[float(i == j) for j in range(len(rows))] for i in range(len(rows))]
        padded = [row + [0.0] * (widest - len(row)) for row in rows]
        obs = [standardise(row + mine) for row, mine in zip(padded, ids, strict=True)]
        return obs, [standardise(state + mine) for mine in ids]

    def step(self, control: Sequence[float]) -> tuple[float, bool]:
        """Reward, and whether the body has failed; `control` is in the order of the actuators."""
        before, far = self.x(), self.gap()
        self.data.ctrl[:] = control
        for _ in range(self.skip):
            mujoco.mj_step(self.model, self.data)
        effort = sum(float(c) ** 2 for c in control)
        if self.body == "Reacher":
            return -far - effort, False
        speed = (self.x() - before) / (self.skip * self.model.opt.timestep)
        weight = {"Ant": 0.5, "HalfCheetah": 0.1, "ManyagentSwimmer": 1e-4}.get(self.body, 1e-3)
        bonus = 1.0 if self.body in ("Ant", "Hopper", "Walker2d") else 0.0
        return speed + bonus - weight * effort, self.failed()

    def x(self) -> float:
        """Position along x."""
        return float(self.data.body("torso").xpos[0] if self.body == "Ant" else self.data.qpos[0])

    def gap(self) -> float:
        """Distance from fingertip to target."""
        if self.body != "Reacher":
            return 0.0
        return math.sqrt(sum(self.read(axis) ** 2 for axis in ("dx", "dy", "dz")))

    def failed(self) -> bool:
        """Whether the body has fallen or is too high."""
        q = [float(x) for x in self.data.qpos]
        rest = q[2:] + [float(x) for x in self.data.qvel]
        if self.body == "Ant":
            return not 0.2 <= q[2] <= 1.0
        if self.body == "Walker2d":
            return not (0.8 < q[1] < 2.0 and -1.0 < q[2] < 1.0)
        if self.body == "Hopper":
            return not (q[1] > 0.7 and abs(q[2]) < 0.2 and all(abs(x) < 100 for x in rest))
        return False


def standardise(row: list[float]) -> list[float]:
    """Subtract the mean and divide by the standard deviation."""
    mean = sum(row) / len(row)
    width = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row))
    return [(x - mean) / width for x in row]


def load(body: str) -> mujoco.MjModel:
    """The model file of gymnasium; the swimmer is written here."""
    if body == "ManyagentSwimmer":
        return mujoco.MjModel.from_xml_string(swimmer(16))
    found = find_spec("gymnasium")
    assert found is not None and found.origin is not None
    name = {"HalfCheetah": "half_cheetah"}.get(body, body.lower())
    assets = Path(found.origin).parent / "envs" / "mujoco" / "assets"
    return mujoco.MjModel.from_xml_path(str(assets / f"{name}.xml"))


def swimmer(links: int) -> str:
    """The paper's swimmer: a head and a chain behind it, in steps of 5 ms."""
    capsule = '<geom type="capsule" size="0.1" density="1000" fromto="{}"/>'
    hinge = '<joint name="rot{}" type="hinge" axis="0 0 {}" limited="true" range="-100 100"/>'
    chain = ""
    for i in reversed(range(links)):
        turn = 1 if i in (0, links - 1) else (-1) ** (i + 1)
        shape, place = capsule.format("0 0 0 -1 0 0"), "0.5 0 0" if i == 0 else "-1 0 0"
        chain = f'<body pos="{place}">{shape}{hinge.format(i, turn)}{chain}</body>'
    motor = '<motor joint="rot{}" gear="150" ctrllimited="true" ctrlrange="-1 1"/>'
    return f"""
    <mujoco>
      <compiler angle="degree" inertiafromgeom="true"/>
      <option integrator="RK4" timestep="0.005" density="4000" viscosity="0.1"/>
      <default><geom contype="0" conaffinity="0"/><joint armature="0.1"/></default>
      <worldbody><body>
        {capsule.format("1.5 0 0 0.5 0 0")}
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
        <joint type="hinge" axis="0 0 1"/>
        {chain}
      </body></worldbody>
      <actuator>{"".join(motor.format(i) for i in range(links))}</actuator>
    </mujoco>"""
