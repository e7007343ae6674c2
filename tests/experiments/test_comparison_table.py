"""The table of differences: one row per cell of a comparison."""

import numpy as np
from finished_cells import result

from fp3o.experiments.framework.cell_differences import Comparison, compare_cells
from fp3o.experiments.framework.comparison_table import (
    comparison_table,
    steps_to_threshold_differences,
)
from fp3o.experiments.framework.paper_results import PaperScore

CLAIM = Comparison("ours", "theirs")

NOISE = np.array([-0.1, 0.0, 0.1])
"""What differs between three seeds."""


def test_the_table_of_differences() -> None:
    """One row per cell, whether it counts or not; what is unknown is a dash."""
    rising = [[0.0, 8.0 + x, 10.0 + x] for x in NOISE]
    late = [[0.0, 4.0 + x, 10.0 + x] for x in NOISE]
    ends = 10.0 + NOISE
    cells = [
        result("ours", ends + 1.0 + NOISE, curves=rising, actor_steps=8),
        result("theirs", ends, curves=late, actor_steps=4),
        result("ours", ends, "b", curves=late), result("theirs", ends, "b", curves=late),
        result("ours", ends + 1.0 + NOISE, "c"), result("theirs", ends, "c"),
    ]  # fmt: skip
    paper = {
        ("a", "full", name): PaperScore(x, 1.0) for name, x in (("ours", 3.0), ("theirs", 1.0))
    }
    (table,) = comparison_table([compare_cells(cells, CLAIM, paper)])
    rows = [dict(zip(table.head, row, strict=True)) for row in table.rows]
    assert [row["task"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["of the scores"] == "+1.00 ± 0.25" and rows[0]["p (Holm)"] == "0.007"
    assert rows[0]["published"] == "+2" and rows[2]["published"] == "–"
    assert rows[0]["gradient steps"] == "16 / 8" and rows[0]["judgement"] == "higher"
    assert rows[0]["of the areas under the curve"].startswith("+2")
    # To 90 % of 10: after 50 + 1 / 2 * 50 steps, and after 50 + 5 / 6 * 50.
    assert rows[0]["of the steps to 90 %"].startswith("-16.7 ± ")
    assert rows[0]["probability of improvement"] == "1 [1, 1]"
    assert rows[1]["judgement"] == "equal in every bit"
    assert [*rows[1].values()][3:9] == ["–"] * 6
    assert rows[2]["of the areas under the curve"] == "–" == rows[2]["of the steps to 90 %"]
    assert comparison_table([]) == [] == comparison_table([[]])
    (plain,) = comparison_table([compare_cells(cells[4:], CLAIM)])
    assert "published" not in plain.head and plain.text_columns == 3


def test_steps_to_the_common_threshold() -> None:
    """Seed by seed; NaN where one of both never reaches it, None where nothing rises."""
    ours = result(
        "ours", [1.0] * 3, curves=[[0.0, 10.0, 10.0], [0.0, 5.0, 10.0], [0.0, 10.0, 10.0]]
    )
    theirs = result(
        "theirs", [1.0] * 3, curves=[[0.0, 0.0, 10.0], [0.0, 5.0, 10.0], [0.0, 0.0, 4.0]]
    )
    # Threshold: 90 % of 8. Ours reaches it after 36 and 72 of 100 steps, theirs after 86 and 72.
    differences = steps_to_threshold_differences(ours, theirs)
    assert differences is not None
    np.testing.assert_allclose(differences, [-50.0, 0.0, np.nan])
    falling = result("theirs", [1.0] * 3, curves=[[4.0, 2.0, 1.0]] * 3)
    assert steps_to_threshold_differences(ours, falling) is None
    assert steps_to_threshold_differences(ours, result("theirs", [1.0] * 3)) is None
