"""A stand-in for SMACv2's environment that needs no game.

Worker processes import this: no JAX, and of the library only what needs NumPy alone.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import smac_plain
import smacv2_plain as plain
from fake_smac import acted, apart, hit

KINDS = (
    "baneling", "colossus", "hydralisk", "marauder", "marine", "medivac", "stalker", "zealot",
    "zergling",
)  # fmt: skip
"""Kinds in the order of the numbers that the map gives to the allies' types, from `OWN` on."""
OWN = 2000
SETTINGS = {
    "continuing_episode": True, "conic_fov": False, "obs_own_pos": True, "use_unit_ranges": True,
    "min_attack_range": 2,
}  # fmt: skip


class StarCraftCapabilityEnvWrapper:
    """SMACv2's interface over a battle that needs no game: whoever is near is hit, others walk."""

    def __init__(self, capability_config: dict[str, Any], map_name: str, seed: int, **rest: Any):
        from smacv2.env.starcraft2.distributions import default_rng  # pyright: ignore

        assert rest == SETTINGS
        config, self._random = capability_config, default_rng()
        self.race, self.seed = map_name.removeprefix("10gen_"), seed
        self.n_agents, self.n_enemies = config["n_units"], config["n_enemies"]
        self.teams, self.positions = config["team_gen"], config["start_positions"]
        targets = max(self.n_enemies, self.n_agents if self.race == "terran" else 0)
        self.n_actions = smac_plain.FIRST_ATTACK + targets
        self.shield_bits_ally = self.shield_bits_enemy = int(self.race == "protoss")
        self.unit_type_bits, self.medivac_id = 3, OWN + KINDS.index("medivac")
        self.map_x = self.map_y = self.max_distance_x = self.max_distance_y = smac_plain.CELLS
        self.obs_own_pos, self.force_restarts, self._steps = True, 0, 0
        self.agents: dict[int, Any] = {}
        self.enemies: dict[int, Any] = {}

    def reset(self) -> None:
        """SMACv2 returns nothing after it has had to try again."""
        self._steps = 0
        size = max(self.n_agents, self.n_enemies)
        team = self._random.choice(self.teams["unit_types"], size, p=self.teams["weights"]).tolist()
        if self.race == "terran":  # a medivac beside others, as it is rare otherwise
            team[:2] = ["medivac", "marine"]
        x, y = self._random.uniform(8, 13, size), self._random.uniform(10, 20, size)
        ours = [self._unit(kind, x[i], y[i], True) for i, kind in enumerate(team)]
        ours = sorted(ours[: self.n_agents], key=lambda unit: (unit.unit_type, unit.pos.x))
        theirs = [self._unit(kind, 32 - x[i], y[i], False) for i, kind in enumerate(team)]
        self.agents, self.enemies = dict(enumerate(ours)), dict(enumerate(theirs[: self.n_enemies]))
        self.last_action = np.zeros((self.n_agents, self.n_actions))

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        mask = self.get_avail_actions()
        assert all(row[action] for row, action in zip(mask, actions, strict=True)), "illegal"
        self.last_action = np.eye(self.n_actions)[actions]
        self._steps += 1
        for me, action in zip(self.agents.values(), actions, strict=True):
            self._act(me, action)
        for foe in self.enemies.values():
            self._walk_or_hit(foe)
        over = [all(unit.health == 0 for unit in side.values()) for side in self._sides()]
        info = {
            "battle_won": over[1] and not over[0],
            "dead_allies": sum(unit.health == 0 for unit in self.agents.values()),
            "dead_enemies": sum(unit.health == 0 for unit in self.enemies.values()),
        }
        return 0.5, any(over), info

    def get_avail_actions(self) -> list[list[int]]:
        return [self.moment().action_mask(agent) for agent in range(self.n_agents)]

    def get_obs(self) -> list[np.ndarray]:
        moment = self.moment()
        return [np.array(moment.obs("smac", i), np.float32) for i in range(self.n_agents)]

    def get_state(self) -> np.ndarray:
        return np.array(self.moment().state("smac", 0), np.float32)

    def get_unit_type_id(self, unit: Any, ally: bool) -> int:
        return plain.TYPES[self.race].index(unit.kind)

    def unit_sight_range(self, agent: int) -> int:
        return plain.SIGHT[self.agents[agent].kind]

    def unit_max_cooldown(self, unit: Any) -> int:
        return plain.MAX_COOLDOWN[unit.kind]

    def unit_max_shield(self, unit: Any) -> int:
        return smac_plain.SHIELDS[unit.kind]

    def close(self) -> None:
        pass

    def moment(self) -> plain.PlainTeams:
        """The state for the plain model."""
        ours, theirs = ([body(unit) for unit in side.values()] for side in self._sides())
        return plain.PlainTeams(self.race, ours, theirs, acted(self.last_action))

    def _sides(self) -> tuple[dict[int, Any], dict[int, Any]]:
        return self.agents, self.enemies

    def _act(self, me: Any, action: int) -> None:
        me.weapon_cooldown = float(action % 4)
        target = action - smac_plain.FIRST_ATTACK
        if target >= 0 and me.kind == "medivac":
            healed = self.agents[target]
            healed.health, me.energy = min(healed.health + 9, healed.health_max), me.energy - 2
        elif target >= 0:
            hit(self.enemies[target])
        elif action >= smac_plain.FIRST_MOVE:
            dx, dy = smac_plain.MOVES[action - smac_plain.FIRST_MOVE]
            me.pos = SimpleNamespace(x=me.pos.x + 1.125 * dx, y=me.pos.y + 1.125 * dy)

    def _walk_or_hit(self, foe: Any) -> None:
        targets = [unit for unit in self.agents.values() if unit.health > 0]
        if foe.health == 0 or not targets:
            return
        near = min(targets, key=lambda unit: apart(foe, unit))
        if (far := apart(foe, near)) < 3:
            hit(near)
        else:
            dx, dy = (near.pos.x - foe.pos.x) / far, (near.pos.y - foe.pos.y) / far
            foe.pos = SimpleNamespace(x=foe.pos.x + dx, y=foe.pos.y + dy)

    def _unit(self, kind: str, x: float, y: float, ally: bool) -> Any:
        health, shield = float(plain.HEALTH[kind]), float(smac_plain.SHIELDS.get(kind, 0))
        return SimpleNamespace(
            kind=kind, unit_type=OWN + KINDS.index(kind) if ally else KINDS.index(kind),
            health=health, health_max=health, shield=shield, weapon_cooldown=0.0, energy=50.0,
            pos=SimpleNamespace(x=float(x), y=float(y)),
        )  # fmt: skip


def body(unit: Any) -> plain.Body:
    """A unit for the plain model."""
    wait = unit.energy if unit.kind == "medivac" else unit.weapon_cooldown
    return plain.Body(unit.kind, unit.pos.x, unit.pos.y, unit.health, unit.shield, wait)
