"""`MjxEnv`: the same tasks on MJX, MuJoCo in JAX, for accelerators; optional and approximate.

MJX computes in single precision (in double precision it agrees with MuJoCo). Relative errors of
accelerations are about 1e-6, with 16 segments 1e-3; where contacts make the motion chaotic, a
trajectory has left MuJoCo's after 50 steps. `native` is the reference, and up to 14 times faster on
a CPU. Episodes start from one of `NUM_STARTS` initial states sampled once, so that no step has to
evaluate the dynamics of a new initial state.

On a CPU, XLA fuses the joint chain of a long body in such a way that the time doubles with every
joint, unless XLA_FLAGS has --xla_cpu_use_fusion_emitters=false.
"""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

import contextlib
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.envs.mamujoco.catalogue import split_name
from fp3o.envs.mamujoco.render import render_task
from fp3o.envs.mamujoco.rewards.rules import RewardInputs
from fp3o.envs.mamujoco.task import BodyTask, TaskProperties
from fp3o.errors import MissingExtraError, SettingError

NUM_STARTS = 4096
"""Number of initial states."""

_full_precision = partial(jax.default_matmul_precision, "highest")
"""Accelerators would round the factors of matrix products to ten bits."""

SOLVER = {"iterations": 20, "ls_iterations": 10}
"""Maximum number of iterations of the constraint solver. The models ask for 100 and 50, and a
batch always runs all 50. Even 10 and 10 change no bit of 4,096 states per body under random
actions."""

MJX_BODIES = (
    "HalfCheetah", "Hopper", "Walker2d", "Reacher", "ManyagentSwimmer", "Swimmer",
    "InvertedPendulum", "InvertedDoublePendulum",
)  # fmt: skip
"""Bodies that MJX simulates as MuJoCo does. Seconds to compile 64 environments on one core: 16, 19,
17, 11, 39 (16 segments), 13, 8, 10. The others, in mujoco-mjx 3.17: Ant and ManySegmentAnt have
different friction directions (a tenth of the acceleration and more in one state of 50) and rotate
as before MuJoCo 4; the solver of Humanoid and HumanoidStandup is missing; CoupledHalfCheetah gave
NaN in one state of 512; Pusher, which has spatial contacts too, was not compared."""

RK4 = np.array([[0, 1 / 6], [1 / 2, 1 / 3], [1 / 2, 1 / 3], [1, 1 / 6]])
"""The four evaluations of a Runge-Kutta step: time offset and weight."""


class MjxPhysics(NamedTuple):
    """One simulation: only what a step, a reward or an observation needs."""

    qpos: Float[Array, " q"]
    qvel: Float[Array, " v"]
    warm_start: Float[Array, " v"]
    """The last acceleration, the initial guess of the solver."""
    fields: dict[str, Array]
    """The task's fields besides qpos and qvel. As in MuJoCo they belong to the last evaluation of
    the dynamics, one simulation step behind (with Runge-Kutta, to the fourth evaluation)."""

    @property
    def all_fields(self) -> dict[str, Array]:
        """The fields by their MuJoCo names."""
        return {"qpos": self.qpos, "qvel": self.qvel, **self.fields}


class MjxState(NamedTuple):
    """The state of an episode."""

    physics: MjxPhysics
    progress: Float[Array, ""]
    """The quantity whose change the next reward measures."""
    time: Int[Array, ""]
    """Steps since the start of the episode."""


class MjxEnv(TaskProperties, Env):
    """One environment of a task as pure functions on MJX."""

    def __init__(self, task: BodyTask):
        _check_body(task)
        self.task, self._mjx, self._starts = task, _import_mjx(), _sample_starts(task)
        model = self._mjx.put_model(task.model)
        self._model = model.replace(opt=model.opt.replace(**SOLVER))
        self._blank = self._mjx.make_data(task.model)
        fourth = task.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        self._advance = self._runge_kutta if fourth else self._euler

    def render(self, state: MjxState, caption: str) -> np.ndarray:
        """Draw the body, with one colour per agent."""
        return render_task(self.task, np.asarray(state.physics.qpos, np.float64), caption)

    def reset(self, key: PRNGKeyArray) -> MjxState:
        """Sample one of the initial states."""
        return self._start(jax.random.randint(key, (), 0, NUM_STARTS))

    def step(
        self, state: MjxState, action: Float[Array, "n d"], key: PRNGKeyArray
    ) -> tuple[MjxState, Float[Array, " n"], Bool[Array, ""], Bool[Array, ""]]:
        """Next state, reward, terminated, truncated."""
        rules, controls = self.task.body.rewards, self.task.controls(action)
        physics = self._simulate(state.physics, controls)
        fields, valid = physics.all_fields, _is_valid(physics)
        healthy = jnp.ones((), bool) if rules.healthy is None else rules.healthy(jnp, fields)
        new = MjxState(physics, rules.progress(jnp, fields), state.time + 1)
        inputs = RewardInputs(
            fields, state.progress, new.progress, controls, healthy, self.task.step_seconds
        )
        # As on MuJoCo, a simulation that has diverged is reset and fails without a reward. The
        # reward is NaN if the actions were not finite: training then stops with an error.
        reward = jnp.where(valid, rules.reward(jnp, inputs), 0.0 * controls.sum())
        new = jax.tree.map(lambda x, y: jnp.where(valid, x, y), new, self._start(0))
        failed = ~(healthy & valid)
        late = (new.time == self.task.body.max_episode_steps) & ~failed
        return new, jnp.broadcast_to(reward, (self.spec.num_agents,)), failed, late

    def observe(self, state: MjxState) -> Observation:
        """Observations and states of the agents."""
        readings = self.task.readings(jnp, state.physics.all_fields)
        with _full_precision():
            obs, team = self.task.obs_from(jnp, readings), self.task.state_from(jnp, readings)
        alive = jnp.ones(self.spec.num_agents, bool)
        return Observation(obs, team, jnp.asarray(self.spec.actions.mask), alive)

    def _start(self, row: int | Int[Array, ""]) -> MjxState:
        return jax.tree.map(lambda x: x[row], self._starts)

    def _simulate(self, physics: MjxPhysics, controls: Float[Array, " u"]) -> MjxPhysics:
        """Simulate one environment step."""
        substep = lambda _, physics: self._advance(physics, controls)  # noqa: E731
        with _full_precision():
            return jax.lax.fori_loop(0, self.task.body.frame_skip, substep, physics)

    def _euler(self, physics: MjxPhysics, controls: Float[Array, " u"]) -> MjxPhysics:
        data = self._mjx.step(self._model, self._data(*physics[:3], controls))
        return MjxPhysics(data.qpos, data.qvel, data.qacc_warmstart, self._fields(data))

    def _runge_kutta(self, physics: MjxPhysics, controls: Float[Array, " u"]) -> MjxPhysics:
        """A simulation step of fourth order. MJX's function compiles the dynamics four times."""
        qpos, qvel, warm_start, fields = physics
        timestep = self.task.model.opt.timestep

        def evaluate(carry: Any, weights: Float[Array, " 2"]) -> tuple[Any, None]:
            velocity, acceleration, dpos, dvel, _ = carry
            ahead, share = timestep * weights
            position, velocity = qpos + ahead * velocity, qvel + ahead * acceleration
            data = self._data(position, velocity, warm_start, controls)
            data = self._mjx.forward(self._model, data)
            dpos, dvel = dpos + share * velocity, dvel + share * data.qacc
            return (velocity, data.qacc, dpos, dvel, self._fields(data)), None

        first, weights = (*[jnp.zeros_like(qvel)] * 4, fields), jnp.asarray(RK4, qvel.dtype)
        (_, last, dpos, dvel, fields), _ = jax.lax.scan(evaluate, first, weights)
        return MjxPhysics(qpos + dpos, qvel + dvel, last, fields)

    def _data(self, qpos: Array, qvel: Array, warm_start: Array, controls: Array) -> Any:
        return self._blank.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warm_start, ctrl=controls)

    def _fields(self, data: Any) -> dict[str, Array]:
        return {name: getattr(data, name) for name in self.task.field_names}


def _import_mjx() -> Any:
    """The module `mujoco.mjx`."""
    try:
        with contextlib.redirect_stdout(None):  # it prints names of packages that are not needed
            from mujoco import mjx
    except ImportError as error:
        raise MissingExtraError("mujoco-mjx", "mjx") from error
    return mjx


def _check_body(task: BodyTask) -> None:
    body, _ = split_name(task.spec.name.partition("/")[2])
    if body not in MJX_BODIES:
        raise SettingError(
            f"{body} does not run on MJX, whose physics of it differ from MuJoCo's: use "
            f"backend=native. On MJX: {', '.join(MJX_BODIES)}"
        )


def _is_valid(physics: MjxPhysics) -> Bool[Array, ""]:
    """Whether MuJoCo would continue from here."""
    return (jnp.abs(jnp.concatenate(physics[:3])) < mujoco.mjMAXVAL).all()


def _sample_starts(task: BodyTask) -> MjxState:
    """`NUM_STARTS` initial states, evaluated by MuJoCo itself."""
    model, rules, random = task.model, task.body.rewards, np.random.default_rng(0)
    names = "qpos", "qvel", "qacc_warmstart", *task.field_names
    data, rows = mujoco.MjData(model), []
    for _ in range(NUM_STARTS):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = rules.initial_state(random, model.qpos0, model.nv)
        mujoco.mj_forward(model, data)
        rows.append([np.array(getattr(data, name)) for name in names])
    columns = (jnp.asarray(np.stack(column)) for column in zip(*rows, strict=True))
    fields = dict(zip(names, columns, strict=True))
    progress = rules.progress(jnp, fields)
    physics = MjxPhysics(*(fields.pop(name) for name in names[:3]), fields=fields)
    return MjxState(physics, progress, jnp.zeros(NUM_STARTS, int))
