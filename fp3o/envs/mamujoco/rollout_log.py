"""`RolloutLog`: the steps of a rollout, recorded one by one and converted to time steps in bulk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fp3o.envs.mamujoco.rewards.rules import Fields, RewardInputs
from fp3o.envs.mamujoco.task import BodyTask
from fp3o.types import TimeStep


class RolloutLog:
    """Records of `t` steps of `e` environments.

    Per step only the fields of the simulations, the controls and the ends of episodes are recorded,
    because the overhead of Python matters there. Rewards and states follow in a few operations.
    """

    def __init__(self, task: BodyTask, fields: Mapping[str, np.ndarray], now: TimeStep, steps: int):
        self.task, self.now = task, now
        size = now.episode_start.shape
        self.motion = np.empty((steps, *size, task.model.nq + task.model.nv))
        """Positions and velocities after each step, before a new episode starts."""
        motion = dict(
            zip(("qpos", "qvel"), np.split(self.motion, [task.model.nq], -1), strict=True)
        )
        self._others = {
            name: np.empty((steps, *x.shape), x.dtype)
            for name, x in fields.items()
            if name not in motion
        }
        self.fields = motion | self._others
        """The same by name, with the other fields."""
        self.controls = np.empty((steps, *size, task.model.nu))
        self.terminated, self.truncated, self.diverged = np.zeros((3, steps, *size), bool)
        self.obs = np.empty((steps + 1, *now.obs.shape), now.obs.dtype)
        self.episode_start = np.zeros((steps + 1, *size), bool)
        self.obs[0], self.episode_start[0] = now.obs, now.episode_start
        self._starts: list[tuple[int, np.ndarray, Fields]] = []
        """New episodes: after which step, in which environments, and their initial fields."""

    def record(self, step: int, fields: Fields) -> None:
        """Record the fields after a step, except positions and velocities."""
        for name, kept in self._others.items():
            kept[step] = fields[name]

    def record_start(self, step: int, ids: np.ndarray, fields: Fields) -> None:
        """Record that new episodes start after a step."""
        self._starts.append((step, ids, {name: x[ids] for name, x in fields.items()}))
        self.episode_start[step + 1, ids] = True

    def finish(self, progress: np.ndarray) -> tuple[np.ndarray, TimeStep]:
        """The final progress, given the initial one, and all time steps, `now` first."""
        now, length = self.now, len(self.obs)
        before, after = self._progress(progress)
        reward = np.empty((*self.episode_start.shape, 1), self.obs.dtype)
        reward[0], reward[1:, :, 0] = now.reward[:, :1], self._rewards(before[:-1], after)
        state, final_obs, final_state = self._states()
        arrays: dict[str, Any] = {
            "obs": self.obs,
            "state": state,
            "action_mask": np.broadcast_to(now.action_mask, (length, *now.action_mask.shape)),
            "alive": np.broadcast_to(now.alive, (length, *now.alive.shape)),
            "reward": np.broadcast_to(reward, (length, *now.reward.shape)),
            "terminated": np.concatenate([now.terminated[None], self.terminated]),
            "truncated": np.concatenate([now.truncated[None], self.truncated]),
            "episode_start": self.episode_start,
            "final_obs": final_obs,
            "final_state": final_state,
            "episode_metrics": np.zeros((*self.episode_start.shape, 0), self.obs.dtype),
        }
        return before[-1].copy(), TimeStep(**arrays)

    def _progress(self, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The progress before each step and at the end `(t + 1, e)`, and after each step."""
        progress = self.task.body.rewards.progress
        after = np.asarray(progress(np, self.fields))
        before = np.concatenate([first[None], after])
        for step, ids, initial in self._starts:
            before[step + 1, ids] = progress(np, initial)
        return before, after

    def _states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All states, and observations and states before new episodes started."""
        task, dtype = self.task, self.obs.dtype
        state = np.empty((len(self.obs), *self.now.state.shape), dtype)
        state[0], state[1:] = self.now.state, state_at(task, self.fields, dtype)
        if not self._starts:
            return state, self.obs, state
        final_obs, final_state = self.obs.copy(), state.copy()
        for step, ids, initial in self._starts:
            last = {name: x[step, ids] for name, x in self.fields.items()}
            final_obs[step + 1, ids] = obs_at(task, last, dtype)
            state[step + 1, ids] = state_at(task, initial, dtype)
        return state, final_obs, final_state

    def _rewards(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        seconds, healthy = self.task.step_seconds, ~self.terminated
        inputs = RewardInputs(self.fields, before, after, self.controls, healthy, seconds)
        # A simulation that has diverged is at its rest position: its reward would mean nothing.
        return np.where(self.diverged, 0.0, self.task.body.rewards.reward(np, inputs))


def obs_at(task: BodyTask, fields: Fields, dtype: Any) -> np.ndarray:
    """The observations of all agents, from the fields of simulations."""
    return task.obs_from(np, task.readings(np, fields, dtype))


def state_at(task: BodyTask, fields: Fields, dtype: Any) -> np.ndarray:
    """The states of all agents, from the fields of simulations."""
    return task.state_from(np, task.readings(np, fields, dtype))
