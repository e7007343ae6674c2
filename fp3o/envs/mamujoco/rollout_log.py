"""What happened in a rollout: noted step by step, judged and shown in bulk when it is over."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fp3o.envs.mamujoco.rewards import Moment, Step
from fp3o.envs.mamujoco.task import World
from fp3o.types import TimeStep


class Diary:
    """Notes on `t` steps of `e` environments.

    A step notes where the bodies are, what was asked of them and who has ended: little, because
    Python's overhead counts there. Rewards and states follow from that in a few large operations.
    """

    def __init__(self, world: World, moment: Mapping[str, np.ndarray], now: TimeStep, steps: int):
        self.world, self.now = world, now
        size = now.episode_start.shape
        self.moments = {name: np.empty((steps, *x.shape), x.dtype) for name, x in moment.items()}
        """Where the bodies are after each step, before a new episode begins."""
        self.controls = np.empty((steps, *size, world.model.nu))
        self.failed, self.late, self.blown = np.zeros((3, steps, *size), bool)
        self.obs = np.empty((steps + 1, *now.obs.shape), now.obs.dtype)
        self.start = np.zeros((steps + 1, *size), bool)
        self.obs[0], self.start[0] = now.obs, now.episode_start
        self.begun: list[tuple[int, np.ndarray, Moment]] = []
        """New episodes: after which step, in which environments, and where the bodies are."""

    def note(self, step: int, moment: Moment) -> None:
        """Where the bodies are after a step."""
        for name, kept in self.moments.items():
            kept[step] = moment[name]

    def begin(self, step: int, ids: np.ndarray, moment: Moment) -> None:
        """New episodes begin after a step."""
        self.begun.append((step, ids, {name: x[ids] for name, x in moment.items()}))
        self.start[step + 1, ids] = True

    def close(self, gauge: np.ndarray) -> tuple[np.ndarray, TimeStep]:
        """The gauges now, from those at the start; and all that was seen, `now` first."""
        now, length = self.now, len(self.obs)
        before, after = self._gauges(gauge)
        reward = np.empty((*self.start.shape, 1), self.obs.dtype)
        reward[0], reward[1:, :, 0] = now.reward[:, :1], self._rewards(before[:-1], after)
        team, *final = self._views()
        seen = (
            self.obs,
            team,
            np.broadcast_to(now.action_mask, (length, *now.action_mask.shape)),
            np.broadcast_to(now.alive, (length, *now.alive.shape)),
            np.broadcast_to(reward, (length, *now.reward.shape)),
            np.concatenate([now.terminated[None], self.failed]),
            np.concatenate([now.truncated[None], self.late]),
            self.start,
            *final,
            np.zeros((*self.start.shape, 0), self.obs.dtype),
        )
        return before[-1].copy(), TimeStep._make(seen)

    def _gauges(self, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What rewards are measured from `(t + 1, e)`, and to `(t, e)`."""
        gauge = self.world.robot.rules.gauge
        after = np.asarray(gauge(np, self.moments))
        before = np.concatenate([first[None], after])
        for step, ids, fresh in self.begun:
            before[step + 1, ids] = gauge(np, fresh)
        return before, after

    def _views(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All states; and what `obs` and states were before new episodes began."""
        kind = self.obs.dtype
        team = np.empty((len(self.obs), *self.now.state.shape), kind)
        team[0], team[1:] = self.now.state, see(self.world, "state", self.moments, kind)
        if not self.begun:
            return team, self.obs, team
        final_obs, final_team = self.obs.copy(), team.copy()
        for step, ids, fresh in self.begun:
            last = {name: x[step, ids] for name, x in self.moments.items()}
            final_obs[step + 1, ids] = see(self.world, "obs", last, kind)
            team[step + 1, ids] = see(self.world, "state", fresh, kind)
        return team, final_obs, final_team

    def _rewards(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        step = Step(self.moments, before, after, self.controls, ~self.failed, self.world.dt)
        # A simulation that has diverged is back at rest: nothing it did is worth a number.
        return np.where(self.blown, 0.0, self.world.robot.rules.reward(np, step))


def see(world: World, what: str, moment: Moment, dtype: Any) -> np.ndarray:
    """The agents' observations or states in a moment."""
    return world.show(np, what, world.readings(np, moment, dtype))
