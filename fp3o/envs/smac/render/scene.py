"""What is to be seen in a battle: who stands where, looks where and attacks whom."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.smac.env import SmacEnv
from fp3o.envs.smac.maps import kinds
from fp3o.envs.smac.observations import FIRST, HEADINGS, STILL
from fp3o.envs.smac.render.brush import OURS, THEIRS, Side
from fp3o.envs.smac.render.landscape import Stage
from fp3o.envs.smac.simulator import NOBODY


@dataclass(frozen=True, eq=False)
class Scene:
    """What is to be drawn, and on what."""

    game: SmacEnv
    units: Any
    """The state's units, as arrays of NumPy."""
    last: np.ndarray
    """Last actions of the agents."""
    stage: Stage
    image: Image.Image

    @cached_property
    def pen(self) -> ImageDraw.ImageDraw:
        """Draws on the image, and lets through what is below a colour that is not full."""
        return ImageDraw.Draw(self.image, "RGBA")

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of every unit."""
        return kinds(self.game.battle.map.allies) + kinds(self.game.battle.map.enemies)

    @cached_property
    def place(self) -> np.ndarray:
        """(u, 2): where every unit is painted."""
        return self.stage.at(self.units.x, self.units.y)

    @cached_property
    def radius(self) -> np.ndarray:
        """(u,): of every unit, painted."""
        return self.game.battle.facts.radius * self.stage.scale

    @cached_property
    def alive(self) -> np.ndarray:
        """(u,): who is."""
        return self.units.hp > 0

    @cached_property
    def ours(self) -> np.ndarray:
        """(u,): who is on our side."""
        return np.arange(len(self.alive)) < self.game.battle.num_allies

    def side(self, unit: int) -> Side:
        """The colours of a unit."""
        return OURS if self.ours[unit] else THEIRS

    @cached_property
    def victims(self) -> np.ndarray:
        """(u,): whom everyone attacks, or attacked last, among all units, or `NOBODY`."""
        units, own, n = self.units, self.game.battle.facts, self.game.battle.num_allies
        told = np.full(len(self.alive), NOBODY)
        told[:n] = np.where(self.last >= FIRST, self.last - FIRST, NOBODY)
        whom = np.where(units.target != NOBODY, units.target, told)
        late = (own.second > 0) | (own.missile > 0) | (own.lance > 0)
        whom = np.where(late & (units.windup == 0) & (units.prey != NOBODY), units.prey, whom)
        return np.where(whom == NOBODY, NOBODY, whom + np.where(self.ours, n, 0))

    @cached_property
    def gap(self) -> np.ndarray:
        """(u,): from the edge of everyone to that of its victim, in cells."""
        x, y, radius = self.units.x, self.units.y, self.game.battle.facts.radius
        away = np.hypot(x - x[self.victims], y - y[self.victims])
        return away - radius - radius[self.victims]

    @cached_property
    def since(self) -> np.ndarray:
        """(u,): loops since the last attack hit, up to the noise of the waits; below 0 before."""
        units, own = self.units, self.game.battle.facts
        away = self.gap + own.radius + own.radius[self.victims]
        flight = np.where(own.missile > 0, away / np.maximum(own.missile, 1e-6), own.lance)
        begun = np.where(units.cooldown > 0, own.period - units.cooldown, np.inf)
        return begun - own.windup - flight

    @cached_property
    def way(self) -> np.ndarray:
        """(u,): the direction everyone looks to: its target, its move, or the nearest opponent."""
        units, n = self.units, self.game.battle.num_allies
        dx, dy = (part[None] - part[:, None] for part in (units.x, units.y))
        foes = (self.ours[:, None] != self.ours[None]) & self.alive[None]
        nearest = np.where(foes, np.hypot(dx, dy), np.inf).argmin(1)
        whom = np.where(units.target != NOBODY, self.victims, nearest)
        rows = np.arange(len(whom))
        angle = np.arctan2(dy[rows, whom], dx[rows, whom])
        walks = (self.last >= STILL) & (self.last < FIRST)
        move = HEADINGS[np.clip(self.last - STILL, 0, len(HEADINGS) - 1)]
        angle[:n] = np.where(walks, np.arctan2(move[:, 1], move[:, 0]), angle[:n])
        return angle
