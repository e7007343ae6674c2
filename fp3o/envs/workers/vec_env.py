"""Vectorised host environments whose state cannot be saved or restored.

A state is marked with the request after which it was returned. From any other state than the
newest, as after a resumed run, running episodes cannot be continued: like those of a failed worker
they are truncated, and new ones start.
"""

import secrets
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from fp3o.envs.api import VecEnv
from fp3o.envs.rendering import add_caption
from fp3o.envs.workers.protocol import EnvPool, StepReply, stack_replies
from fp3o.errors import NonFiniteError, UserError
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep


class VecEnvState(NamedTuple):
    """Description of a batch; the environments themselves are in the pool."""

    moment: np.ndarray
    """(2,): a random id of the batch, and the number of its requests so far."""
    time: np.ndarray
    """(e,): steps of the current episodes."""
    episode: np.ndarray
    """(e,): episodes started."""
    obs: np.ndarray
    state: np.ndarray
    episode_metrics: np.ndarray


class PooledVecEnv(VecEnv):
    """The environments of a pool, with automatic resets.

    Each environment is given a random seed, and the index of every episode that it starts.
    """

    restorable = False

    def __init__(self, spec: EnvSpec, pool: EnvPool):
        self.spec, self.num_envs, self._pool = spec, len(pool.seeds), pool
        self._moment = np.array([secrets.randbits(62), 0], np.int64)
        self._warned_at = np.zeros_like(self._moment)
        self._frame: np.ndarray | None = None

    def env_seed(self, key: tuple[int, ...], index: int) -> Any:
        """The random seed of an environment, from the numbers of the key and its index."""
        return int(np.random.SeedSequence([*key, index]).generate_state(1)[0] >> 1)

    def failure_counts(self) -> Mapping[str, int]:
        """Failures of the environments so far, by metric name."""
        return self._pool.failures.metrics()

    def close(self) -> None:
        """Close all environments."""
        self._pool.close()

    def reset(self, key: Key[Array, "*s"]) -> tuple[VecEnvState, TimeStep]:
        """Start an episode in every environment; several keys have equal shares of them."""
        keys = np.asarray(jax.random.key_data(key)).reshape(key.size, -1).tolist()
        share = self.num_envs // key.size
        self._advance()
        self._pool.seeds[:] = [
            self.env_seed((*numbers,), i) for numbers in keys for i in range(share)
        ]
        self._pool.episodes[:] = 0
        now = stack_replies(self._pool.reset(range(self.num_envs)))
        return self._result(now, now, np.ones(self.num_envs, bool))

    def step(self, state: VecEnvState, action: Any) -> tuple[VecEnvState, TimeStep]:
        """Apply the actions `(e, n, d)`; where an episode ends, the next one starts."""
        chosen = self._finite(np.asarray(action))
        running = self._continue_from(state)
        self._advance()  # before the step: after an interruption `state` is no longer the newest
        replies = self._pool.step({i: chosen[i] for i in running})
        last = [replies.get(i) or self._truncated(state, i) for i in range(self.num_envs)]
        now = final = stack_replies(last)
        ended = final.terminated | final.truncated
        if envs := np.flatnonzero(ended).tolist():
            for i, first in zip(envs, self._pool.reset(envs), strict=True):
                last[i] = first
            now = stack_replies(last)
        return self._result(now, final, ended)

    def render(self, state: VecEnvState, caption: str) -> np.ndarray:
        """A single in-process environment as an image; of an older state, the last image taken."""
        if self.num_envs == 1 and self._is_newest(state):
            self._frame = self._pool.render()
        if self._frame is None:
            raise UserError(f"{self.spec.name} cannot be rendered: it returned no image")
        return add_caption(self._frame, caption)

    def _advance(self) -> None:
        self._moment = self._moment + np.array([0, 1])

    def _is_newest(self, state: VecEnvState) -> bool:
        return np.array_equal(state.moment, self._moment)

    def _result(
        self, now: StepReply, final: StepReply, start: np.ndarray
    ) -> tuple[VecEnvState, TimeStep]:
        time, episode = self._pool.steps.copy(), self._pool.episodes.copy()
        state = VecEnvState(self._moment, time, episode, now.obs, now.state, now.episode_metrics)
        step = TimeStep._make((
            now.obs, now.state, now.action_mask, now.alive, final.reward, final.terminated,
            final.truncated, start, final.obs, final.state, final.episode_metrics,
        ))  # fmt: skip
        return state, step

    def _finite(self, action: np.ndarray) -> np.ndarray:
        """Check that actions are finite, so that no environment is blamed for their effects."""
        if not self.spec.actions.integers and not np.isfinite(action).all():
            env, agent, _ = np.argwhere(~np.isfinite(action))[0]
            raise NonFiniteError(
                f"{self.spec.name}: the action of agent {agent} in environment {env} is "
                f"{action[env, agent]}; actions must be finite"
            )
        return action

    def _truncated(self, state: VecEnvState, i: int) -> StepReply:
        """The last step of a lost episode: zero reward, and the last observation is final."""
        mask = self.spec.actions.mask
        unavailable, dead = np.zeros_like(mask), np.zeros(len(mask), bool)
        reward, ends = dead.astype(np.float32), (np.array(False), np.array(True))
        last = state.obs[i], state.state[i]
        return StepReply(*last, unavailable, dead, reward, *ends, state.episode_metrics[i])

    def _continue_from(self, state: VecEnvState) -> list[int]:
        """Environments whose episodes can be continued from a state: all from the newest one.

        From an older one, episodes at their first step can, if they start again in the same way.
        """
        if self._is_newest(state):
            return [*range(self.num_envs)]
        fresh = np.flatnonzero(state.time == 0).tolist()
        self._pool.episodes[:] = state.episode - (state.time == 0)
        started = [StepReply._make(reply) for reply in self._pool.reset(fresh)]
        self._count_lost(state)
        pairs = zip(fresh, started, state.obs[fresh], state.state[fresh], strict=True)
        return [
            i for i, now, obs, team in pairs
            if np.array_equal(now.obs, obs) and np.array_equal(now.state, team)
        ]  # fmt: skip

    def _count_lost(self, state: VecEnvState) -> None:
        """Count and report episodes that cannot be continued, once per state."""
        before, self._warned_at = self._warned_at, state.moment
        lost = int(state.time.sum())
        if lost and not np.array_equal(state.moment, before):
            self._pool.failures.lost_steps += lost
            warnings.warn(
                f"{self.spec.name}: environments cannot be restored to an earlier state; "
                f"{np.count_nonzero(state.time)} running episodes of {lost} steps are truncated",
                RuntimeWarning,
                stacklevel=4,
            )
