"""A batch of MuJoCo simulations of one body, stepped together on native threads."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

import contextlib
import os
import warnings
from collections.abc import Iterator

import mujoco
import numpy as np
from mujoco.batch import Batch

from fp3o.envs.mamujoco.task import BodyTask
from fp3o.errors import SettingError

SIMULATIONS_PER_THREAD = 2
"""Minimum number of simulations per thread; below it, threads cost more than they save."""

DIVERGED = {
    int(mujoco.mjtWarning.mjWARN_BADQPOS),
    int(mujoco.mjtWarning.mjWARN_BADQVEL),
    int(mujoco.mjtWarning.mjWARN_BADQACC),
}
"""Warnings of simulations that have diverged and were reset by MuJoCo to their rest position."""

LARGEST_SQUARE = mujoco.mjMAXVAL**2
"""MuJoCo resets a simulation in which the square of a number is larger."""

NO_STAGE = int(mujoco.mjtStage.mjSTAGE_NONE)


class SimulationBatch:
    """`num_envs` simulations of the body of a task."""

    def __init__(self, task: BodyTask, num_envs: int, threads: int | None = None):
        self.task, self.num_envs = task, num_envs
        # External forces are not part of a step: they need all data of the simulation afterwards.
        self._needs_forces = "cfrc_ext" in task.field_names
        model = task.model
        self.batch = Batch(
            model, num_envs, nthread=threads or default_threads(num_envs),
            persistent=self._needs_forces,
        )  # fmt: skip
        names = [name for name in task.field_names if name != "cfrc_ext"]
        self.fields: dict[str, np.ndarray] = {
            name: self.batch.bind(name) for name in ("qpos", "qvel", *names)
        }
        """The current MuJoCo fields of all simulations; they change with every step."""
        self.controls: np.ndarray = self.batch.bind("ctrl")
        self._scratch = mujoco.MjData(model)
        if self._needs_forces:
            self.fields["cfrc_ext"] = np.zeros((num_envs, model.nbody, 6))
        self._warning_counts = self.batch.warning[:, :, 1]
        self._reported: set[int] = set()
        self.motion: np.ndarray = self.batch.state[:, 1 : 1 + model.nq + model.nv]
        """(e, nq + nv): the current positions and velocities."""

    @property
    def physics(self) -> np.ndarray:
        """A copy of MuJoCo's integration states, `(e, ...)`."""
        return self.batch.state.copy()

    def restore(self, physics: np.ndarray) -> None:
        """Set the integration states."""
        self.batch.state[...] = physics
        # An error may have prevented the reset that clears the counts.
        self._warning_counts[...] = 0

    def step(self) -> None:
        """Advance all simulations by one environment step."""
        self.batch.step(nstep=self.task.body.frame_skip)

    def may_have_diverged(self, motion: np.ndarray) -> bool:
        """Whether a simulation may have diverged: rarely true, and cheap to test.

        `motion` is a copy of the current positions and velocities.
        """
        # MuJoCo resets a simulation when it finds bad numbers at the start of a substep (a reset
        # clears the counts). Those of the last substep are not found before the next step.
        flat = motion.reshape(-1)
        # At least the square of the largest number; NaN if there is one.
        squares = flat.dot(flat)
        return not squares < LARGEST_SQUARE or bool(np.count_nonzero(self._warning_counts))

    def reset_diverged(self) -> np.ndarray:
        """Reset simulations that have diverged to their rest position; `(e,)`, which they are."""
        warned = {*np.flatnonzero(self._warning_counts.any(0)).tolist()}
        for warning in warned - DIVERGED - self._reported:
            self._reported.add(warning)
            message = f"{self.task.spec.name}: {mujoco.mjtWarning(warning).name}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        unnoticed = ~(np.abs(self.motion) < mujoco.mjMAXVAL).all(1)
        diverged = self._warning_counts[:, [*DIVERGED]].any(1) | unnoticed
        ids = np.flatnonzero(unnoticed)
        self.batch.reset(ids, stage=NO_STAGE)
        self.batch.forward(ids)
        self._warning_counts[...] = 0
        return diverged

    def start_episodes(self, ids: np.ndarray, stream: np.ndarray, episode: np.ndarray) -> None:
        """Set some simulations to the start of an episode, each from its own random stream."""
        model, initial_state = self.task.model, self.task.body.rewards.initial_state
        self.batch.reset(ids, stage=NO_STAGE)
        for i in ids:
            source = np.random.Philox(key=stream[i], counter=[0, 0, 0, int(episode[i])])
            qpos, qvel = initial_state(np.random.Generator(source), model.qpos0, model.nv)
            self.fields["qpos"][i], self.fields["qvel"][i] = qpos, qvel
        self.batch.forward(ids)
        if self._needs_forces:
            self.fields["cfrc_ext"][ids] = 0.0

    def update_forces(self) -> None:
        """Compute external forces on all bodies, as MuJoCo does after a step.

        This is the one loop over environments, and only for bodies that observe forces: MuJoCo's
        function takes a single simulation. It costs about 3 % of the physics of such a body.
        """
        if not self._needs_forces:
            return
        for i in range(self.num_envs):
            data = self.batch.get_data(i, self._scratch)
            mujoco.mj_rnePostConstraint(self.task.model, data)
            self.fields["cfrc_ext"][i] = data.cfrc_ext


@contextlib.contextmanager
def silenced_warnings() -> Iterator[None]:
    """Keep MuJoCo from writing warnings to a file; the environment reports them."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(_ignore)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _ignore(message: str) -> None:
    pass


def default_threads(num_envs: int) -> int:
    """Number of threads: the available cores or FP3O_THREADS; fewer for few simulations."""
    setting = os.environ.get("FP3O_THREADS", "")
    if setting and not (setting.isdecimal() and int(setting)):
        raise SettingError(f"FP3O_THREADS must be a positive integer, got {setting!r}")
    affinity = getattr(os, "sched_getaffinity", None)  # where a process may be restricted to cores
    cores = int(setting) if setting else len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, -(-num_envs // SIMULATIONS_PER_THREAD)))
