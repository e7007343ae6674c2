"""Two coupled cheetahs of the `farama` profile against a plain loop."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from mamujoco_native import close, place

from fp3o.envs.mamujoco.native import NativeVecEnv
from fp3o.envs.mamujoco.task import body_task

mamujoco = pytest.importorskip(
    "gymnasium_robotics.envs.multiagent_mujoco.mujoco_multi",
    reason="the comparison needs the other package",
)
STEPS = 102
pytestmark = pytest.mark.usefixtures("temporary_folder")


class CoupledCheetahs:
    """Two coupled cheetahs on the file of gymnasium-robotics, in a plain loop.

    gymnasium-robotics itself fails: it reads the tendon's Jacobian as a full matrix, which newer
    versions of MuJoCo do not provide.
    """

    def __init__(self) -> None:
        path = Path(mamujoco.__file__).parent / "assets" / "coupled_half_cheetah.xml"
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data, self.scratch = mujoco.MjData(self.model), mujoco.MjData(self.model)
        self.lagging = (np.zeros(18), np.zeros(18))

    def place(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self.data)
        self.lagging = (qpos.copy(), qvel.copy())

    def step(self, control: np.ndarray) -> float:
        before = self.data.qpos[[0, 9]].copy()
        self.data.ctrl[:] = control
        for _ in range(5):
            # Derived quantities belong to the start of the last substep.
            self.lagging = (self.data.qpos.copy(), self.data.qvel.copy())
            mujoco.mj_step(self.model, self.data)
        speed = (self.data.qpos[[0, 9]] - before) / 0.05
        cost = [0.1 * np.square(one).sum() for one in (control[:6], control[6:])]
        return float(speed.mean() - np.mean(cost))

    def length(self, qpos: np.ndarray) -> float:
        """Length of the tendon from one root to the other."""
        self.scratch.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self.scratch)
        return float(
            np.linalg.norm(np.subtract(*(self.scratch.site(t).xpos for t in ("t0", "t1"))))
        )

    def tendon(self) -> np.ndarray:
        """Finite differences by x and z of both; the length and its velocity."""
        qpos, qvel = self.lagging
        nudge = 1e-6 * np.eye(18)
        slope = [(self.length(qpos + d) - self.length(qpos - d)) / 2e-6 for d in nudge]
        return np.array([*np.take(slope, [0, 1, 9, 10]), self.length(qpos), slope @ qvel])

    def observe(self) -> tuple[list[Any], list[Any]]:
        q, v, tendon = self.data.qpos, self.data.qvel, self.tendon()
        joint = lambda i: [q[i], v[i]]  # noqa: E731
        # Feet, shins and thighs by name; the tendon follows the first thigh.
        near = [*joint(14), *joint(13), *joint(12), *tendon, *joint(17), *joint(16), *joint(15)]
        root = [q[2], q[1], q[11], q[10], v[0], v[2], v[1], v[9], v[11], v[10]]
        return near + root, [*q[1:9], *q[10:18], *v, *tendon]


@pytest.mark.parametrize("conf", ["1p1", "1x12"])
def test_coupled_cheetahs(conf: str) -> None:
    """Physics, rewards and observations, including the tendon."""
    env = NativeVecEnv(
        body_task(f"CoupledHalfCheetah-{conf}", "farama"), 1, threads=1, dtype=np.float64
    )
    cheetahs, rng, longest = CoupledCheetahs(), np.random.default_rng(3), 0.0
    qpos, qvel = rng.uniform(-0.1, 0.1, 18), 0.1 * rng.standard_normal(18)
    qpos[9], qvel[[0, 9]] = 2.8, (-1.0, 1.0)  # far apart, so that the tendon is tight
    cheetahs.place(qpos, qvel)
    state = place(env, cheetahs.data.qpos, cheetahs.data.qvel)
    for t in range(STEPS):
        control = rng.uniform(-1.2, 1.2, 12)
        wanted = cheetahs.step(control)
        longest = max(longest, float(cheetahs.data.ten_length[0]))
        state, ours = env.step(state, control.reshape(1, env.spec.num_agents, -1))
        close(env.simulation.fields["qpos"][0], cheetahs.data.qpos)
        close(env.simulation.fields["qvel"][0], cheetahs.data.qvel)
        close(ours.reward[0], wanted)
        if t % 10 == 0:
            seen, whole = cheetahs.observe()
            for row in np.asarray(ours.obs[0]):
                close(row, whole if conf == "1x12" else seen, 1e-8)
            close(ours.state[0, 0], whole, 1e-8)
    assert longest > 3.5
