"""Quantities measured per episode: the return, and the episode metrics of a task."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from fp3o.errors import printable

_OF_ALL_TASKS = ("return", "length")
"""Measures that are entries of a row of `results.json` and not of its episode metrics."""


class Measure(NamedTuple):
    """A quantity measured per episode: its key in the files of a run and how it is displayed."""

    name: str
    title: str
    """Title in figures and tables."""
    axis: str
    """Label of an axis."""
    scale: float = 1.0
    """Factor from the numbers in the files to those displayed."""
    unit: str = ""
    """Written after a number."""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    """Smallest and largest possible value, as displayed."""

    @property
    def is_rate(self) -> bool:
        """Whether it is the share of episodes in which something happened."""
        return math.isfinite(self.bounds[1])

    def value(self, row: Mapping[str, Any]) -> float:
        """The number in a row of `results.json`; NaN if the row has none."""
        numbers = row if self.name in _OF_ALL_TASKS else row.get("episode_metrics") or {}
        value = numbers.get(self.name)
        return self.scale * value if isinstance(value, int | float) else math.nan

    def standard_error(self, row: Mapping[str, Any], episodes: int) -> float:
        """Standard error over the episodes of a row of `results.json`; NaN if unknown."""
        if self.name == "return":
            return math.nan if row.get("stderr") is None else float(row["stderr"])
        if not self.is_rate or not episodes:
            return math.nan
        # Agresti-Coull: two more successes and two more failures, so that 100 % has an error too.
        rate = (self.value(row) / self.scale * episodes + 2) / (episodes + 4)
        rate = min(max(rate, 0.0), 1.0) if math.isfinite(rate) else math.nan  # a damaged file
        return self.scale * math.sqrt(rate * (1 - rate) / (episodes + 4))


RETURN = Measure("return", "Return", "return per agent")

WIN_RATE = Measure("won", "Win rate", "battles won", 100.0, " %", (0.0, 100.0))

KILLS = Measure("dead_enemies", "Kills", "dead enemies per battle")

MEASURES = {
    measure.name: measure
    for measure in (
        RETURN,
        WIN_RATE,
        KILLS,
        Measure("dead_allies", "Dead allies", "dead allies per battle"),
        Measure("damage_dealt", "Damage dealt", "health and shields that enemies lost, in points"),
        Measure("healed", "Healed", "health and shields that enemies got back, in points"),
        Measure("length", "Length", "steps per episode"),
    )
}
"""Measures with a title; others are titled by their key."""


def find_measure(name: str) -> Measure:
    """A measure by its key; an unknown key becomes its own title."""
    title = printable(name, 60).replace("_", " ")
    return MEASURES.get(name) or Measure(name, title.capitalize(), title)
