"""One SMAC environment of StarCraft II as a `WorkerEnv`, with the observations of this package.

SMAC is imported only when a worker makes its environment. JAX is not imported.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fp3o.envs.smac.host_layout import AgentFeatures, SideFeatures, paper_layout
from fp3o.envs.workers.protocol import StepReply, WorkerEnv


@dataclass(frozen=True)
class MakeSmac:
    """Makes the environment of a worker."""

    map: str
    layout: str

    def __call__(self, seed: int) -> "SmacWorker":
        """A new environment; the game itself is started with the first episode."""
        return SmacWorker(lambda: self._smac(seed), self.layout)

    def _smac(self, seed: int) -> Any:
        from smac.env import StarCraft2Env  # pyright: ignore

        # `continuing_episode` only adds to the info whether the time limit ended an episode.
        return StarCraft2Env(map_name=self.map, seed=seed, continuing_episode=True)


class EnemyPoints:
    """Points of health and shields that enemies lost and got back, from step to step.

    Within a step, losses and gains of an enemy cancel out: the game reports only its end.
    """

    def __init__(self, enemies: Mapping[int, Any]):
        self.lost = self.regained = 0.0
        self._before = _points(enemies)

    def update(self, enemies: Mapping[int, Any]) -> None:
        """Add the changes of a step."""
        now = _points(enemies)
        change = now - self._before
        self.lost -= float(np.minimum(change, 0.0).sum())
        self.regained += float(np.maximum(change, 0.0).sum())
        self._before = now


class SmacWorker(WorkerEnv):
    """One environment of SMAC or SMACv2, which have the same interface."""

    def __init__(self, make: Callable[[], Any], layout: str):
        self._make, self._layout = make, layout
        self._env: Any = None
        self._ended = False
        self._points = EnemyPoints({})

    def reset(self, seed: int, episode: int) -> StepReply:
        """Start an episode; its random numbers follow from the seed the game was started with."""
        # Before the end of an episode SMAC would start a second game in addition to the first.
        if self._env is None or not self._ended:
            self.close()
            self._env = self._make()
        before = self._env.force_restarts
        self._env.reset()
        self._check_restarts(before)
        self._points = EnemyPoints(self._env.enemies)
        return self._reply(0.0, False, False, (0,) * 5)

    def step(self, action: Any) -> StepReply:
        """Apply the actions `(n, 1)` or `(n,)`."""
        before = self._env.force_restarts
        reward, done, info = self._env.step([int(choice) for choice in np.ravel(action)])
        self._check_restarts(before)
        self._ended |= bool(done)
        truncated = bool(done and info.get("episode_limit", False))
        self._points.update(self._env.enemies)
        deaths = info["dead_allies"], info["dead_enemies"]
        metrics = info["battle_won"], *deaths, self._points.lost, self._points.regained
        return self._reply(reward, done and not truncated, truncated, metrics)

    def close(self) -> None:
        """End the game."""
        if self._env is not None:
            self._env.close()
        self._env, self._ended = None, False

    def _check_restarts(self, before: int) -> None:
        """Raise if the game has crashed, which SMAC reports as the end of an episode."""
        if self._env.force_restarts != before:
            raise RuntimeError("StarCraft II has exited, or did not reply to SMAC")

    def _reply(
        self, reward: Any, terminated: bool, truncated: bool, metrics: Iterable[Any]
    ) -> StepReply:
        env = self._env
        action_mask = np.array(env.get_avail_actions(), bool)
        paper = self._layout == "paper"
        obs, state = self._paper_layout(action_mask) if paper else self._smac_layout()
        alive = np.array([unit.health > 0 for unit in _units(env.agents)])
        return StepReply(
            obs, state, action_mask, alive,
            np.full(len(alive), reward, np.float32), np.array(bool(terminated)),
            np.array(bool(truncated)), np.array([*metrics], np.float32),
        )  # fmt: skip

    def _smac_layout(self) -> tuple[np.ndarray, np.ndarray]:
        """SMAC's observations, and its state repeated for every agent."""
        obs = np.array(self._env.get_obs(), np.float32)
        state = np.asarray(self._env.get_state(), np.float32)
        return obs, np.repeat(state[None], len(obs), 0)

    def _paper_layout(self, action_mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        env, units = self._env, _units(self._env.agents)
        ours, theirs = self._side(units, True), self._side(_units(env.enemies), False)
        own_position = ours.cell / [env.map_x, env.map_y]
        agents = AgentFeatures(
            np.array([env.unit_sight_range(i) for i in range(len(units))]),
            own_position if getattr(env, "obs_own_pos", False) else own_position[:, :0],
            np.array([self._cooldown(unit) for unit in units]),
            np.asarray(env.last_action),
        )
        return paper_layout(ours, theirs, agents, action_mask)

    def _cooldown(self, unit: Any) -> float:
        """The cooldown as a share of SMAC's maximum; a medivac has energy instead."""
        heals = unit.unit_type == self._env.medivac_id
        left = unit.energy if heals else unit.weapon_cooldown
        return left / self._env.unit_max_cooldown(unit)

    def _side(self, units: list[Any], ally: bool) -> SideFeatures:
        env = self._env
        position = np.array([(unit.pos.x, unit.pos.y) for unit in units])
        centre = np.array([env.map_x, env.map_y]) / 2
        vitals = [[unit.health / unit.health_max for unit in units]]
        if env.shield_bits_ally if ally else env.shield_bits_enemy:
            vitals.append([unit.shield / env.unit_max_shield(unit) for unit in units])
        types = np.zeros((len(units), env.unit_type_bits))
        if env.unit_type_bits:
            ids = [env.get_unit_type_id(unit, ally) for unit in units]
            types[np.arange(len(units)), ids] = 1.0
        return SideFeatures(
            position,
            (position - centre) / [env.max_distance_x, env.max_distance_y],
            np.array(vitals).T,
            types,
            np.array([unit.health > 0 for unit in units]),
        )


def _units(by_id: Mapping[int, Any]) -> list[Any]:
    return [by_id[i] for i in range(len(by_id))]


def _points(enemies: Mapping[int, Any]) -> np.ndarray:
    """Health and shield of every enemy; SMAC keeps the last shield of the dead."""
    return np.array([x.health + x.shield if x.health > 0 else 0.0 for x in _units(enemies)])
