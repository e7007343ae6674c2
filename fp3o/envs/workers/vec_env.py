"""A batch of environments on the host that cannot be saved or put back: in this process or not.

A state names the moment it belongs to: from one that is not the newest, as after a resumption,
running episodes cannot be played on. They end as those of a worker that died do, as if cut by a
time limit, and new ones begin.
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
from fp3o.envs.workers.in_process import InProcessPool
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import EnvPool, FailureCounts, StepReply, buffer_spec, stack_replies
from fp3o.errors import NonFiniteError
from fp3o.spec import Box, EnvSpec
from fp3o.types import TimeStep

__all__ = [
    "EnvPool",
    "InProcessPool",
    "PooledVecEnv",
    "StepReply",
    "VecEnvState",
    "WorkerPool",
    "buffer_spec",
    "stack_replies",
]


class VecEnvState(NamedTuple):
    """Where all games stand: what was last seen of them, numbers only."""

    moment: np.ndarray
    """(2,): which batch this is, and how many moments it has had."""
    time: np.ndarray
    """(e,): steps of the running episode."""
    episode: np.ndarray
    """(e,): episodes begun."""
    obs: np.ndarray
    state: np.ndarray
    episode_metrics: np.ndarray


class PooledVecEnv(VecEnv):
    """Games of one task, each at its place; episodes begin again by themselves.

    Every place is given a random seed when it is made, and again with the episode's number when
    an episode begins: what it can make of them is its own affair.
    """

    def __init__(self, spec: EnvSpec, players: EnvPool):
        self.spec, self.num_envs = spec, len(players.seeds)
        self._crew = players
        self._moment = np.array([secrets.randbits(62), 0], np.int64)
        self._told = np.zeros_like(self._moment)
        self._shot: np.ndarray | None = None

    def failure_counts(self) -> Mapping[str, int]:
        """Failures of the workers, by metric name."""
        return self.losses.metrics()

    @property
    def losses(self) -> FailureCounts:
        """What went wrong since the beginning."""
        return self._crew.losses

    def close(self) -> None:
        """End all games."""
        self._crew.close()

    def reset(self, key: Key[Array, "*s"]) -> tuple[VecEnvState, TimeStep]:
        """Begin an episode in every game; of several keys each has an equal part of them."""
        numbers = np.asarray(jax.random.key_data(key)).reshape(key.size, -1)
        each = self.num_envs // key.size
        self._move_on()
        self._crew.seeds[:] = [_seed(own, i) for own in numbers for i in range(each)]
        self._crew.episodes[:] = 0
        now = stack_replies(self._crew.reset(range(self.num_envs)))
        return self._shown(now, now, np.ones(self.num_envs, bool))

    def step(self, state: VecEnvState, action: Any) -> tuple[VecEnvState, TimeStep]:
        """Play the actions `(e, n, d)`; where an episode ends, the next one begins."""
        chosen = self._finite(np.asarray(action))
        able = self._able(state)
        self._move_on()  # now: whatever stops us in the middle, nobody plays on from `state`
        answers = self._crew.step({i: chosen[i] for i in able})
        played = [answers.get(i) or self._cut(state, i) for i in range(self.num_envs)]
        now = final = stack_replies(played)
        ended = final.terminated | final.truncated
        if ids := np.flatnonzero(ended).tolist():
            for i, fresh in zip(ids, self._crew.reset(ids), strict=True):
                played[i] = fresh
            now = stack_replies(played)
        return self._shown(now, final, ended)

    def render(self, state: VecEnvState, caption: str) -> np.ndarray | None:
        """A single game's picture of itself, if it is played in this process and has one.

        Of a moment that has passed, it is the last picture that was taken.
        """
        if isinstance(self._crew, InProcessPool) and self.num_envs == 1 and self._newest(state):
            self._shot = self._crew.render()
        return None if self._shot is None else add_caption(self._shot, caption)

    def _move_on(self) -> None:
        self._moment = self._moment + np.array([0, 1])

    def _newest(self, state: VecEnvState) -> bool:
        return np.array_equal(state.moment, self._moment)

    def _shown(
        self, now: StepReply, final: StepReply, start: np.ndarray
    ) -> tuple[VecEnvState, TimeStep]:
        time, episode = self._crew.steps.copy(), self._crew.episodes.copy()
        standing = VecEnvState(self._moment, time, episode, now.obs, now.state, now.episode_metrics)
        step = TimeStep._make((
            now.obs, now.state, now.action_mask, now.alive, final.reward, final.terminated,
            final.truncated, start, final.obs, final.state, final.episode_metrics,
        ))  # fmt: skip
        return standing, step

    def _finite(self, action: np.ndarray) -> np.ndarray:
        """Actions that can be played: an environment would be blamed for what others lead to."""
        if isinstance(self.spec.actions, Box) and not np.isfinite(action).all():
            env, agent, _ = np.argwhere(~np.isfinite(action))[0]
            raise NonFiniteError(
                f"{self.spec.name}: agent {agent} of environment {env} asks for "
                f"{action[env, agent]}; actions must be finite"
            )
        return action

    def _cut(self, state: VecEnvState, i: int) -> StepReply:
        """The last step of a lost episode: nothing is paid, and what was last seen is its end."""
        mask = self.spec.actions.mask
        nothing, nobody = np.zeros_like(mask), np.zeros(len(mask), bool)
        unpaid, ends = nobody.astype(np.float32), (np.array(False), np.array(True))
        seen = state.obs[i], state.state[i]
        return StepReply(*seen, nothing, nobody, unpaid, *ends, state.episode_metrics[i])

    def _able(self, state: VecEnvState) -> list[int]:
        """Games that can be played on from a state: all, if it is the newest one.

        Nothing leads back to an older one, but an episode that had just begun may begin alike.
        """
        if self._newest(state):
            return [*range(self.num_envs)]
        new = np.flatnonzero(state.time == 0).tolist()
        self._crew.episodes[:] = state.episode - (state.time == 0)
        begun = [StepReply._make(answer) for answer in self._crew.reset(new)]
        self._tell(state)
        old = zip(new, begun, state.obs[new], state.state[new], strict=True)
        return [
            i for i, now, obs, team in old
            if np.array_equal(now.obs, obs) and np.array_equal(now.state, team)
        ]  # fmt: skip

    def _tell(self, state: VecEnvState) -> None:
        """Account for episodes that cannot be taken up again, once for each state."""
        told, self._told = self._told, state.moment
        lost = int(state.time.sum())
        if lost and not np.array_equal(state.moment, told):
            self.losses.steps += lost
            warnings.warn(
                f"{self.spec.name}: games cannot be put back to where they were; "
                f"{np.count_nonzero(state.time)} running episodes of {lost} steps end as if cut by "
                "a time limit",
                RuntimeWarning,
                stacklevel=4,
            )


def _seed(key: np.ndarray, number: int) -> int:
    """A random seed for a game, as large as the game can take."""
    return int(np.random.SeedSequence([*key.tolist(), number]).generate_state(1)[0] >> 1)
