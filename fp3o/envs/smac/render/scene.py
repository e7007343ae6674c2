"""Scene of a battle: positions, directions and targets of all units."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.smac.actions import FIRST_ATTACK, FIRST_MOVE, MOVE_DIRECTIONS
from fp3o.envs.smac.env import SmacEnv
from fp3o.envs.smac.render.drawing import ALLY_COLOURS, ENEMY_COLOURS, SideColours
from fp3o.envs.smac.render.landscape import Backdrop
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.simulator.state import NO_TARGET
from fp3o.envs.smac.simulator.stats import UnitStats


@dataclass(frozen=True, eq=False)
class BattleScene:
    """One state of a battle, and the image it is drawn on."""

    env: SmacEnv
    units: Any
    """The state of all units, as NumPy arrays."""
    last_actions: np.ndarray
    backdrop: Backdrop
    image: Image.Image

    @cached_property
    def pen(self) -> ImageDraw.ImageDraw:
        """Draws on the image; colours may be transparent."""
        return ImageDraw.Draw(self.image, "RGBA")

    @cached_property
    def battle(self) -> Battle:
        """The battle, with the teams of this episode."""
        return self.env.battle.of(self.units)

    @cached_property
    def stats(self) -> UnitStats:
        """The statistics of every unit."""
        return self.battle.stats

    @cached_property
    def types(self) -> list[str]:
        """The type of every unit."""
        return [self.battle.unit_types[kind] for kind in self.battle.kinds]

    @cached_property
    def position(self) -> np.ndarray:
        """(u, 2): column and row of every unit."""
        return self.backdrop.pixel(self.units.x, self.units.y)

    @cached_property
    def radius(self) -> np.ndarray:
        """(u,): radius of every unit in drawn pixels."""
        return self.stats.radius * self.backdrop.scale

    @cached_property
    def alive(self) -> np.ndarray:
        """(u,): whether every unit is alive."""
        return self.units.hp > 0

    @cached_property
    def allied(self) -> np.ndarray:
        """(u,): whether every unit is an ally."""
        return np.arange(len(self.alive)) < self.env.battle.num_allies

    def colours(self, unit: int) -> SideColours:
        """The colours of a unit's side."""
        return ALLY_COLOURS if self.allied[unit] else ENEMY_COLOURS

    @cached_property
    def target(self) -> np.ndarray:
        """(u,): whom every unit attacks or heals, or attacked last, as an index of all units."""
        units, n = self.units, self.env.battle.num_allies
        ordered = np.full(len(self.alive), NO_TARGET)
        attack = self.last_actions - FIRST_ATTACK
        ordered[:n] = np.where(attack >= 0, attack, NO_TARGET)
        target = np.where(units.target != NO_TARGET, units.target, ordered)
        in_flight = self.battle.delayed & (units.windup == 0)
        in_flight &= units.last_target != NO_TARGET
        target = np.where(in_flight, units.last_target, target)
        others = self.allied != (self.stats.heal > 0)  # whether it targets enemies, n and later
        return np.where(target == NO_TARGET, NO_TARGET, target + np.where(others, n, 0))

    @cached_property
    def gap(self) -> np.ndarray:
        """(u,): distance from edge to edge to the target, in cells."""
        x, y, radius = self.units.x, self.units.y, self.stats.radius
        away = np.hypot(x - x[self.target], y - y[self.target])
        return away - radius - radius[self.target]

    @cached_property
    def since_attack(self) -> np.ndarray:
        """(u,): loops since the last attack hit, up to noise; negative before the hit."""
        units, stats = self.units, self.stats
        away = self.gap + stats.radius + stats.radius[self.target]
        missile = stats.missile_speed
        flight = np.where(missile > 0, away / np.maximum(missile, 1e-6), stats.lance)
        started = np.where(units.cooldown > 0, stats.period - units.cooldown, np.inf)
        return started - stats.windup - flight

    @cached_property
    def direction(self) -> np.ndarray:
        """(u,): angle towards the target, the ordered move, or the nearest opponent."""
        units, n = self.units, self.env.battle.num_allies
        dx, dy = (part[None] - part[:, None] for part in (units.x, units.y))
        opponents = (self.allied[:, None] != self.allied[None]) & self.alive[None]
        nearest = np.where(opponents, np.hypot(dx, dy), np.inf).argmin(1)
        target = np.where(units.target != NO_TARGET, self.target, nearest)
        rows = np.arange(len(target))
        angle = np.arctan2(dy[rows, target], dx[rows, target])
        last = self.last_actions
        walks = (last >= FIRST_MOVE) & (last < FIRST_ATTACK)
        move = MOVE_DIRECTIONS[np.clip(last - FIRST_MOVE, 0, len(MOVE_DIRECTIONS) - 1)]
        angle[:n] = np.where(walks, np.arctan2(move[:, 1], move[:, 0]), angle[:n])
        return angle


def unit_indices(mask: np.ndarray) -> list[int]:
    """The indices of the units for which a condition holds."""
    return np.flatnonzero(mask).tolist()
