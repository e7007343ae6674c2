"""A stand-in for SMAC's environment that needs no game.

Worker processes import this: no JAX, and of the library only what needs NumPy alone.
"""

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import smac_plain as plain

from fp3o.envs.smac.maps import MAPS, formation
from fp3o.envs.smac.terrain import terrain

DEFAULT_TYPES = {"zealot": 73, "stalker": 74, "colossus": 4, "baneling": 9, "zergling": 105}
"""Numbers of the kinds in the game; those of the allies are the map's own, from `OWN` on."""
OWN = 2000
DAMAGE = 9.0


class StarCraft2Env:
    """SMAC's interface over a battle that needs no game: whoever is near is hit, others walk.

    At the step named by FAKE_SMAC_BREAKS the game dies, as SMAC shows it; FAKE_SMAC_LIMIT steps
    make an episode.
    """

    def __init__(self, map_name: str, seed: int, continuing_episode: bool) -> None:
        roster = MAPS[map_name]
        limit = int(os.environ.get("FAKE_SMAC_LIMIT", roster.max_episode_steps))
        self.roster, self._tells = replace(roster, max_episode_steps=limit), continuing_episode
        kinds = [*plain.unit_names(self.roster.allies), *plain.unit_names(self.roster.enemies)]
        self._count = len(plain.unit_names(self.roster.allies))
        self._kinds = kinds
        ours, theirs = kinds[: self._count], kinds[self._count :]
        self.n_agents, self.n_enemies = len(ours), len(theirs)
        self.n_actions = plain.FIRST_ATTACK + self.n_enemies
        self.shield_bits_ally = int(any(kind in plain.SHIELDS for kind in ours))
        self.shield_bits_enemy = int(any(kind in plain.SHIELDS for kind in theirs))
        self._numbers = plain.NUMBERS.get(frozenset(ours))
        self.unit_type_bits = len(self._numbers[0]) if self._numbers else 0
        self.map_x = self.map_y = self.max_distance_x = self.max_distance_y = plain.CELLS
        self.force_restarts = self.launched = self._steps = self._finished = self.medivac_id = 0
        self.agents: dict[int, Any] = {}
        self.enemies: dict[int, Any] = {}

    def reset(self) -> tuple[Any, Any]:
        if self._finished == 0:
            self.launched += 1
            assert self.launched == 1, "a second game beside the first"
        self._steps = 0
        free = terrain(self.roster.terrain).walkable
        spots = np.concatenate([
            formation(self.roster.allies, free, False), formation(self.roster.enemies, free, True),
        ])  # fmt: skip
        units = [self._unit(i, *spot) for i, spot in enumerate(spots.tolist())]
        self.agents = dict(enumerate(units[: self._count]))
        self.enemies = dict(enumerate(units[self._count :]))
        self.last_action = np.zeros((self.n_agents, self.n_actions))
        return self.get_obs(), self.get_state()

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        if self._steps + 1 == int(os.environ.get("FAKE_SMAC_BREAKS", 0)):
            self.force_restarts += 1
            return 0, True, {}
        action_mask, before = self.get_avail_actions(), self.moment()
        assert all(row[action] for row, action in zip(action_mask, actions, strict=True)), "illegal"
        self.last_action = np.eye(self.n_actions)[actions]
        self._steps += 1
        for me, action in zip(self.agents.values(), actions, strict=True):
            me.weapon_cooldown = float(action % 4)
            if action >= plain.FIRST_ATTACK:
                hit(self.enemies[action - plain.FIRST_ATTACK])
            elif action >= plain.FIRST_MOVE:
                dx, dy = plain.MOVES[action - plain.FIRST_MOVE]
                me.pos = SimpleNamespace(x=me.pos.x + 1.125 * dx, y=me.pos.y + 1.125 * dy)
        self._enemies_act()
        reward, over, late = plain.reward_and_ends(before, self.moment(), self._steps)
        info: dict[str, Any] = {
            "battle_won": over and any(unit.health > 0 for unit in self.agents.values()),
            "dead_allies": sum(unit.health == 0 for unit in self.agents.values()),
            "dead_enemies": sum(unit.health == 0 for unit in self.enemies.values()),
        }
        if late and self._tells:
            info["episode_limit"] = True
        self._finished += over or late
        return reward, over or late, info

    def get_avail_actions(self) -> list[list[int]]:
        return [self.moment().action_mask(agent) for agent in range(self.n_agents)]

    def get_obs(self) -> list[np.ndarray]:
        moment = self.moment()
        return [np.array(moment.smac_obs(i), np.float32) for i in range(self.n_agents)]

    def get_state(self) -> np.ndarray:
        return np.array(self.moment().smac_state(), np.float32)

    def get_unit_type_id(self, unit: Any, ally: bool) -> int:
        if ally:
            return unit.unit_type - OWN
        assert self._numbers is not None
        kinds = {number: kind for kind, number in DEFAULT_TYPES.items()}
        return self._numbers[1][kinds[unit.unit_type]]

    def unit_sight_range(self, agent: int) -> float:
        return plain.SIGHT_RANGE

    def unit_max_cooldown(self, unit: Any) -> int:
        return plain.MAX_COOLDOWN[unit.kind]

    def unit_max_shield(self, unit: Any) -> int | None:
        return plain.SHIELDS.get(unit.kind)

    def close(self) -> None:
        self.launched = 0

    def moment(self) -> plain.PlainBattle:
        """The state for the plain model."""
        units = [*self.agents.values(), *self.enemies.values()]
        columns = SimpleNamespace(
            x=[unit.pos.x for unit in units],
            y=[unit.pos.y for unit in units],
            hp=[unit.health for unit in units],
            shield=[unit.shield for unit in units],
            cooldown=[unit.weapon_cooldown for unit in units],
        )
        return plain.PlainBattle(self.roster, columns, acted(self.last_action))

    def _enemies_act(self) -> None:
        for foe in self.enemies.values():
            targets = [unit for unit in self.agents.values() if unit.health > 0]
            if foe.health == 0 or not targets:
                continue
            near = min(targets, key=lambda unit: apart(foe, unit))
            if (far := apart(foe, near)) < 5:
                hit(near)
            else:
                dx, dy = near.pos.x - foe.pos.x, near.pos.y - foe.pos.y
                foe.pos = SimpleNamespace(x=foe.pos.x + dx / far, y=foe.pos.y + dy / far)

    def _unit(self, number: int, x: float, y: float) -> Any:
        kind, ally = self._kinds[number], number < self._count
        own = OWN + (self._numbers[0][kind] if self._numbers else 0)
        health, shield = float(plain.HEALTH[kind]), float(plain.SHIELDS.get(kind, 0))
        return SimpleNamespace(
            kind=kind, unit_type=own if ally else DEFAULT_TYPES.get(kind, 48),
            health=health, health_max=health, shield=shield, weapon_cooldown=0.0,
            pos=SimpleNamespace(x=x, y=y),
        )  # fmt: skip


def acted(one_hots: np.ndarray) -> list[int]:
    """The last actions, -1 before the first."""
    return [int(row.argmax()) if row.any() else -1 for row in one_hots]


def apart(one: Any, other: Any) -> float:
    return float(np.hypot(one.pos.x - other.pos.x, one.pos.y - other.pos.y))


def hit(unit: Any) -> None:
    """Shields first."""
    beyond = max(0.0, DAMAGE - unit.shield)
    unit.shield = max(0.0, unit.shield - DAMAGE)
    unit.health = max(0.0, unit.health - beyond)
