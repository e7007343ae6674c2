"""The table that `fp3o evaluate` prints."""

from typing import Any

import pytest
from rich.console import Console

from fp3o.cli.runs import _evaluation_table

BATTLE = {"won": 1.0, "dead_allies": 7.6875, "dead_enemies": 6.25, "damage_dealt": 1065.4,
          "healed": 3.4140625}  # fmt: skip


def test_the_numbers_of_battles_fit_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"return": 15.609, "stderr": 0.727, "std": 2.91, "length": 82.44}
    none: dict[str, Any] = {**dict.fromkeys(row), "episode_metrics": dict.fromkeys(BATTLE)}
    battle = {**row, "episode_metrics": BATTLE}
    policies = [{"name": "seed-0 last", **battle}, {"name": "seed-1 last", **none}]
    result = {"task": "smac/3s5z", "episodes": 16, "deterministic": True, "policies": policies}
    Console(width=80).print(_evaluation_table({**result, "baselines": {"kite": battle}}))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[4] == "policy agent std length won allies enemies dealt healed"
    numbers = "15.609 ± 0.727 2.91 82.4 100.0 % 7.69 6.25 1065 3.41"
    assert lines[6] == f"seed-0 last {numbers}" and lines[9] == f"kite {numbers}"
    assert lines[7] == "seed-1 last – – – – – – – –"  # no episode has ended
