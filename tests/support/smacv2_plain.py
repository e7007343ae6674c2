"""Observations and action masks of SMACv2 in plain Python loops, an independent reference.

The layout `smac` follows oxwhirl's SMACv2 with its published settings, except that every living
enemy in sight is observed. The layout `paper` is that of `smac_plain` with SMACv2's sight ranges,
types and own position.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import smac_plain
from smac_plain import CELLS, FIRST_ATTACK, FIRST_MOVE, MIDDLE, MOVES, SHIELDS, one_hot, shown

TYPES = {
    "terran": ("marine", "marauder", "medivac"),
    "protoss": ("stalker", "zealot", "colossus"),
    "zerg": ("zergling", "hydralisk", "baneling"),
}
HEALTH = {**smac_plain.HEALTH, "marauder": 125, "medivac": 150}
MAX_COOLDOWN = {**smac_plain.MAX_COOLDOWN, "marauder": 25, "medivac": 200}
SIGHT = {
    "stalker": 10, "zealot": 9, "colossus": 10, "zergling": 8, "baneling": 8, "hydralisk": 9,
    "marine": 9, "marauder": 10, "medivac": 11,
}  # fmt: skip
REACH = {"stalker": 6, "colossus": 7, "hydralisk": 5, "marine": 5, "marauder": 6, "medivac": 4}
"""Distances of targets, centre to centre; 2 for the other types."""


@dataclass(frozen=True)
class Body:
    """A unit; the cooldown of a medivac is its energy."""

    unit: str
    x: float
    y: float
    hp: float
    shield: float
    cooldown: float

    @property
    def lives(self) -> bool:
        return self.hp > 0

    def vitals(self) -> list[float]:
        health = [self.hp / HEALTH[self.unit]]
        return health + ([self.shield / SHIELDS[self.unit]] if self.unit in SHIELDS else [])

    def waits(self) -> list[float]:
        return [self.cooldown / MAX_COOLDOWN[self.unit]]

    def place(self) -> list[float]:
        return [(self.x - MIDDLE) / CELLS, (self.y - MIDDLE) / CELLS]

    def far(self, other: "Body") -> float:
        return math.hypot(other.x - self.x, other.y - self.y)

    def towards(self, other: "Body") -> list[float]:
        away = (self.far(other), other.x - self.x, other.y - self.y)
        return [part / SIGHT[self.unit] for part in away]

    def sees(self, other: "Body") -> bool:
        return other.lives and self.far(other) < SIGHT[self.unit]

    def reaches(self, other: "Body") -> bool:
        return other.lives and self.far(other) <= REACH.get(self.unit, 2)


@dataclass(frozen=True)
class PlainTeams:
    """One state of a battle of random teams; last actions are -1 before the first."""

    race: str
    allies: Sequence[Body]
    enemies: Sequence[Body]
    last: Sequence[int]

    @property
    def actions(self) -> int:
        more = len(self.allies) if self.race == "terran" else 0
        return FIRST_ATTACK + max(len(self.enemies), more)

    def action_mask(self, agent: int) -> list[int]:
        me = self.allies[agent]
        if not me.lives:
            return [1] + [0] * (self.actions - 1)
        cells = [(int(me.x + dx), int(me.y + dy)) for dx, dy in MOVES]
        moves = [int(0 <= x < CELLS and 0 <= y < CELLS) for x, y in cells]
        if me.unit == "medivac":
            shots = [int(me.reaches(ally) and ally.unit != "medivac") for ally in self.allies]
        else:
            shots = [int(me.reaches(foe)) for foe in self.enemies]
        return [0, 1, *moves, *shots] + [0] * (self.actions - FIRST_ATTACK - len(shots))

    def obs(self, layout: str, agent: int) -> list[float]:
        me, mask = self.allies[agent], self.action_mask(agent)
        moves = [float(x) for x in mask[FIRST_MOVE:FIRST_ATTACK]]
        enemies, allies = list[float](), list[float]()
        for number, foe in enumerate(self.enemies):
            about = [float(mask[FIRST_ATTACK + number]), *me.towards(foe), *foe.vitals()]
            enemies += shown(about + self._type(foe), me.sees(foe))
        for number, ally in self._others(agent):
            about = [1.0, *me.towards(ally), *ally.vitals(), *self._type(ally)]
            about += self._acted(number) if layout == "paper" else []
            allies += shown(about, me.sees(ally))
        own = [*me.vitals(), me.x / CELLS, me.y / CELLS, *self._type(me)]
        if layout == "smac":
            return shown(moves + enemies + allies + own, me.lives)
        row = allies + enemies + moves + [1.0, 0.0, 0.0, 0.0, *own, *self._acted(agent)]
        return shown(row, me.lives) + one_hot(agent, len(self.allies))

    def state(self, layout: str, agent: int) -> list[float]:
        return self._smac_state() if layout == "smac" else self._paper_state(agent)

    def _smac_state(self) -> list[float]:
        row: list[float] = []
        for ally in self.allies:
            health, *shield = ally.vitals()
            about = [health, *ally.waits(), *ally.place(), *shield, *self._type(ally)]
            row += shown(about, ally.lives)
        for foe in self.enemies:
            health, *shield = foe.vitals()
            row += shown([health, *foe.place(), *shield, *self._type(foe)], foe.lives)
        return row + [x for agent in range(len(self.allies)) for x in self._acted(agent)]

    def _paper_state(self, agent: int) -> list[float]:
        me, mask = self.allies[agent], self.action_mask(agent)
        row: list[float] = []
        for number, ally in self._others(agent):
            about = [float(me.sees(ally)), *me.towards(ally), *ally.waits(), *ally.vitals()]
            about += [*ally.place(), *self._type(ally), *self._acted(number)]
            row += shown(about, ally.lives)
        for number, foe in enumerate(self.enemies):
            about = [float(mask[FIRST_ATTACK + number]), *me.towards(foe), float(me.sees(foe))]
            about += [*foe.vitals(), *self._type(foe), *foe.place()]
            row += shown(about, foe.lives)
        row += [float(x) for x in mask[FIRST_MOVE:FIRST_ATTACK]]
        row += [1.0, 0.0, 0.0, 0.0, *me.vitals(), *me.place()]
        row += [*self._type(me), *self._acted(agent)]
        return shown(row, me.lives) + one_hot(agent, len(self.allies))

    def _type(self, body: Body) -> list[float]:
        return one_hot(TYPES[self.race].index(body.unit), 3)

    def _acted(self, agent: int) -> list[float]:
        return one_hot(self.last[agent], self.actions)

    def _others(self, agent: int) -> list[tuple[int, Body]]:
        return [(number, ally) for number, ally in enumerate(self.allies) if number != agent]
