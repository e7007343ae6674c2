"""Observations and rewards of SMAC in plain Python loops, an independent reference.

It follows oxwhirl's SMAC (layout `smac`) and MAPPO's version of it, which the paper uses (layout
`paper`). Only the teams and the walkable cells of the maps are taken from the package; health,
shields, cooldowns and the order of unit types are SMAC's, written down here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fp3o.envs.smac.maps import Map, UnitGroup
from fp3o.envs.smac.terrain import terrain

CELLS, MIDDLE = 32, 16.0
SIGHT_RANGE, SHOOT_RANGE = 9.0, 6.0
FIRST_MOVE, MOVES = 2, ((0, 1), (0, -1), (1, 0), (-1, 0))
"""Index of the first move; north, south, east and west."""
FIRST_ATTACK = FIRST_MOVE + len(MOVES)
"""Index of the first attack."""

HEALTH = {
    "marine": 45, "zealot": 100, "stalker": 80, "colossus": 200, "zergling": 35, "baneling": 30,
    "hydralisk": 80, "spine_crawler": 300,
}  # fmt: skip
SHIELDS = {"zealot": 50, "stalker": 80, "colossus": 150}
"""Shields of Protoss units; teams of other races have none."""
MAX_COOLDOWN = {
    "marine": 15, "zealot": 22, "stalker": 35, "colossus": 24, "zergling": 11, "baneling": 1,
    "hydralisk": 10,
}  # fmt: skip
"""Divisors of the cooldowns of allies."""

STALKER_FIRST, ZEALOT_FIRST = {"stalker": 0, "zealot": 1}, {"zealot": 0, "stalker": 1}
BANES = {"baneling": 0, "zergling": 1}
COLOSSI = {"colossus": 0, "stalker": 1, "zealot": 2}
NUMBERS = {
    frozenset(STALKER_FIRST): (STALKER_FIRST, ZEALOT_FIRST),
    frozenset(BANES): (BANES, BANES),
    frozenset(COLOSSI): (COLOSSI, COLOSSI),
}
"""Unit types of the allies -> the index of every type among allies, and among enemies."""


@dataclass(frozen=True)
class Body:
    """A unit."""

    unit: str
    x: float
    y: float
    hp: float
    shield: float
    cooldown: float

    @property
    def lives(self) -> bool:
        """Whether it is alive."""
        return self.hp > 0

    def vitals(self) -> list[float]:
        """Health, and shield of units that have one, as shares of the maximum."""
        health = [self.hp / HEALTH[self.unit]]
        return health + ([self.shield / SHIELDS[self.unit]] if self.unit in SHIELDS else [])

    def waits(self) -> list[float]:
        """The cooldown as a share of SMAC's maximum."""
        return [self.cooldown / MAX_COOLDOWN[self.unit]]

    def place(self) -> list[float]:
        """Position relative to the centre of the map, in units of its size."""
        return [(self.x - MIDDLE) / CELLS, (self.y - MIDDLE) / CELLS]

    def far(self, other: "Body") -> float:
        """Distance from centre to centre."""
        return math.hypot(other.x - self.x, other.y - self.y)

    def towards(self, other: "Body") -> list[float]:
        """Distance, x and y to another unit, in units of the sight range."""
        away = (self.far(other), other.x - self.x, other.y - self.y)
        return [part / SIGHT_RANGE for part in away]

    def sees(self, other: "Body") -> bool:
        """Whether another unit is within the sight range, excluding its edge."""
        return self.far(other) < SIGHT_RANGE


def one_hot(number: int, size: int) -> list[float]:
    """A one-hot vector; all zeros if the index is -1."""
    return [float(place == number) for place in range(size)]


class PlainBattle:
    """One state of a battle, and its observations."""

    def __init__(self, roster: Map, units: Any, last: Sequence[int]) -> None:
        names = unit_names(roster.allies) + unit_names(roster.enemies)
        columns = (units.x, units.y, units.hp, units.shield, units.cooldown)
        numbers = zip(*([float(x) for x in column] for column in columns), strict=True)
        bodies = [Body(unit, *row) for unit, row in zip(names, numbers, strict=True)]
        count = len(unit_names(roster.allies))
        self.roster, self.free = roster, terrain(roster.terrain).walkable
        self.allies, self.enemies = bodies[:count], bodies[count:]
        self.last = [int(action) for action in last]
        self.numbers = NUMBERS.get(frozenset(ally.unit for ally in self.allies))

    @property
    def actions(self) -> int:
        """Number of actions per agent."""
        return FIRST_ATTACK + len(self.enemies)

    def type_of(self, body: Body, ours: bool) -> list[float]:
        """The one-hot unit type, on maps where allies have several."""
        if self.numbers is None:
            return []
        table = self.numbers[0] if ours else self.numbers[1]
        return one_hot(table[body.unit], len(table))

    def acted(self, agent: int) -> list[float]:
        """The one-hot last action of an agent."""
        return one_hot(self.last[agent], self.actions)

    def others(self, agent: int) -> list[tuple[int, Body]]:
        """All other allies with their indices."""
        return [(number, ally) for number, ally in enumerate(self.allies) if number != agent]

    def open_to(self, body: Body, step: tuple[int, int]) -> bool:
        """Whether the cell one step away is walkable."""
        x, y = int(body.x + step[0]), int(body.y + step[1])
        return 0 <= x < CELLS and 0 <= y < CELLS and bool(self.free[x, y])

    def action_mask(self, agent: int) -> list[int]:
        """Available actions of an agent."""
        me = self.allies[agent]
        if not me.lives:
            return [1] + [0] * (self.actions - 1)
        moves = [int(self.open_to(me, step)) for step in MOVES]
        shots = [int(foe.lives and me.far(foe) <= SHOOT_RANGE) for foe in self.enemies]
        return [0, 1, *moves, *shots]

    def obs(self, layout: str, agent: int) -> list[float]:
        """An agent's observation."""
        return self.smac_obs(agent) if layout == "smac" else self.paper_obs(agent)

    def state(self, layout: str, agent: int) -> list[float]:
        """The state of an agent's critic."""
        return self.smac_state() if layout == "smac" else self.paper_state(agent)

    def smac_obs(self, agent: int) -> list[float]:
        """Moves, enemies, allies, own features; zeros for dead agents."""
        me, action_mask = self.allies[agent], self.action_mask(agent)
        row = [float(x) for x in action_mask[FIRST_MOVE:FIRST_ATTACK]]
        for number, foe in enumerate(self.enemies):
            about = [float(action_mask[FIRST_ATTACK + number]), *me.towards(foe), *foe.vitals()]
            row += shown(about + self.type_of(foe, False), foe.lives and me.sees(foe))
        for _, ally in self.others(agent):
            about = [1.0, *me.towards(ally), *ally.vitals(), *self.type_of(ally, True)]
            row += shown(about, ally.lives and me.sees(ally))
        return shown(row + me.vitals() + self.type_of(me, True), me.lives)

    def smac_state(self) -> list[float]:
        """Allies, enemies, last actions; features of dead units are zero, last actions are not."""
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
        """Allies, enemies, moves, own features, index; dead agents observe their index only."""
        me, action_mask = self.allies[agent], self.action_mask(agent)
        row: list[float] = []
        for number, ally in self.others(agent):
            about = [1.0, *me.towards(ally), *ally.vitals(), *self.type_of(ally, True)]
            row += shown(about + self.acted(number), ally.lives and me.sees(ally))
        for number, foe in enumerate(self.enemies):
            about = [float(action_mask[FIRST_ATTACK + number]), *me.towards(foe), *foe.vitals()]
            row += shown(about + self.type_of(foe, False), foe.lives and me.sees(foe))
        row += [float(x) for x in action_mask[FIRST_MOVE:FIRST_ATTACK]]
        row += [1.0, 0.0, 0.0, 0.0, *me.vitals(), *self.type_of(me, True), *self.acted(agent)]
        return shown(row, me.lives) + one_hot(agent, len(self.allies))

    def paper_state(self, agent: int) -> list[float]:
        """As the observation, with all living units, positions and cooldowns."""
        me, action_mask = self.allies[agent], self.action_mask(agent)
        row: list[float] = []
        for number, ally in self.others(agent):
            about = [float(me.sees(ally)), *me.towards(ally), *ally.waits(), *ally.vitals()]
            about += [*ally.place(), *self.type_of(ally, True), *self.acted(number)]
            row += shown(about, ally.lives)
        for number, foe in enumerate(self.enemies):
            about = [
                float(action_mask[FIRST_ATTACK + number]),
                *me.towards(foe),
                float(me.sees(foe)),
            ]
            about += [*foe.vitals(), *self.type_of(foe, False), *foe.place()]
            row += shown(about, foe.lives)
        row += [float(x) for x in action_mask[FIRST_MOVE:FIRST_ATTACK]]
        row += [1.0, 0.0, 0.0, 0.0, *me.vitals(), *me.place()]
        row += [*self.type_of(me, True), *self.acted(agent)]
        return shown(row, me.lives) + one_hot(agent, len(self.allies))


def unit_names(groups: Sequence[UnitGroup]) -> list[str]:
    """The type of every unit."""
    return [group.unit for group in groups for _ in range(group.count)]


def shown(row: list[float], visible: bool) -> list[float]:
    """A row, or zeros of the same length."""
    return row if visible else [0.0] * len(row)


def largest_return(roster: Map) -> float:
    """The largest return before scaling: all damage, all kills, the victory."""
    foes = unit_names(roster.enemies)
    return sum(HEALTH[unit] + SHIELDS.get(unit, 0) + 10.0 for unit in foes) + 200.0


def reward_and_ends(
    before: PlainBattle, after: PlainBattle, steps: int
) -> tuple[float, bool, bool]:
    """The reward of a step, terminated, truncated; `steps` includes this one."""
    reward = 0.0
    for was, now in zip(before.enemies, after.enemies, strict=True):
        if was.lives and now.lives:
            reward += (was.hp + was.shield) - (now.hp + now.shield)
        elif was.lives:
            reward += was.hp + was.shield + 10.0
    reward = abs(reward)
    ours, theirs = (any(body.lives for body in side) for side in (after.allies, after.enemies))
    if ours and not theirs:
        reward += 200.0
    over = not (ours and theirs)
    late = not over and steps >= after.roster.max_episode_steps
    return reward / (largest_return(after.roster) / 20.0), over, late
