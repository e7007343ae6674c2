"""`NativeVecEnv`: a batch of environments of one task on MuJoCo itself."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from fp3o.envs.api import Act, HostEnv, VecEnv
from fp3o.envs.mamujoco.obs_buffer import ObsBuffer
from fp3o.envs.mamujoco.rewards.rules import Fields
from fp3o.envs.mamujoco.rollout_log import RolloutLog, obs_at, state_at
from fp3o.envs.mamujoco.simulation import SimulationBatch, silenced_warnings
from fp3o.envs.mamujoco.task import BodyTask, TaskProperties
from fp3o.errors import NonFiniteError
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

HASH_FACTOR = 6364136223846793005
"""An odd number without a pattern, which combines the two halves of a longer key."""


class NativeState(NamedTuple):
    """The state of all simulations: arrays only, so that it can be saved and restored exactly."""

    physics: np.ndarray
    """(e, ...): MuJoCo's integration state, including the warm start of the solver."""
    progress: np.ndarray
    """(e,): the quantity whose change the next reward measures."""
    time: np.ndarray
    """(e,): steps of the running episode."""
    episode: np.ndarray
    """(e,): number of episodes started; with `stream` it determines how the next one starts."""
    stream: np.ndarray
    """(e, 2): the random stream of each environment."""


class NativeVecEnv(VecEnv):
    """`num_envs` environments of one task, stepped together, with automatic resets.

    Results do not depend on the number of threads. Observations have the type `dtype`; the physics
    is always in double precision.
    """

    def __init__(
        self, task: BodyTask, num_envs: int, threads: int | None = None, dtype: Any = np.float32
    ):
        self.task, self.num_envs, self.dtype = task, num_envs, dtype
        self.simulation = SimulationBatch(task, num_envs, threads)
        mask = task.spec.actions.mask
        self._action_mask = np.ascontiguousarray(np.broadcast_to(mask, (num_envs, *mask.shape)))
        self._alive = np.ones((num_envs, task.spec.num_agents), bool)
        self._observe = ObsBuffer(task, self.simulation.fields, dtype)
        self._blank = self._first_step(*self.observe(self.simulation.fields))

    @property
    def spec(self) -> EnvSpec:
        """Number of agents, sizes of observations and actions."""
        return self.task.spec

    def reset(self, key: Key[Array, "*s"]) -> tuple[NativeState, TimeStep]:
        """Start an episode in every environment; several keys have equal shares of them."""
        halves = np.asarray(jax.random.key_data(key)).reshape(key.size, -1, 2).astype(np.uint64)
        pairs = halves[..., 0] << np.uint64(32) | halves[..., 1]  # one, or two of a longer key
        factors = np.array([1, HASH_FACTOR], np.uint64)[: pairs.shape[1]]
        names = (pairs * factors).sum(1, dtype=np.uint64)
        each = self.num_envs // len(names)
        stream = np.empty((self.num_envs, 2), np.uint64)
        stream[:, 0] = np.repeat(names, each)
        stream[:, 1] = np.tile(np.arange(each), len(names))
        episode = np.zeros(self.num_envs, np.int64)
        simulation = self.simulation
        simulation.start_episodes(np.arange(self.num_envs), stream, episode)
        progress = np.array(self.task.body.rewards.progress(np, simulation.fields))
        time = np.zeros(self.num_envs, np.int64)
        state = NativeState(simulation.physics, progress, time, episode + 1, stream)
        return state, self._first_step(*self.observe(simulation.fields))

    def step(self, state: NativeState, action: Any) -> tuple[NativeState, TimeStep]:
        """Apply the actions `(e, n, d)`; where an episode ends, the next one starts."""
        new, steps = self.rollout(state, self._blank, lambda *_: action, 1)
        return new, TimeStep._make(x[1] for x in steps)

    def render(self, state: NativeState, caption: str) -> np.ndarray:
        """Draw the body of the first environment, with one colour per agent."""
        end = 1 + self.task.model.nq  # the integration state starts with the time
        from fp3o.envs.mamujoco.render import render_task

        return render_task(self.task, state.physics[0, 1:end], caption)

    def rollout(
        self, state: NativeState, now: TimeStep, act: Act, num_steps: int
    ) -> tuple[NativeState, TimeStep]:
        """Step many times, with one call of the simulator per step."""
        simulation = self.simulation
        log = RolloutLog(self.task, simulation.fields, now, num_steps)
        simulation.restore(state.physics)
        limit, episode = self.task.body.max_episode_steps, state.episode.copy()
        started = -state.time  # the step in which each running episode started
        due = (started + limit).min()
        with silenced_warnings():
            for t in range(num_steps):
                action = act(t, log.obs[t], self._action_mask, log.episode_start[t])
                self._apply(log.controls[t], action)
                simulation.step()
                ended = self._record(log, t)
                if t + 1 >= due:
                    log.truncated[t] = (t + 1 - started >= limit) & ~log.terminated[t]
                    ended = True
                if ended:
                    ids = np.flatnonzero(log.terminated[t] | log.truncated[t])
                    simulation.start_episodes(ids, state.stream, episode)
                    log.record_start(t, ids, simulation.fields)
                    started[ids], episode[ids] = t + 1, episode[ids] + 1
                    due = (started + limit).min()
                self._observe(log.obs[t + 1])
        progress, steps = log.finish(state.progress)
        physics, time = simulation.physics, num_steps - started
        if log.diverged.any():  # last, because a warning may be turned into an error
            self._warn_diverged(log.diverged)
        return NativeState(physics, progress, time, episode, state.stream), steps

    def observe(self, fields: Fields) -> tuple[np.ndarray, np.ndarray]:
        """Observations and states."""
        return obs_at(self.task, fields, self.dtype), state_at(self.task, fields, self.dtype)

    def _apply(self, controls: np.ndarray, action: Any) -> None:
        """Record the controls of a step and apply them."""
        action = np.asarray(action)
        controls[...] = self.task.controls(action)
        flat = controls.reshape(-1)
        # The sum of squares is finite, unless a number is not or is huge.
        if not math.isfinite(flat.dot(flat)) and not np.isfinite(controls).all():
            self._refuse(action)
        self.simulation.controls[...] = controls

    def _record(self, log: RolloutLog, t: int) -> bool:
        """Record the simulations after a step; returns whether one of them has failed."""
        simulation = self.simulation
        log.motion[t] = simulation.motion
        if suspect := simulation.may_have_diverged(log.motion[t]):
            log.diverged[t] = simulation.reset_diverged()
            log.motion[t] = simulation.motion
        simulation.update_forces()
        log.record(t, simulation.fields)
        healthy = self.task.body.rewards.healthy
        if healthy is not None:
            log.terminated[t] = ~healthy(np, simulation.fields)
        elif not suspect:
            return False
        log.terminated[t] |= log.diverged[t]
        return bool(log.terminated[t].any())

    def _warn_diverged(self, diverged: np.ndarray) -> None:
        ids = np.flatnonzero(diverged.any(0))
        warnings.warn(
            f"{self.spec.name}: the simulation diverged in {len(ids)} of {self.num_envs} "
            f"environments (the first is number {ids[0]}); these episodes end here",
            RuntimeWarning,
            stacklevel=3,
        )

    def _first_step(self, obs: np.ndarray, state: np.ndarray) -> TimeStep:
        """The time step after a reset."""
        never = np.zeros(self.num_envs, bool)
        reward = np.zeros((self.num_envs, self.spec.num_agents), self.dtype)
        rest = self._action_mask, self._alive, reward, never, never, ~never, obs, state
        return TimeStep._make((obs, state, *rest, np.zeros((self.num_envs, 0), self.dtype)))

    def _refuse(self, action: np.ndarray) -> None:
        bad = ~np.isfinite(action) & self._action_mask
        env, agent, index = (int(x) for x in np.argwhere(bad)[0])
        raise NonFiniteError(
            f"{self.spec.name}: the action of agent {agent} is {action[env, agent, index]} in "
            f"dimension {index} (environment {env}); actions must be finite"
        )


@dataclass(frozen=True)
class NativeEnv(TaskProperties, HostEnv):
    """A task on MuJoCo, from which batches are made."""

    task: BodyTask

    def vectorise(self, num_envs: int) -> NativeVecEnv:
        """Make a batch of environments that are stepped together."""
        return NativeVecEnv(self.task, num_envs)
