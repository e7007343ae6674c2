"""What episodes end with: the return, and the outcomes that some tasks have beside it."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Measure(NamedTuple):
    """A number of an episode: its key in the files of a run, and how people read it."""

    name: str
    title: str
    """What a figure or a table calls it."""
    axis: str
    """What an axis calls it."""
    scale: float = 1.0
    """From the files' numbers to those that are shown."""
    unit: str = ""
    """Written behind a number."""
    ends: tuple[float, float] = (-math.inf, math.inf)
    """The least and the most it can be, as shown."""

    @property
    def share(self) -> bool:
        """Whether it is the share of episodes in which something happened."""
        return math.isfinite(self.ends[1])

    def of(self, row: Mapping[str, Any]) -> float:
        """The number in a row of `results.json`; NaN: the row has none."""
        rows = row if self.name == "return" else row.get("outcomes") or {}
        value = rows.get(self.name)
        return self.scale * value if isinstance(value, int | float) else math.nan

    def error(self, row: Mapping[str, Any], episodes: int) -> float:
        """Its standard error over the episodes of a row of `results.json`; NaN: not known."""
        if self.name == "return":
            return math.nan if row.get("stderr") is None else float(row["stderr"])
        if not self.share or not episodes:
            return math.nan
        # Four more episodes, half of them won: a team that won all has an error, too.
        share = (self.of(row) / self.scale * episodes + 2) / (episodes + 4)
        return self.scale * math.sqrt(share * (1 - share) / (episodes + 4))


RETURN = Measure("return", "Return", "return per agent")

WON = Measure("won", "Win rate", "battles won", 100.0, " %", (0.0, 100.0))

MEASURES = {
    measure.name: measure
    for measure in (
        RETURN,
        WON,
        Measure("dead_allies", "Dead allies", "dead allies at the end of a battle"),
        Measure("dead_enemies", "Dead enemies", "dead enemies at the end of a battle"),
    )
}
"""The numbers that have names here."""


def measure(name: str) -> Measure:
    """A number by its key; an outcome without a name here is called by its key."""
    words = name.replace("_", " ")
    return MEASURES.get(name) or Measure(name, words.capitalize(), words)
