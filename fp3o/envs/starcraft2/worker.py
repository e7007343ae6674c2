"""The real game in a worker process: one of SMAC's environments, looked at through our layouts.

SMAC itself is imported here and nowhere else, when a worker makes its environment. JAX is not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fp3o.envs.smac.host_layout import Side, paper
from fp3o.envs.workers.protocol import StepReply


@dataclass(frozen=True)
class Launch:
    """Makes the environment of a worker."""

    map: str
    layout: str

    def __call__(self, seed: int) -> "Match":
        """A place to play; the game itself starts with its first episode."""
        return Match(lambda: self._smac(seed), self.layout)

    def _smac(self, seed: int) -> Any:
        from smac.env import StarCraft2Env  # pyright: ignore

        # Nothing changes with `continuing_episode` but that time limits are told from ends.
        return StarCraft2Env(map_name=self.map, seed=seed, continuing_episode=True)


class Match:
    """One environment of SMAC: a worker's place."""

    def __init__(self, make: Callable[[], Any], layout: str):
        self._make, self._layout = make, layout
        self._env: Any = None
        self._ended = False

    def reset(self, *_: int) -> StepReply:
        """Begin an episode; its random numbers are those that the game has started with."""
        # Until an episode has ended, SMAC would start a second game beside the first.
        if self._env is None or not self._ended:
            self.close()
            self._env = self._make()
        before = self._env.force_restarts
        self._env.reset()
        self._refuse_restart(before)
        return self._report(0.0, False, False, (0, 0, 0))

    def step(self, action: Any) -> StepReply:
        """Play the agents' actions `(n, 1)` or `(n,)`."""
        before = self._env.force_restarts
        reward, over, info = self._env.step([int(choice) for choice in np.ravel(action)])
        self._refuse_restart(before)
        self._ended |= bool(over)
        late = bool(over and info.get("episode_limit", False))
        outcome = info["battle_won"], info["dead_allies"], info["dead_enemies"]
        return self._report(reward, over and not late, late, outcome)

    def close(self) -> None:
        """End the game."""
        if self._env is not None:
            self._env.close()
        self._env, self._ended = None, False

    def _refuse_restart(self, before: int) -> None:
        """SMAC hides that the game has died: it shows the end of an episode that had none."""
        if self._env.force_restarts != before:
            raise RuntimeError("StarCraft II ended by itself, or did not answer SMAC")

    def _report(self, reward: Any, over: bool, late: bool, outcome: Iterable[Any]) -> StepReply:
        env = self._env
        action_mask = np.array(env.get_avail_actions(), bool)
        obs, state = self._paper(action_mask) if self._layout == "paper" else self._plain()
        alive = np.array([unit.health > 0 for unit in _units(env.agents)])
        return StepReply(
            obs, state, action_mask, alive,
            np.full(len(alive), reward, np.float32), np.array(bool(over)), np.array(bool(late)),
            np.array([*outcome], np.float32),
        )  # fmt: skip

    def _plain(self) -> tuple[np.ndarray, np.ndarray]:
        """SMAC's own observations, and its one state for every agent."""
        obs = np.array(self._env.get_obs(), np.float32)
        state = np.asarray(self._env.get_state(), np.float32)
        return obs, np.repeat(state[None], len(obs), 0)

    def _paper(self, action_mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        env, agents = self._env, _units(self._env.agents)
        waits = [unit.weapon_cooldown / env.unit_max_cooldown(unit) for unit in agents]
        ours, theirs = self._side(agents, True), self._side(_units(env.enemies), False)
        return paper(ours, theirs, np.array(waits), action_mask, np.asarray(env.last_action))

    def _side(self, units: list[Any], ally: bool) -> Side:
        env = self._env
        spot = np.array([(unit.pos.x, unit.pos.y) for unit in units])
        middle = np.array([env.map_x, env.map_y]) / 2
        vitals = [[unit.health / unit.health_max for unit in units]]
        if env.shield_bits_ally if ally else env.shield_bits_enemy:
            vitals.append([unit.shield / env.unit_max_shield(unit) for unit in units])
        kinds = np.zeros((len(units), env.unit_type_bits))
        if env.unit_type_bits:
            numbers = [env.get_unit_type_id(unit, ally) for unit in units]
            kinds[np.arange(len(units)), numbers] = 1.0
        return Side(
            spot,
            (spot - middle) / [env.max_distance_x, env.max_distance_y],
            np.array(vitals).T,
            kinds,
            np.array([unit.health > 0 for unit in units]),
        )


def _units(numbered: dict[int, Any]) -> list[Any]:
    return [numbered[number] for number in range(len(numbered))]
