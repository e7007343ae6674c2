"""A probe task in plain NumPy: the twin of `probe.Probe` for everything that runs on the host."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from fp3o.envs.api import VecEnv
from fp3o.envs.toys.probe import NUM_AGENTS, Probe
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep


class HostCue(NamedTuple):
    """State of all environments: cues, rewards to pay, times, and a random stream.

    Arrays only, so that it can be saved and any batch can continue from it.
    """

    shown: np.ndarray
    score: np.ndarray
    time: np.ndarray
    stream: np.ndarray
    """Numbers of a key, and how often new cues were drawn."""


@dataclass(frozen=True)
class HostProbe(VecEnv):
    """A batch of a cue-matching probe, stepped by NumPy."""

    probe: Probe
    num_envs: int
    jittable = False

    @property
    def spec(self) -> EnvSpec:
        """The specification of the probe."""
        return self.probe.spec

    def reset(self, key: Key[Array, "*s"]) -> tuple[HostCue, TimeStep]:
        """Begin an episode in every environment."""
        stream = np.append(np.asarray(jax.random.key_data(key)).ravel(), 0)
        zeros = np.zeros(self.num_envs, np.float32)
        state = HostCue(self._cues(stream), zeros, zeros.astype(int), _next(stream))
        none, obs, team = np.zeros(self.num_envs, bool), self._obs(state), self._team(state)
        reward = np.zeros((self.num_envs, NUM_AGENTS), np.float32)
        return state, self._timestep(state, reward, none, none, ~none, obs, team)

    def step(self, state: HostCue, action: Any) -> tuple[HostCue, TimeStep]:
        """Score the actions at the step that counts; the reward comes at the end."""
        probe, choice = self.probe, np.asarray(action)[..., 0]
        share = (choice == self._wanted(state.shown)).mean(1, dtype=np.float32)
        score = np.where(state.time == probe.scored_at, share, state.score)
        ended = state.time == probe.max_episode_steps - 1
        reward = np.repeat(np.where(ended, score, np.float32(0))[:, None], NUM_AGENTS, axis=1)
        after = HostCue(state.shown, score, state.time + 1, _next(state.stream))
        final = self._obs(after), self._team(after)
        new = HostCue(
            np.where(ended[:, None, None], self._cues(state.stream), state.shown),
            np.where(ended, np.float32(0), score), np.where(ended, 0, after.time), after.stream,
        )  # fmt: skip
        cut = ended & probe.truncates
        return new, self._timestep(new, reward, ended & ~cut, cut, ended, *final)

    def _cues(self, stream: np.ndarray) -> np.ndarray:
        sizes, random = np.array(self.probe.sizes), np.random.default_rng(stream)
        place = random.integers(0, np.maximum(sizes, 2), (self.num_envs, NUM_AGENTS))
        one_hot = np.eye(max(self.probe.width, 2), dtype=np.float32)[place][..., : self.probe.width]
        sign = np.zeros_like(one_hot)
        sign[..., 0] = 2.0 * place - 1.0
        return np.where((sizes == 1)[:, None], sign, one_hot) * (sizes > 0)[:, None]

    def _wanted(self, shown: np.ndarray) -> np.ndarray:
        return np.where(np.array(self.probe.sizes) == 1, shown[..., 0] > 0, shown.argmax(-1))

    def _time(self, state: HostCue) -> np.ndarray:
        share = (state.time / self.probe.max_episode_steps).astype(np.float32)
        return np.broadcast_to(share[:, None, None], (self.num_envs, NUM_AGENTS, 1))

    def _obs(self, state: HostCue) -> np.ndarray:
        visible = (state.time == self.probe.shown_at)[:, None, None]
        return np.concatenate([state.shown * visible, self._time(state)], axis=2)

    def _team(self, state: HostCue) -> np.ndarray:
        team = np.concatenate([state.shown, self._time(state)], axis=2)
        return np.repeat(team.reshape(self.num_envs, 1, -1), NUM_AGENTS, axis=1)

    def _timestep(self, state: HostCue, *rest: np.ndarray) -> TimeStep:
        mask = self.spec.actions.mask
        action_mask = np.broadcast_to(mask, (self.num_envs, *mask.shape))
        alive = np.ones((self.num_envs, NUM_AGENTS), bool)
        metrics = np.zeros((self.num_envs, 0))
        fields: Any = (self._obs(state), self._team(state), action_mask, alive, *rest, metrics)
        return TimeStep(*fields)


def _next(stream: np.ndarray) -> np.ndarray:
    return np.append(stream[:-1], stream[-1] + 1)
