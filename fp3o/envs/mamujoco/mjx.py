"""The same tasks on MJX, MuJoCo's twin in JAX, for accelerators: optional and approximate.

Approximate, because it computes in single precision: a path drifts from MuJoCo's, within 100 steps
by some 1e-5 without contacts, by more with them. `native.py` is the reference, and the faster one
on a CPU by a factor of 10 to 50. Episodes begin at one of `STARTS` places drawn once for all, not
at a new one each time: so no step has to pay for a look at the forces where an episode begins.

On a CPU, XLA fuses a long body's chain of joints in such a way that the time doubles with every
joint, unless XLA_FLAGS has --xla_cpu_use_fusion_emitters=false.
"""

import contextlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.base import Sight
from fp3o.envs.mamujoco.rules import Step
from fp3o.envs.mamujoco.world import World, parse
from fp3o.errors import MissingExtraError
from fp3o.spaces import EnvSpec

STARTS = 4096
"""Places at which an episode may begin."""

SOLVER = {"iterations": 20, "ls_iterations": 10}
"""At most so many rounds in the solver of contacts and limits. The models ask for 100 and 50, of
which a batch pays all 50. Of 4,096 states a body, met under random actions of many strengths, not
one came out different in a single bit (10 and 10; with 4 and 4 some are wrong)."""

BODIES = (
    "HalfCheetah", "Hopper", "Walker2d", "Reacher", "ManyagentSwimmer", "Swimmer",
    "InvertedPendulum", "InvertedDoublePendulum",
)  # fmt: skip
"""The bodies that MJX moves as MuJoCo does. Seconds to compile a step of 64 environments on one
core: 13, 16, 15, 9, 34 (16 segments), 10, 7, 8. Not among them, by what mujoco-mjx 3.17 does:
Ant and ManySegmentAnt: it counts friction along other directions, which changes the acceleration
in one state of 50 by a tenth and more, and turns free bodies as MuJoCo did before version 4;
Humanoid and HumanoidStandup: their solver is missing; CoupledHalfCheetah: now and then its band
gives NaN; Pusher: its contacts are in space too, and were not compared."""

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


class MjxGame:
    """One environment of a task as a pure game on MJX."""

    def __init__(self, world: World):
        mjx = library()
        _refuse(world)
        self.world = world
        model = mjx.put_model(world.model)
        self._mjx: Any = mjx
        self._model: Any = model.replace(opt=model.opt.replace(**SOLVER))
        self._blank: Any = mjx.make_data(world.model)
        self._starts = _starts(world)
        integrator = world.model.opt.integrator
        euler = integrator == mujoco.mjtIntegrator.mjINT_EULER
        self._advance = self._euler if euler else self._runge_kutta

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self.world.spec

    def reset(self, key: PRNGKeyArray) -> State:
        """One of the places at which an episode may begin."""
        return self._start(jax.random.randint(key, (), 0, STARTS))

    def step(
        self, state: State, action: Float[Array, "n d"], key: PRNGKeyArray
    ) -> tuple[State, Float[Array, " n"], Bool[Array, ""], Bool[Array, ""]]:
        """Next state, reward, failure, time limit."""
        robot, control = self.world.robot, self.world.controls(jnp, action)
        physics = self._simulate(state.physics, control)
        moment, rules = physics.moment, robot.rules
        healthy = jnp.ones((), bool) if rules.healthy is None else rules.healthy(jnp, moment)
        new = State(physics, rules.gauge(jnp, moment), state.time + 1)
        paid = Step(moment, state.gauge, new.gauge, control, healthy, self.world.dt)
        sound = _sound(physics)
        # As natively: one that has blown up is put back, and fails without a reward.
        reward = jnp.where(sound, rules.reward(jnp, paid), 0.0)
        new = jax.tree.map(lambda x, y: jnp.where(sound, x, y), new, self._start(0))
        failed = ~(healthy & sound)
        late = (new.time == robot.limit) & ~failed
        return new, jnp.broadcast_to(reward, (self.spec.num_agents,)), failed, late

    def sight(self, state: State) -> Sight:
        """What the agents see."""
        obs, team = self.world.observe(jnp, state.physics.moment)
        alive = jnp.ones(self.spec.num_agents, bool)
        return Sight(obs, team, jnp.asarray(self.spec.actions.mask), alive)

    def _start(self, row: int | Int[Array, ""]) -> State:
        return jax.tree.map(lambda x: x[row], self._starts)

    def _simulate(self, physics: Physics, control: Float[Array, " u"]) -> Physics:
        """As many simulation steps as a step of the task has."""
        substep = lambda _, physics: self._advance(physics, control)  # noqa: E731
        # Accelerators would round the factors of matrix products to ten bits.
        with jax.default_matmul_precision("highest"):
            return jax.lax.fori_loop(0, self.world.robot.skip, substep, physics)

    def _euler(self, physics: Physics, control: Float[Array, " u"]) -> Physics:
        data = self._mjx.step(self._model, self._data(*physics[:3], control))
        return Physics(data.qpos, data.qvel, data.qacc_warmstart, self._fields(data))

    def _runge_kutta(self, physics: Physics, control: Float[Array, " u"]) -> Physics:
        """A simulation step of fourth order. MJX's own compiles the dynamics four times."""
        qpos, qvel, warm, fields = physics
        span = self.world.model.opt.timestep

        def look(carry: Any, weights: Float[Array, " 2"]) -> tuple[Any, None]:
            speed, acceleration, total_speed, total_acceleration, _ = carry
            ahead, share = span * weights
            place, motion = qpos + ahead * speed, qvel + ahead * acceleration
            data = self._mjx.forward(self._model, self._data(place, motion, warm, control))
            total_speed += share * motion
            total_acceleration += share * data.qacc
            return (motion, data.qacc, total_speed, total_acceleration, self._fields(data)), None

        none = jnp.zeros_like(qvel)
        weights = jnp.asarray(RK4, qvel.dtype)
        carry, _ = jax.lax.scan(look, (none, none, none, none, fields), weights)
        _, last, speed, acceleration, fields = carry
        return Physics(qpos + speed, qvel + acceleration, last, fields)

    def _data(self, qpos: Array, qvel: Array, warm: Array, control: Array) -> Any:
        return self._blank.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warm, ctrl=control)

    def _fields(self, data: Any) -> dict[str, Array]:
        return {name: getattr(data, name) for name in self.world.fields}


def library() -> Any:
    """The module `mujoco.mjx`, if it is installed."""
    try:
        # It prints that packages are missing which nothing here needs.
        with contextlib.redirect_stdout(None):
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
    every = jnp.concatenate(physics[:3])
    return (jnp.abs(every) < mujoco.mjMAXVAL).all()


def _starts(world: World) -> State:
    """`STARTS` beginnings in a row, seen through MuJoCo itself."""
    model, rules, random = world.model, world.robot.rules, np.random.default_rng(0)
    data, names = mujoco.MjData(model), ("qpos", "qvel", "qacc_warmstart", *world.fields)
    rows = []
    for _ in range(STARTS):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = rules.start(random, model.qpos0, model.nv)
        mujoco.mj_forward(model, data)
        rows.append([np.array(getattr(data, name)) for name in names])
    moment = {name: np.stack(x) for name, x in zip(names, zip(*rows, strict=True), strict=True)}
    fields = {name: moment[name] for name in world.fields}
    physics = Physics(moment["qpos"], moment["qvel"], moment["qacc_warmstart"], fields)
    begun = State(physics, rules.gauge(np, moment), np.zeros(STARTS, int))
    return jax.tree.map(jnp.asarray, begun)
