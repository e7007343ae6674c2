"""`FusedEnv`: a task whose steps are one kernel; the same physics as MuJoCo's."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt32

from fp3o.envs.api import Env, Observation, VecEnv
from fp3o.envs.mamujoco.fused.build import register_step
from fp3o.envs.mamujoco.fused.task_header import task_header
from fp3o.envs.mamujoco.render import render_task
from fp3o.envs.mamujoco.task import BodyTask, TaskProperties
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import SettingError
from fp3o.types import TimeStep

WORDS = 2
"""32-bit words of a number in double precision."""


class FusedState(NamedTuple):
    """The state of an episode."""

    bits: UInt32[Array, " b"]
    """Positions, velocities and so on (`environment.h`) in double precision, which JAX does not
    have unless all of a program is allowed to use it."""
    views: Float[Array, " v"]
    """Observations and states of all agents."""


class FusedEnv(TaskProperties, Env):
    """One environment of a task; `vectorise` makes batches that are stepped by one kernel."""

    def __init__(self, task: BodyTask):
        self.task, model, spec = task, task.model, task.spec
        if mujoco.mj_version() < 4_000_000:  # contact margins and rotations were different before
            raise SettingError(
                f"{spec.name}: backend=fused computes what MuJoCo 4 computes, and MuJoCo "
                f"{mujoco.mj_versionString()} is installed: use backend=native or upgrade mujoco"
            )
        try:
            self._header = task_header(task)
        except SettingError as error:
            raise SettingError(f"{spec.name}: {error}: use backend=native") from None
        self._moving = model.nq + 2 * model.nv
        self._state_words = WORDS * (self._moving + 4)
        self._view_size = spec.num_agents * (spec.obs_size + spec.state_size)

    @cached_property
    def _target(self) -> str:
        """Name of the compiled step; it is compiled when it is used for the first time."""
        return register_step(self._header)

    def vectorise(self, num_envs: int) -> VecEnv:
        """A batch that is stepped by one kernel."""
        return FusedVecEnv(self, num_envs)

    def reset(self, key: PRNGKeyArray) -> FusedState:
        """Sample the initial state of an episode."""
        actions = jnp.zeros((self.spec.num_agents, self.spec.actions.action_size))
        state, _, _ = self.advance(self.before_start(key, ()), actions, restart=True)
        return state

    def step(
        self, state: FusedState, action: Float[Array, "n d"], key: PRNGKeyArray
    ) -> tuple[FusedState, Float[Array, " n"], Bool[Array, ""], Bool[Array, ""]]:
        """Next state, reward, terminated, truncated."""
        new, _, (reward, failed, late) = self.advance(state.bits, action, restart=False)
        return new, jnp.broadcast_to(reward, (self.spec.num_agents,)), failed, late

    def observe(self, state: FusedState) -> Observation:
        """Observations and states of the agents."""
        obs, team = self.unpack(state.views)
        alive = jnp.ones(self.spec.num_agents, bool)
        return Observation(obs, team, jnp.asarray(self.spec.actions.mask), alive)

    def render(self, state: FusedState, caption: str) -> np.ndarray:
        """Draw the body, with one colour per agent."""
        numbers = np.ascontiguousarray(state.bits).view(np.float64)
        return render_task(self.task, numbers[: self.task.model.nq].copy(), caption)

    def before_start(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> UInt32[Array, "*e b"]:
        """States whose next step starts an episode, each with a random stream."""
        numbers = np.zeros(self._state_words // WORDS)
        numbers[self._moving + 1] = -1  # the number of steps
        stream = jax.random.bits(key, (*shape, WORDS), jnp.uint32)
        rest = jnp.broadcast_to(
            numbers.view(np.uint32)[:-WORDS], (*shape, self._state_words - WORDS)
        )
        return jnp.concatenate([rest, stream], -1)

    def advance(
        self, bits: UInt32[Array, "*e b"], action: Float[Array, "*e n d"], restart: bool
    ) -> tuple[FusedState, Float[Array, "*e v"], Any]:
        """Next states, views before a restart, and reward, terminated and truncated."""
        shapes = (
            jax.ShapeDtypeStruct(bits.shape, jnp.uint32),
            jax.ShapeDtypeStruct((*bits.shape[:-1], 2 * self._view_size + 3), jnp.float32),
        )
        step = jax.ffi.ffi_call(self._target, shapes, vmap_method="broadcast_all")
        bits, output = step(bits, action.astype(jnp.float32), restart=np.bool_(restart))
        size = self._view_size
        reward, failed, late = (output[..., 2 * size + i] for i in range(3))
        ends = reward, failed > 0, late > 0
        return FusedState(bits, output[..., size : 2 * size]), output[..., :size], ends

    def unpack(self, views: Float[Array, "*e v"]) -> tuple[Array, Array]:
        """Observations and states."""
        spec, batch = self.spec, views.shape[:-1]
        obs, team = jnp.split(views, [spec.num_agents * spec.obs_size], -1)
        return obs.reshape(*batch, spec.num_agents, -1), team.reshape(*batch, spec.num_agents, -1)


@dataclass(frozen=True)
class FusedVecEnv(VmapEnv):
    """A batch of `FusedEnv`, which start their next episodes in the kernel."""

    env: FusedEnv

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Start an episode in every environment."""
        spec = self.spec
        actions = jnp.zeros((self.num_envs, spec.num_agents, spec.actions.action_size))
        return self._advance(self.env.before_start(key, (self.num_envs,)), actions, first=True)

    def step(self, state: UInt32[Array, "e b"], action: Any) -> tuple[Any, TimeStep]:
        """Step every environment."""
        return self._advance(state, action, first=False)

    def render(self, state: UInt32[Array, "e b"], caption: str) -> np.ndarray:
        """The first environment."""
        return self.env.render(FusedState(np.asarray(state)[0], np.zeros(0)), caption)  # pyright: ignore

    def _advance(self, bits: UInt32[Array, "e b"], action: Any, first: bool) -> Any:
        (bits, views), final, (reward, failed, late) = self.env.advance(bits, action, restart=True)
        each, mask = len(bits), self.spec.actions.mask  # on several devices, a share of all
        agents = each, self.spec.num_agents
        return bits, TimeStep(
            *self.env.unpack(views),
            jnp.broadcast_to(mask, (each, *mask.shape)),
            jnp.ones(agents, bool),
            jnp.broadcast_to(reward[:, None], agents),
            failed,
            late,
            jnp.ones_like(failed) if first else failed | late,
            *self.env.unpack(final),
            jnp.zeros((each, 0)),
        )
