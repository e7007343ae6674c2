"""The paper's MuJoCo tasks as one simulation in plain loops, an independent reference.

It follows the paper's code, one number at a time. Rewards are formulas, the bodies are gymnasium's
files, the rest is in `mamujoco_paper_tables`. Nothing is shared with the package.
"""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mamujoco_paper_tables import LINKS, OWNED, ROOTS, STATES

REACH = 5
"""Distance up to which an agent observes other joints in the paper."""


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
