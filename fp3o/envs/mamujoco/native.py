"""A batch of simulations on MuJoCo itself, on native threads."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

import contextlib
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import mujoco
import numpy as np
from jaxtyping import Array, Key
from mujoco.batch import Batch

from fp3o.envs.api import Act, HostEnv, VecEnv
from fp3o.envs.mamujoco.render import portrait
from fp3o.envs.mamujoco.rewards import Moment
from fp3o.envs.mamujoco.rollout_log import Diary, see
from fp3o.envs.mamujoco.task import World, world
from fp3o.errors import NonFiniteError
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

if TYPE_CHECKING:
    from fp3o.envs.mamujoco.mjx import MjxGame

PER_THREAD = 2
"""Simulations a thread should have at least: fewer, and waking it costs more than it does."""

MIX = 6364136223846793005
"""An odd number without a pattern."""

BAD = {
    int(mujoco.mjtWarning.mjWARN_BADQPOS),
    int(mujoco.mjtWarning.mjWARN_BADQVEL),
    int(mujoco.mjtWarning.mjWARN_BADQACC),
}
"""Warnings of a simulation that has blown up and was put back to its rest position."""


class Simulations(NamedTuple):
    """Where all simulations stand: numbers only, so it can be saved and given back exactly."""

    physics: np.ndarray
    """(e, ...): MuJoCo's integration state, the solver's warm start included."""
    gauge: np.ndarray
    """(e,): what the next reward is measured from."""
    time: np.ndarray
    """(e,): steps of the running episode."""
    episode: np.ndarray
    """(e,): episodes begun; with `stream` it decides how the next one begins."""
    stream: np.ndarray
    """(e, 2): the random stream of each environment."""


class Native(VecEnv):
    """`num_envs` environments of one task, stepped together; episodes begin again by themselves.

    The same numbers come out with any number of threads. Observations are `dtype`; the physics
    are always double precision.
    """

    def __init__(
        self, world: World, num_envs: int, threads: int | None = None, dtype: Any = np.float32
    ):
        self.world, self.num_envs, self.dtype = world, num_envs, dtype
        # Contact forces are not part of a step: they need the simulation's whole data afterwards.
        self._felt = "cfrc_ext" in world.fields
        model = world.model
        count = threads or default_threads(num_envs)
        self._batch = Batch(model, num_envs, nthread=count, persistent=self._felt)
        fields = [name for name in world.fields if name != "cfrc_ext"]
        self._moment: dict[str, np.ndarray] = {
            name: self._batch.bind(name) for name in ("qpos", "qvel", *fields)
        }
        self._ctrl = self._batch.bind("ctrl")
        self._scratch = mujoco.MjData(model)
        if self._felt:
            self._moment["cfrc_ext"] = np.zeros((num_envs, model.nbody, 6))
        mask = world.spec.actions.mask
        self._legal = np.ascontiguousarray(np.broadcast_to(mask, (num_envs, *mask.shape)))
        self._alive = np.ones((num_envs, world.spec.num_agents), bool)
        self._counts = self._batch.warning[:, :, 1]
        self._told: set[int] = set()
        self._motion = self._batch.state[:, 1 : 1 + model.nq + model.nv]
        self._blank = self._first(*self._see(self._moment))

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self.world.spec

    def reset(self, key: Key[Array, "*s"]) -> tuple[Simulations, TimeStep]:
        """Begin an episode in every environment; of several keys each has an equal part of them."""
        numbers = np.asarray(jax.random.key_data(key)).reshape(key.size, -1, 2).astype(np.uint64)
        pairs = numbers[..., 0] << np.uint64(32) | numbers[..., 1]  # one, or two of a longer key
        names = (pairs * np.array([1, MIX], np.uint64)[: pairs.shape[1]]).sum(1, dtype=np.uint64)
        each = self.num_envs // len(names)
        stream = np.empty((self.num_envs, 2), np.uint64)
        stream[:, 0] = np.repeat(names, each)
        stream[:, 1] = np.tile(np.arange(each), len(names))
        episode = np.zeros(self.num_envs, np.int64)
        self._begin(np.arange(self.num_envs), stream, episode)
        gauge = np.array(self.world.robot.rules.gauge(np, self._moment))
        time = np.zeros(self.num_envs, np.int64)
        state = Simulations(self._batch.state.copy(), gauge, time, episode + 1, stream)
        return state, self._first(*self._see(self._moment))

    def step(self, state: Simulations, action: Any) -> tuple[Simulations, TimeStep]:
        """Play the actions `(e, n, d)`; where an episode ends, the next one begins."""
        new, seen = self.rollout(state, self._blank, lambda *_: action, 1)
        return new, TimeStep._make(x[1] for x in seen)

    def render(self, state: Simulations, caption: str) -> np.ndarray:
        """The first environment's body, each agent's parts in its colour."""
        first = 1 + self.world.model.nq  # after the time
        return portrait(self.world, state.physics[0, 1:first], caption)

    def rollout(
        self, state: Simulations, now: TimeStep, act: Act, num_steps: int
    ) -> tuple[Simulations, TimeStep]:
        """Step many times with one call of the simulator per step."""
        diary = Diary(self.world, self._moment, now, num_steps)
        self._batch.state[...] = state.physics
        self._counts[...] = 0  # an error may have come before the reset that would do it
        limit, episode = self.world.robot.limit, state.episode.copy()
        began = -state.time  # the step in which each running episode began
        due = (began + limit).min()
        with quiet():
            for t in range(num_steps):
                action = act(t, diary.obs[t], self._legal, diary.start[t])
                self._drive(diary.controls[t], action)
                self._batch.step(nstep=self.world.robot.skip)
                ended = self._note(diary, t)
                if t + 1 >= due:
                    diary.late[t] = (t + 1 - began >= limit) & ~diary.failed[t]
                    ended = True
                if ended:
                    ids = np.flatnonzero(diary.failed[t] | diary.late[t])
                    self._begin(ids, state.stream, episode)
                    diary.begin(t, ids, self._moment)
                    began[ids], episode[ids] = t + 1, episode[ids] + 1
                    due = (began + limit).min()
                diary.obs[t + 1] = see(self.world, "obs", self._moment, self.dtype)
        gauge, seen = diary.close(state.gauge)
        physics, time = self._batch.state.copy(), num_steps - began
        if diary.blown.any():  # told last: a warning may be made an error
            self._tell(diary.blown)
        return Simulations(physics, gauge, time, episode, state.stream), seen

    def _drive(self, control: np.ndarray, action: Any) -> None:
        """Fill in the controls of a step and give them to the motors."""
        control[...] = self.world.controls(np.asarray(action))
        if not math.isfinite(control.sum()):
            self._refuse(np.asarray(action))
        self._ctrl[...] = control

    def _note(self, diary: Diary, t: int) -> bool:
        """Note where the bodies are after a step; whether one of them has failed."""
        if absurd := self._absurd():
            diary.blown[t] = self._blown()
        if self._felt:
            self._feel()
        diary.note(t, self._moment)
        healthy = self.world.robot.rules.healthy
        if healthy is not None:
            diary.failed[t] = ~healthy(np, self._moment)
        elif not absurd:
            return False
        diary.failed[t] |= diary.blown[t]
        return bool(diary.failed[t].any())

    def _absurd(self) -> bool:
        """Whether a simulation may have diverged: seldom true, and quickly found."""
        # MuJoCo puts a simulation back when it finds absurd numbers at the start of a substep (a
        # reset sets the counts to 0). What the last substep has made absurd, it has not seen yet.
        worst = max(self._motion.max(), -self._motion.min())  # NaN if there is one
        return not worst < mujoco.mjMAXVAL or bool(self._counts.any())

    def _blown(self) -> np.ndarray:
        """Which simulations have diverged in this step; they are at rest now."""
        for kind in {*np.flatnonzero(self._counts.any(0)).tolist()} - BAD - self._told:
            self._told.add(kind)
            warnings.warn(
                f"{self.spec.name}: {mujoco.mjtWarning(kind).name}", RuntimeWarning, stacklevel=3
            )
        unseen = ~(np.abs(self._motion) < mujoco.mjMAXVAL).all(1)
        blown = self._counts[:, [*BAD]].any(1) | unseen
        ids = np.flatnonzero(unseen)
        self._batch.reset(ids, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        self._batch.forward(ids)
        self._counts[...] = 0
        return blown

    def _tell(self, blown: np.ndarray) -> None:
        which = np.flatnonzero(blown.any(0))
        warnings.warn(
            f"{self.spec.name}: the simulation diverged in {len(which)} of {self.num_envs} "
            f"environments (the first is number {which[0]}); these episodes end here",
            RuntimeWarning,
            stacklevel=3,
        )

    def _begin(self, ids: np.ndarray, stream: np.ndarray, episode: np.ndarray) -> None:
        """Put some simulations at the start of an episode, each by its own random stream."""
        model, start = self.world.model, self.world.robot.rules.start
        self._batch.reset(ids, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        for i in ids:
            source = np.random.Philox(key=stream[i], counter=[0, 0, 0, int(episode[i])])
            qpos, qvel = start(np.random.Generator(source), model.qpos0, model.nv)
            self._moment["qpos"][i], self._moment["qvel"][i] = qpos, qvel
        self._batch.forward(ids)
        if self._felt:
            self._moment["cfrc_ext"][ids] = 0.0

    def _feel(self) -> None:
        """Forces from outside on every body, as MuJoCo computes them after a step.

        The one loop over environments here, and only for bodies that observe forces: the call
        takes a single simulation. It costs some 3 % of such a body's physics.
        """
        for i in range(self.num_envs):
            data = self._batch.get_data(i, self._scratch)
            mujoco.mj_rnePostConstraint(self.world.model, data)
            self._moment["cfrc_ext"][i] = data.cfrc_ext

    def _see(self, moment: Moment) -> tuple[np.ndarray, np.ndarray]:
        obs, team = (see(self.world, what, moment, self.dtype) for what in ("obs", "state"))
        return obs, team

    def _first(self, obs: np.ndarray, team: np.ndarray) -> TimeStep:
        """What is seen after a reset."""
        never = np.zeros(self.num_envs, bool)
        reward = np.zeros((self.num_envs, self.spec.num_agents), self.dtype)
        rest = self._legal, self._alive, reward, never, never, ~never, obs, team
        return TimeStep._make((obs, team, *rest, np.zeros((self.num_envs, 0), self.dtype)))

    def _refuse(self, action: np.ndarray) -> None:
        bad = ~np.isfinite(action) & self._legal
        env, agent, place = (int(x) for x in np.argwhere(bad)[0])
        raise NonFiniteError(
            f"{self.spec.name}: agent {agent} asks for {action[env, agent, place]} in dimension "
            f"{place} of its action (environment {env}); actions must be finite"
        )


@dataclass(frozen=True)
class NativeGame(HostEnv):
    """A task on MuJoCo itself, ready to be made in any number."""

    world: World
    renderable = True

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self.world.spec

    @property
    def step_seconds(self) -> float:
        """Seconds a step lasts."""
        return self.world.dt

    def vectorise(self, num_envs: int) -> Native:
        """Environments that are stepped together."""
        return Native(self.world, num_envs)

    @property
    def max_episode_steps(self) -> int:
        """The time limit."""
        return self.world.robot.limit


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep MuJoCo from noting warnings in a file where we stand: the environment tells them."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(_ignore)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def _ignore(words: str) -> None:
    pass


@cache
def make(name: str, variant: str) -> "NativeGame | MjxGame":
    """A task by its name and variant, on the backend the variant asks for."""
    made = world(name, variant)
    if made.variant.backend == "native":
        return NativeGame(made)
    from fp3o.envs.mamujoco.mjx import MjxGame

    return MjxGame(made)


def default_threads(num_envs: int) -> int:
    """As many as the processor has (or FP3O_THREADS says), but none with too little to do."""
    told = os.environ.get("FP3O_THREADS", "")
    if told and not (told.isdecimal() and int(told)):
        raise ValueError(f"FP3O_THREADS must be a whole number above 0, got {told!r}")
    own = getattr(os, "sched_getaffinity", None)  # where a process may be kept off some cores
    cores = int(told) if told else len(own(0)) if own else os.cpu_count() or 1
    return max(1, min(cores, -(-num_envs // PER_THREAD)))
