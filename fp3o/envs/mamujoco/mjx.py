"""The same tasks on MJX, MuJoCo's twin in JAX, for accelerators: optional and approximate.

It computes in single precision (in double it agrees with MuJoCo): accelerations are right to some
1e-6, those of 16 segments to 1e-3, and where contacts make the motion chaotic a path has left
MuJoCo's after 50 steps. `native.py` is the reference, and on a CPU up to 14 times faster. Episodes
begin at one of `STARTS` places drawn once, so no step pays for a look at the forces at a new place.

On a CPU, XLA fuses a long body's chain of joints in such a way that the time doubles with every
joint, unless XLA_FLAGS has --xla_cpu_use_fusion_emitters=false.
"""

# pyright: reportAttributeAccessIssue=false
# MuJoCo's compiled modules do not tell their names.

import contextlib
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.envs.mamujoco.catalogue import parse
from fp3o.envs.mamujoco.render import portrait
from fp3o.envs.mamujoco.rewards import Step
from fp3o.envs.mamujoco.task import World
from fp3o.errors import MissingExtraError
from fp3o.spec import EnvSpec

STARTS = 4096
"""Places at which an episode may begin."""

exactly = partial(jax.default_matmul_precision, "highest")
"""Accelerators would round the factors of matrix products to ten bits."""

SOLVER = {"iterations": 20, "ls_iterations": 10}
"""Rounds of the solver of contacts and limits, at most. The models ask for 100 and 50, and a batch
pays all 50. Already 10 and 10 change no bit of 4,096 states a body, met under random actions."""

BODIES = (
    "HalfCheetah", "Hopper", "Walker2d", "Reacher", "ManyagentSwimmer", "Swimmer",
    "InvertedPendulum", "InvertedDoublePendulum",
)  # fmt: skip
"""Those that MJX moves as MuJoCo does. Seconds to compile 64 environments on one core: 16, 19, 17,
11, 39 (16 segments), 13, 8, 10. The others, in mujoco-mjx 3.17: Ant and ManySegmentAnt have other
directions of friction (a tenth of the acceleration and more in one state of 50) and turn as before
MuJoCo 4; Humanoid and HumanoidStandup lack their solver; CoupledHalfCheetah gave NaN in one state
of 512; Pusher, with contacts in space too, was not compared."""

RK4 = np.array([[0, 1 / 6], [1 / 2, 1 / 3], [1 / 2, 1 / 3], [1, 1 / 6]])
"""The four looks of a Runge-Kutta step: how far ahead, and how much each counts."""


class Physics(NamedTuple):
    """Where one simulation stands: no more than a step, a reward or an observation needs."""

    qpos: Float[Array, " q"]
    qvel: Float[Array, " v"]
    warm: Float[Array, " v"]
    """The last acceleration, where the solver begins to look for the next one."""
    fields: dict[str, Array]
    """Those of the world beside qpos and qvel. As in MuJoCo they are of the last look at the
    forces, a simulation step behind (Runge-Kutta: of the fourth look)."""

    @property
    def moment(self) -> dict[str, Array]:
        """As the rules and the world read it."""
        return {"qpos": self.qpos, "qvel": self.qvel, **self.fields}


class State(NamedTuple):
    """A running episode."""

    physics: Physics
    gauge: Float[Array, ""]
    """What the next reward is measured from."""
    time: Int[Array, ""]
    """Steps since the episode began."""


class MjxGame(Env):
    """One environment of a task as pure functions on MJX."""

    renderable = True

    def __init__(self, world: World):
        _refuse(world)
        self.world, self._mjx, self._starts = world, library(), _starts(world)
        model = self._mjx.put_model(world.model)
        self._model = model.replace(opt=model.opt.replace(**SOLVER))
        self._blank = self._mjx.make_data(world.model)
        fourth = world.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        self._advance = self._runge_kutta if fourth else self._euler

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self.world.spec

    @property
    def step_seconds(self) -> float:
        """Seconds a step lasts."""
        return self.world.dt

    @property
    def max_episode_steps(self) -> int:
        """The time limit."""
        return self.world.robot.limit

    def render(self, state: State, caption: str) -> np.ndarray:
        """The body, each agent's parts in its colour."""
        return portrait(self.world, np.asarray(state.physics.qpos, np.float64), caption)

    def reset(self, key: PRNGKeyArray) -> State:
        """One of the places at which an episode may begin."""
        return self._start(jax.random.randint(key, (), 0, STARTS))

    def step(
        self, state: State, action: Float[Array, "n d"], key: PRNGKeyArray
    ) -> tuple[State, Float[Array, " n"], Bool[Array, ""], Bool[Array, ""]]:
        """Next state, reward, failure, time limit."""
        rules, control = self.world.robot.rules, self.world.controls(action)
        physics = self._simulate(state.physics, control)
        moment, sound = physics.moment, _sound(physics)
        healthy = jnp.ones((), bool) if rules.healthy is None else rules.healthy(jnp, moment)
        new = State(physics, rules.gauge(jnp, moment), state.time + 1)
        paid = Step(moment, state.gauge, new.gauge, control, healthy, self.world.dt)
        # As natively: one that has blown up is put back, and fails without a reward. NaN where
        # the actions were at fault: training then stops and says so.
        reward = jnp.where(sound, rules.reward(jnp, paid), 0.0 * control.sum())
        new = jax.tree.map(lambda x, y: jnp.where(sound, x, y), new, self._start(0))
        failed = ~(healthy & sound)
        late = (new.time == self.world.robot.limit) & ~failed
        return new, jnp.broadcast_to(reward, (self.spec.num_agents,)), failed, late

    def observe(self, state: State) -> Observation:
        """What the agents see."""
        readings = self.world.readings(jnp, state.physics.moment)
        with exactly():
            obs, team = (self.world.show(jnp, what, readings) for what in ("obs", "state"))
        alive = jnp.ones(self.spec.num_agents, bool)
        return Observation(obs, team, jnp.asarray(self.spec.actions.mask), alive)

    def _start(self, row: int | Int[Array, ""]) -> State:
        return jax.tree.map(lambda x: x[row], self._starts)

    def _simulate(self, physics: Physics, control: Float[Array, " u"]) -> Physics:
        """As many simulation steps as a step of the task has."""
        substep = lambda _, physics: self._advance(physics, control)  # noqa: E731
        with exactly():
            return jax.lax.fori_loop(0, self.world.robot.skip, substep, physics)

    def _euler(self, physics: Physics, control: Float[Array, " u"]) -> Physics:
        data = self._mjx.step(self._model, self._data(*physics[:3], control))
        return Physics(data.qpos, data.qvel, data.qacc_warmstart, self._fields(data))

    def _runge_kutta(self, physics: Physics, control: Float[Array, " u"]) -> Physics:
        """A simulation step of fourth order. MJX's own compiles the dynamics four times."""
        qpos, qvel, warm, fields = physics
        span = self.world.model.opt.timestep

        def look(carry: Any, weights: Float[Array, " 2"]) -> tuple[Any, None]:
            speed, acceleration, path, change, _ = carry
            ahead, share = span * weights
            place, motion = qpos + ahead * speed, qvel + ahead * acceleration
            data = self._mjx.forward(self._model, self._data(place, motion, warm, control))
            path, change = path + share * motion, change + share * data.qacc
            return (motion, data.qacc, path, change, self._fields(data)), None

        begin, weights = (*[jnp.zeros_like(qvel)] * 4, fields), jnp.asarray(RK4, qvel.dtype)
        (_, last, path, change, fields), _ = jax.lax.scan(look, begin, weights)
        return Physics(qpos + path, qvel + change, last, fields)

    def _data(self, qpos: Array, qvel: Array, warm: Array, control: Array) -> Any:
        return self._blank.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warm, ctrl=control)

    def _fields(self, data: Any) -> dict[str, Array]:
        return {name: getattr(data, name) for name in self.world.fields}


def library() -> Any:
    """The module `mujoco.mjx`, if it is installed."""
    try:
        with contextlib.redirect_stdout(None):  # it names packages that are not needed here
            from mujoco import mjx
    except ImportError as error:
        raise MissingExtraError("mujoco-mjx", "mjx") from error
    return mjx


def _refuse(world: World) -> None:
    body, _ = parse(world.spec.name.partition("/")[2])
    if body not in BODIES:
        raise ValueError(
            f"{body} does not run on MJX, whose physics of it differ from MuJoCo's: use "
            f"backend=native. On MJX: {', '.join(BODIES)}"
        )


def _sound(physics: Physics) -> Bool[Array, ""]:
    """Whether MuJoCo would go on from here."""
    return (jnp.abs(jnp.concatenate(physics[:3])) < mujoco.mjMAXVAL).all()


def _starts(world: World) -> State:
    """`STARTS` beginnings in a row, seen through MuJoCo itself."""
    model, rules, random = world.model, world.robot.rules, np.random.default_rng(0)
    names = "qpos", "qvel", "qacc_warmstart", *world.fields
    data, rows = mujoco.MjData(model), []
    for _ in range(STARTS):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = rules.start(random, model.qpos0, model.nv)
        mujoco.mj_forward(model, data)
        rows.append([np.array(getattr(data, name)) for name in names])
    columns = (jnp.asarray(np.stack(column)) for column in zip(*rows, strict=True))
    fields = dict(zip(names, columns, strict=True))
    gauge = rules.gauge(jnp, fields)
    physics = Physics(*(fields.pop(name) for name in names[:3]), fields=fields)
    return State(physics, gauge, jnp.zeros(STARTS, int))
