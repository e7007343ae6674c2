"""Measured quantities: the return, the episode metrics of a task, and custom metrics."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from fp3o.errors import SettingError, nearest, printable
from fp3o.options import show
from fp3o.reports.data.metrics import is_built_in

_OF_ALL_TASKS = ("return", "length")
"""Measures that are entries of a row of `results.json` and not of its episode metrics."""


Direction = Literal["higher", "lower"]
"""Which values of a metric are better."""

BETTER = ("higher", "lower")


class Measure(NamedTuple):
    """A measured quantity: its key in the files of a run and how it is displayed."""

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
    better: Direction | None = None
    """Which values are better, if that is known."""

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


REGISTERED_METRICS: dict[str, Measure] = {}
"""Metrics that this process has declared."""


def register_metric(
    name: str, label: str = "", unit: str = "", better: Direction | None = None
) -> Measure:
    """Declare a custom metric: reports then show it with a label, a unit and its best values.

    Args:
        name: an episode metric of the environment (`gap`, without `eval_` or `episode_`), or the
            key of another metric in `metrics.jsonl`.
        label: title in tables and figures; by default the name.
        unit: written after numbers.
        better: which values are better, `higher` or `lower`.
    """
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 60:
        raise SettingError(f"a metric is named by a text of up to 60 characters, got {show(name)}")
    if name in MEASURES or is_built_in(name):
        raise SettingError(
            f"{name!r} is a metric of fp3o itself, or begins like one; episode metrics are named "
            "without `eval_` and `episode_`"
        )
    if better not in (*BETTER, None):
        raise SettingError(f"unknown direction {show(better)}: {nearest(str(better), BETTER)}")
    measure = _custom_measure(name, {"label": label, "unit": unit, "better": better})
    REGISTERED_METRICS[name] = measure
    return measure


def metrics_record() -> dict[str, dict[str, str | None]]:
    """The declared metrics for `config.json`, since other processes write reports."""
    return {
        name: {"label": measure.title, "unit": measure.unit.strip(), "better": measure.better}
        for name, measure in REGISTERED_METRICS.items()
    }


def declared_measures(metadata: Mapping[str, Any]) -> dict[str, Measure]:
    """The metrics that were declared when a run started, and those of this process."""
    recorded = metadata.get("metrics") or {}
    custom = [name for name in recorded if name not in MEASURES and not is_built_in(name)]
    return {name: _custom_measure(name, recorded[name]) for name in custom} | REGISTERED_METRICS


def _custom_measure(name: str, record: Mapping[str, Any]) -> Measure:
    """A measure from its record, which may come from a file."""
    label = printable(str(record.get("label") or ""), 60) or _title(name).capitalize()
    unit = printable(str(record.get("unit") or ""), 20)
    better = record.get("better")
    return Measure(
        name,
        label,
        f"{label}, {unit}" if unit else label,
        unit=f" {unit}" if unit else "",
        better=better if better in BETTER else None,
    )


def find_measure(name: str) -> Measure:
    """A measure by its key; an unknown key becomes its own title."""
    title = _title(name)
    known = MEASURES.get(name) or REGISTERED_METRICS.get(name)
    return known or Measure(name, title.capitalize(), title)


def _title(name: str) -> str:
    return printable(name, 60).replace("_", " ")
