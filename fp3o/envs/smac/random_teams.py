"""SMACv2's tasks: teams and initial positions that are drawn anew for every episode.

Worker processes import this module, so it needs no JAX.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

SURROUNDED = 0.5
"""Probability that enemies surround the allies; else they start as their mirror image."""
MAX_EPISODE_STEPS = 200
MAP_FILE = "32x32_flat"
"""The map on which all races fight, without `.SC2Map`."""


@dataclass(frozen=True)
class Race:
    """Three unit types from which both teams are drawn."""

    unit_types: tuple[str, str, str]
    """In the order of their one-hot encodings."""
    weights: tuple[float, float, float] = (0.45, 0.45, 0.1)
    """Probabilities with which each unit of a team is of these types."""
    not_alone: tuple[str, ...] = ()
    """Types of which a team must not consist entirely."""
    shields: bool = False
    healers: bool = False
    """Whether a type heals allies instead of attacking enemies."""


RACES: Mapping[str, Race] = {
    "terran": Race(("marine", "marauder", "medivac"), not_alone=("medivac",), healers=True),
    "protoss": Race(("stalker", "zealot", "colossus"), shields=True),
    "zerg": Race(("zergling", "hydralisk", "baneling"), not_alone=("baneling",)),
}
"""The published unit types by race."""

PUBLISHED_TEAMS = tuple(
    f"{race}_{sizes}"
    for sizes in ("5_vs_5", "10_vs_10", "20_vs_20", "10_vs_11", "20_vs_23")
    for race in RACES
)
"""Names of the published tasks; other sizes are possible."""


@dataclass(frozen=True)
class RandomTeams:
    """A task of SMACv2: a race and the sizes of both teams."""

    race_name: str
    num_allies: int
    num_enemies: int

    @staticmethod
    def parse(name: str) -> "RandomTeams | None":
        """The task of a name such as `terran_5_vs_5`, or None; up to 99 units a side."""
        found = re.fullmatch(rf"({'|'.join(RACES)})_([1-9]\d?)_vs_([1-9]\d?)", name, re.ASCII)
        return RandomTeams(found[1], int(found[2]), int(found[3])) if found else None

    @property
    def race(self) -> Race:
        """The unit types."""
        return RACES[self.race_name]

    @property
    def map_name(self) -> str:
        """SMACv2's name of the map, which stands for a race."""
        return f"10gen_{self.race_name}"

    @property
    def summary(self) -> str:
        """`5 against 5: marines, marauders, medivacs, drawn at random`."""
        plurals = {"colossus": "colossi"}
        units = ", ".join(plurals.get(unit, f"{unit}s") for unit in self.race.unit_types)
        return f"{self.num_allies} against {self.num_enemies}: {units}, drawn at random"

    @property
    def num_actions(self) -> int:
        """Number of actions per agent: no-op, stop, four moves, one per target."""
        targets = max(self.num_enemies, self.num_allies if self.race.healers else 0)
        return 6 + targets

    def sizes(self, layout: str) -> tuple[int, int]:
        """Lengths of an observation and of a state."""
        n, enemies, actions = self.num_allies, self.num_enemies, self.num_actions
        health, types = 1 + self.race.shields, len(self.race.unit_types)
        other, own = 4 + health + types, health + types
        if layout == "smac":
            obs = 4 + enemies * other + (n - 1) * other + own + 2
            return obs, n * (own + 3 + actions) + enemies * (own + 2)
        # Without the agent's own position, which a state has among all positions.
        obs = (n - 1) * (other + actions) + enemies * other + 4 + 4 + own + actions + n
        return obs + 2, obs + (n - 1) * 3 + enemies * 3 + 2
