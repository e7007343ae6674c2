"""Simulate the schedules of docs/scale.md, and write its table.

    python tests/support/leased_cells_table.py

The numbers of every schedule are kept in `docs/scale/schedules.json`, from which the table is made.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cell_schedules import NO_FAULTS, Faults, Schedule, Setting
from leased_cells import EXCLUDED, Protocol

DOCS = Path(__file__).parents[2] / "docs"
PAGE, NUMBERS = DOCS / "scale.md", DOCS / "scale" / "schedules.json"
BEGIN = "<!-- schedules: written by tests/support/leased_cells_table.py -->\n"
END = "<!-- end of schedules -->\n"
SEEDS = 10

PROTOCOL = Protocol(segments=25, iterations=100, replayed=0.1)
"""Cells of 2,500 iterations in segments of six minutes."""

_HOUR = 3600.0
_DESKTOP = Faults(12 * _HOUR, _HOUR, 6 * _HOUR, 0.5 * _HOUR, lost=0.002, damaged=0.05)
_ALL_HONEST = Setting(
    PROTOCOL, faults=NO_FAULTS, cells=20, kinds=("arm",), honest=10, dishonest=0, broken=0, owners=1
)
_MIXED = replace(_ALL_HONEST, faults=_DESKTOP, honest=8, dishonest=1, broken=1)


def _replaying(share: float) -> Setting:
    return replace(_MIXED, protocol=replace(PROTOCOL, replayed=share))


SETTINGS = {
    "nothing fails": _ALL_HONEST,
    "desktop computers": replace(_ALL_HONEST, faults=_DESKTOP),
    "the same, bad network": replace(_ALL_HONEST, faults=replace(_DESKTOP, lost=0.04)),
    "preemptible machines": replace(
        _ALL_HONEST, faults=Faults(_HOUR, 300.0, 24 * _HOUR, 600.0, lost=0.002)
    ),
    "desktop computers, one dishonest and one broken": _MIXED,
    "the same, half of the segments replayed": _replaying(0.5),
    "the same, all replayed": _replaying(1.0),
}

LIES = ("wrong", "drawn", "accepted", "excluded")
COSTS = ("lost", "duplicate", "rejected", "replayed", "other")
HEAD = (
    "| | time | lost | duplicate | rejected | replayed | compiling, transfers | "
    "wrong segments | drawn | accepted | excluded |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
)

Numbers = Mapping[str, float]


def simulate(setting: Setting, seed: int) -> Numbers:
    """The numbers of one schedule, in which all laws must hold."""
    schedule = Schedule(setting, seed).run()
    work, laws = schedule.work, schedule.laws
    assert not laws.broken, laws.broken
    workers = setting.honest * len(setting.kinds) + setting.dishonest + setting.broken
    seconds = sum(work.seconds[name] for name in ("Prepare", "Finish", "Transfer"))
    return {
        "hours": round(schedule.events.now / _HOUR, 3),
        "ideal": round(work.useful * setting.times.iteration / workers / _HOUR, 3),
        "useful": work.useful,
        "lost": work.lost,
        "duplicate": work.duplicate,
        "rejected": work.rejected,
        "replayed": work.replayed,
        "other": round(seconds / setting.times.iteration),
        "wrong": len(laws.decided),
        "drawn": sum(drawn for drawn, _ in laws.decided.values()),
        "accepted": sum(accepted for _, accepted in laws.decided.values()),
        "dishonest": len(schedule.dishonest),
        "excluded": sum(EXCLUDED + name in schedule.store for name in schedule.dishonest),
    }


def table_row(name: str, schedules: Sequence[Numbers]) -> str:
    """The sums over schedules; work as a share of the useful iterations."""
    total = {key: sum(numbers[key] for numbers in schedules) for key in schedules[0]}
    shares = (f"{100 * total[key] / total['useful']:.1f} %" for key in COSTS)
    wrong = (f"{total[key]:,}" if total["dishonest"] else "-" for key in LIES)
    cells = (f"{total['hours'] / total['ideal']:.2f}", *shares, *wrong)
    return f"| {name} | {' | '.join(cells)} |\n"


def page_with_table(page: str, numbers: Mapping[str, Sequence[Numbers]]) -> str:
    """The page with the text between its two markers replaced."""
    rows = "".join(table_row(name, schedules) for name, schedules in numbers.items())
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{HEAD}{rows}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Simulate everything and write the numbers and the table."""
    numbers: dict[str, list[Numbers]] = {}
    for name, setting in SETTINGS.items():
        print(f"{SEEDS} schedules: {name} ...", file=sys.stderr)
        numbers[name] = [simulate(setting, seed) for seed in range(SEEDS)]
    NUMBERS.parent.mkdir(exist_ok=True)
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")
    PAGE.write_text(page_with_table(PAGE.read_text(), numbers))
    print(HEAD + "".join(table_row(*row) for row in numbers.items()), end="")


if __name__ == "__main__":
    main()
