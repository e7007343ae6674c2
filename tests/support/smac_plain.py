"""SMAC's rules of sight and pay in plain loops, one unit after another: a second opinion.

Written from the facts of oxwhirl's SMAC (layout `smac`) and of MAPPO's version of it, which the
paper uses (layout `paper`). Of the library only the rosters of the maps and the cells one can walk
on are used; health, shields, cooldowns and the numbers of the kinds are SMAC's, written down here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fp3o.envs.smac.maps import Group, Map
from fp3o.envs.smac.terrain import terrain

CELLS, MIDDLE = 32, 16.0
SIGHT, SHOT = 9.0, 6.0
NOTHING, MOVES = 2, ((0, 1), (0, -1), (1, 0), (-1, 0))
"""Actions that do not move, and north, south, east and west."""
SHOTS = NOTHING + len(MOVES)
"""The first attack."""

HEALTH = {
    "marine": 45, "zealot": 100, "stalker": 80, "colossus": 200, "zergling": 35, "baneling": 30,
    "hydralisk": 80, "spine_crawler": 300,
}  # fmt: skip
SHIELDS = {"zealot": 50, "stalker": 80, "colossus": 150}
"""Of the protoss; the teams of other races show none."""
WAITS = {
    "marine": 15, "zealot": 22, "stalker": 35, "colossus": 24, "zergling": 11, "baneling": 1,
    "hydralisk": 10,
}  # fmt: skip
"""What cooldowns of allies are divided by."""

STALKER_FIRST, ZEALOT_FIRST = {"stalker": 0, "zealot": 1}, {"zealot": 0, "stalker": 1}
BANES = {"baneling": 0, "zergling": 1}
COLOSSI = {"colossus": 0, "stalker": 1, "zealot": 2}
NUMBERS = {
    frozenset(STALKER_FIRST): (STALKER_FIRST, ZEALOT_FIRST),
    frozenset(BANES): (BANES, BANES),
    frozenset(COLOSSI): (COLOSSI, COLOSSI),
}
"""Kinds on our side -> the number of every kind among allies, and among enemies."""


@dataclass(frozen=True)
class Body:
    """A unit."""

    kind: str
    x: float
    y: float
    hp: float
    shield: float
    cooldown: float

    @property
    def lives(self) -> bool:
        """Whether it does."""
        return self.hp > 0

    def vitals(self) -> list[float]:
        """Health, and the shield of who can have one, as parts of the whole."""
        health = [self.hp / HEALTH[self.kind]]
        return health + ([self.shield / SHIELDS[self.kind]] if self.kind in SHIELDS else [])

    def waits(self) -> list[float]:
        """The cooldown, as SMAC shows it."""
        return [self.cooldown / WAITS[self.kind]]

    def place(self) -> list[float]:
        """From the middle of the map, in maps."""
        return [(self.x - MIDDLE) / CELLS, (self.y - MIDDLE) / CELLS]

    def far(self, other: "Body") -> float:
        """Distance from middle to middle."""
        return math.hypot(other.x - self.x, other.y - self.y)

    def towards(self, other: "Body") -> list[float]:
        """Distance, x and y to another one, in ranges of sight."""
        away = (self.far(other), other.x - self.x, other.y - self.y)
        return [part / SIGHT for part in away]

    def sees(self, other: "Body") -> bool:
        """Whether the other one is near enough; at the very edge it is not."""
        return self.far(other) < SIGHT


def one_hot(number: int, size: int) -> list[float]:
    """Zeros but for one place, or for none if it is -1."""
    return [float(place == number) for place in range(size)]


class Moment:
    """A battle at one moment, and what is seen of it."""

    def __init__(self, roster: Map, units: Any, last: Sequence[int]) -> None:
        names = roll(roster.allies) + roll(roster.enemies)
        columns = (units.x, units.y, units.hp, units.shield, units.cooldown)
        numbers = zip(*([float(x) for x in column] for column in columns), strict=True)
        bodies = [Body(kind, *row) for kind, row in zip(names, numbers, strict=True)]
        count = len(roll(roster.allies))
        self.roster, self.free = roster, terrain(roster.ground).walkable
        self.allies, self.enemies = bodies[:count], bodies[count:]
        self.last = [int(action) for action in last]
        self.numbers = NUMBERS.get(frozenset(ally.kind for ally in self.allies))

    @property
    def actions(self) -> int:
        """Choices of an agent."""
        return SHOTS + len(self.enemies)

    def type_of(self, body: Body, ours: bool) -> list[float]:
        """The one-hot of its kind, on maps where we have several."""
        if self.numbers is None:
            return []
        table = self.numbers[0] if ours else self.numbers[1]
        return one_hot(table[body.kind], len(table))

    def acted(self, agent: int) -> list[float]:
        """The one-hot of an agent's last action."""
        return one_hot(self.last[agent], self.actions)

    def others(self, agent: int) -> list[tuple[int, Body]]:
        """The allies but one, with their numbers."""
        return [(number, ally) for number, ally in enumerate(self.allies) if number != agent]

    def open_to(self, body: Body, step: tuple[int, int]) -> bool:
        """Whether one can walk on the cell that lies a step away."""
        x, y = int(body.x + step[0]), int(body.y + step[1])
        return 0 <= x < CELLS and 0 <= y < CELLS and bool(self.free[x, y])

    def action_mask(self, agent: int) -> list[int]:
        """What an agent may do."""
        me = self.allies[agent]
        if not me.lives:
            return [1] + [0] * (self.actions - 1)
        moves = [int(self.open_to(me, step)) for step in MOVES]
        shots = [int(foe.lives and me.far(foe) <= SHOT) for foe in self.enemies]
        return [0, 1, *moves, *shots]

    def obs(self, layout: str, agent: int) -> list[float]:
        """An agent's observation."""
        return self.smac_obs(agent) if layout == "smac" else self.paper_obs(agent)

    def state(self, layout: str, agent: int) -> list[float]:
        """The state an agent's critic sees."""
        return self.smac_state() if layout == "smac" else self.paper_state(agent)

    def smac_obs(self, agent: int) -> list[float]:
        """Moves, enemies, allies, oneself; the dead see zeros."""
        me, action_mask = self.allies[agent], self.action_mask(agent)
        row = [float(x) for x in action_mask[NOTHING:SHOTS]]
        for number, foe in enumerate(self.enemies):
            about = [float(action_mask[SHOTS + number]), *me.towards(foe), *foe.vitals()]
            row += shown(about + self.type_of(foe, False), foe.lives and me.sees(foe))
        for _, ally in self.others(agent):
            about = [1.0, *me.towards(ally), *ally.vitals(), *self.type_of(ally, True)]
            row += shown(about, ally.lives and me.sees(ally))
        return shown(row + me.vitals() + self.type_of(me, True), me.lives)

    def smac_state(self) -> list[float]:
        """Allies, enemies, last actions; the dead are zeros, but not what they did."""
        row: list[float] = []
        for ally in self.allies:
            health, *shield = ally.vitals()
            about = [health, *ally.waits(), *ally.place(), *shield, *self.type_of(ally, True)]
            row += shown(about, ally.lives)
        for foe in self.enemies:
            health, *shield = foe.vitals()
            about = [health, *foe.place(), *shield, *self.type_of(foe, False)]
            row += shown(about, foe.lives)
        return row + [x for agent in range(len(self.allies)) for x in self.acted(agent)]

    def paper_obs(self, agent: int) -> list[float]:
        """Allies, enemies, moves, oneself, one's number; the dead see their number only."""
        me, action_mask = self.allies[agent], self.action_mask(agent)
        row: list[float] = []
        for number, ally in self.others(agent):
            about = [1.0, *me.towards(ally), *ally.vitals(), *self.type_of(ally, True)]
            row += shown(about + self.acted(number), ally.lives and me.sees(ally))
        for number, foe in enumerate(self.enemies):
            about = [float(action_mask[SHOTS + number]), *me.towards(foe), *foe.vitals()]
            row += shown(about + self.type_of(foe, False), foe.lives and me.sees(foe))
        row += [float(x) for x in action_mask[NOTHING:SHOTS]]
        row += [1.0, 0.0, 0.0, 0.0, *me.vitals(), *self.type_of(me, True), *self.acted(agent)]
        return shown(row, me.lives) + one_hot(agent, len(self.allies))

    def paper_state(self, agent: int) -> list[float]:
        """As the observation, with everyone alive, where they stand and how long they wait."""
        me, action_mask = self.allies[agent], self.action_mask(agent)
        row: list[float] = []
        for number, ally in self.others(agent):
            about = [float(me.sees(ally)), *me.towards(ally), *ally.waits(), *ally.vitals()]
            about += [*ally.place(), *self.type_of(ally, True), *self.acted(number)]
            row += shown(about, ally.lives)
        for number, foe in enumerate(self.enemies):
            about = [float(action_mask[SHOTS + number]), *me.towards(foe), float(me.sees(foe))]
            about += [*foe.vitals(), *self.type_of(foe, False), *foe.place()]
            row += shown(about, foe.lives)
        row += [float(x) for x in action_mask[NOTHING:SHOTS]]
        row += [1.0, 0.0, 0.0, 0.0, *me.vitals(), *me.place()]
        row += [*self.type_of(me, True), *self.acted(agent)]
        return shown(row, me.lives) + one_hot(agent, len(self.allies))


def roll(groups: Sequence[Group]) -> list[str]:
    """The kind of every unit."""
    return [group.kind for group in groups for _ in range(group.count)]


def shown(row: list[float], visible: bool) -> list[float]:
    """A row, or zeros in its place."""
    return row if visible else [0.0] * len(row)


def most(roster: Map) -> float:
    """The largest return before scaling: all damage, all kills, the victory."""
    foes = roll(roster.enemies)
    return sum(HEALTH[kind] + SHIELDS.get(kind, 0) + 10.0 for kind in foes) + 200.0


def episode_metrics(before: Moment, after: Moment, steps: int) -> tuple[float, bool, bool]:
    """The reward of a step, whether the battle is over, and whether it is stopped undecided.

    `steps` have been taken, this one included.
    """
    earned = 0.0
    for was, now in zip(before.enemies, after.enemies, strict=True):
        if was.lives and now.lives:
            earned += (was.hp + was.shield) - (now.hp + now.shield)
        elif was.lives:
            earned += was.hp + was.shield + 10.0
    earned = abs(earned)
    ours, theirs = (any(body.lives for body in side) for side in (after.allies, after.enemies))
    if ours and not theirs:
        earned += 200.0
    over = not (ours and theirs)
    late = not over and steps >= after.roster.limit
    return earned / (most(after.roster) / 20.0), over, late
