"""Battles in experiments: those that nobody wins are judged by kills; the area under the curve."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fp3o.experiments.framework.grid import Cell, CellResult
from fp3o.experiments.framework.paper_results import PAPER_SMAC
from fp3o.experiments.framework.scales import cell_config
from fp3o.experiments.framework.score_table import battle_table, score_table
from fp3o.experiments.framework.summary import Comparison, compare_variants, score_summary
from fp3o.experiments.framework.unlearned import judge_by_kills, unlearned_notes
from fp3o.reports.data.record import RunRecord
from fp3o.reports.stats.intervals import mean_over_training

NOISE = np.array([-0.1, 0.0, 0.1])
"""Kills of three seeds, beyond their mean."""


def battle(
    variant: str, task: str, wins: Sequence[float], kills: float, chance: tuple[float, float]
) -> CellResult:
    """A finished cell of three seeds; `chance` are the win rate and the kills of random actions."""

    def metrics(won: float, dead: float) -> dict[str, float]:
        return {"won": won, "dead_allies": 6.0, "dead_enemies": dead}

    ends = [metrics(won, kills + noise) for won, noise in zip(wins, NOISE, strict=True)]
    last = [{"seed": k, "return": 9.0, "episode_metrics": x} for k, x in enumerate(ends)]
    random = {"return": 4.0, "role": "random", "episodes": 1000, "title": "random actions"}
    baselines = {"random": {**random, "episode_metrics": metrics(*chance)}}
    lines = {
        seed: {
            k: {"step": step, **{f"eval_{name}": share * x for name, x in end.items()}}
            for k, (step, share) in enumerate(((0, 0.0), (100, 0.5), (400, 1.0)))
        }
        for seed, end in enumerate(ends)
    }
    run = RunRecord(Path(variant), {}, lines, {"last": last, "baselines": baselines}, variant)
    config = cell_config(f"smac/{task}", "full", "smoke", "fp3o")
    return CellResult(Cell(f"smac/{task}", "full", variant, config), Path("x"), run)


def cells() -> list[CellResult]:
    """One map that is learned, two that nobody wins, and one that random actions win."""
    return [
        battle("FP3O", "3s5z", (0.9, 0.8, 0.9), 7.8, (0.0, 1.0)),
        battle("MAPPO", "3s5z", (0.3, 0.3, 0.2), 5.0, (0.0, 1.0)),
        battle("FP3O", "6h_vs_8z", (0.0, 0.0, 0.0), 4.0, (0.0, 0.5)),
        battle("MAPPO", "6h_vs_8z", (0.0, 0.0, 0.0), 2.5, (0.0, 0.5)),
        battle("FP3O", "corridor", (0.0, 0.0, 0.0), 3.0, (0.0, 6.0)),
        battle("MAPPO", "corridor", (0.0, 0.0, 0.0), 2.0, (0.0, 6.0)),
    ]


def test_battles_that_nobody_wins_are_judged_by_kills() -> None:
    """Where kills exceed those of random actions; else nothing was learned."""
    judged = judge_by_kills(cells())
    assert [item.measure.name for item in judged] == ["won"] * 2 + ["dead_enemies"] * 4
    assert [item.measure.unit for item in judged[1:4]] == [" %", *[" kills of 8"] * 2]
    np.testing.assert_allclose(judged[3].seeds, 2.5 + NOISE)
    assert [item.measure for item in judge_by_kills(judged)] == [item.measure for item in judged]
    text, claim = compare_variants(judged, Comparison("FP3O", "MAPPO"))
    assert text.startswith("“FP3O” is higher than “MAPPO” in 2 of 2 cells, lower in 0; after Holm")
    assert (
        " 1 of these cells was not won by anybody, and judged by kills: higher in 1, lower in 0. "
        "Not counted: 1 not learned."
    ) in text
    assert text.endswith("is higher in 2 of 2 cells and lower in 0 (Holm: 2 and 0).")
    assert claim == "The paper's claim holds in all 2 cells that count."
    assert unlearned_notes(judged) == [
        "smac/6h_vs_8z with full sharing is not won by anybody: judged by kills of 8. The best "
        "variant exceeds the baseline “random actions” (0.5).",
        "smac/corridor with full sharing is not learned at this scale: no variant exceeds the "
        "baseline “random actions” (6 kills of 24). It is excluded from the verdict.",
    ]


def test_wins_that_random_actions_have_as_well_are_no_learning() -> None:
    """The error of the baseline's win rate counts, not that of its return."""
    chance, wins = (0.5, 20.0), (0.51, 0.52, 0.5)
    kills = {"FP3O": 22.0, "MAPPO": 21.0}
    pair = [battle(name, "bane_vs_bane", wins, kills[name], chance) for name in kills]
    judged = judge_by_kills(pair)
    assert unlearned_notes(judged) == [
        "smac/bane_vs_bane with full sharing is not won more often than by random actions: judged "
        "by kills of 24. The best variant exceeds the baseline “random actions” (20)."
    ]
    assert "was not won more often than" in compare_variants(judged, Comparison("FP3O", "MAPPO"))[0]
    better = [*pair, battle("IPPO", "bane_vs_bane", (0.6, 0.6, 0.6), 22.0, chance)]
    assert judge_by_kills(better) == better


def test_without_counted_kills_a_cell_is_excluded() -> None:
    pair = cells()[2:4]
    for item in pair:
        assert item.run
        for row in item.run.results["last"]:
            del row["episode_metrics"]["dead_enemies"]
    assert judge_by_kills(pair) == pair
    assert "excluded" in unlearned_notes(pair)[0]
    assert compare_variants(pair, Comparison("FP3O", "MAPPO")) == [
        "“FP3O” against “MAPPO”: no cell counts. Not counted: 1 not learned."
    ]


def test_the_summary_names_what_is_judged_by_kills() -> None:
    """In the verdict, the table, the notes and the figures."""
    summary = score_summary(Comparison("FP3O", "MAPPO"), paper=PAPER_SMAC)(cells())
    assert "judged by kills: higher in 1" in summary.verdict[0]
    assert any("not won by anybody: judged by kills of 8" in note for note in summary.notes)
    differences, scores, battles = summary.tables[:3]
    rows = [dict(zip(scores.head, row, strict=True)) for row in scores.rows]
    assert [row["ours"] for row in rows[1:4]] == [
        "**27** ± 14 %", "**4.00** ± 0.25 kills of 8", "**2.50** ± 0.25 kills of 8",
    ]  # fmt: skip
    places = [differences.head.index(name) for name in ("of the scores", "judgement")]
    assert [[row[k] for k in places] for row in differences.rows[1:]] == [
        ["+1.5000 ± 0.0000 kills of 8", "higher"], ["+1 ± 0 kills of 24", "not learned"],
    ]  # fmt: skip
    assert rows[2]["paper"] == "90.6 ± 6.6 %" and rows[2]["median of last ten"] == "0.0 (0.0) %"
    assert "Kills, per battle, replace win rates" in scores.caption
    assert battles.title == "What happened in a battle"
    names = [figure.name for figure in summary.figures]
    assert names[-3:] == ["curves_3s5z", "kills_6h_vs_8z", "kills_corridor"]
    assert names[0] == "differences"
    # All tasks together are compared by win rates, where they were learned: here in one task.
    assert not any(table.title == "All tasks together" for table in summary.tables)
    assert not any(note.startswith("Left out of all tasks together") for note in summary.notes)


def test_what_happened_in_the_battles_of_every_cell() -> None:
    """Runs of earlier versions have no damage and no length."""
    (table,) = battle_table(cells()[2:4])
    assert table.head[3:] == [
        "win rate", "kills", "dead allies", "damage dealt", "healed", "length",
    ]  # fmt: skip
    assert table.rows[0][2:] == ["FP3O", "0 ± 0 %", "4.00 ± 0.25", "6 ± 0", "–", "–", "–"]


def test_the_area_under_the_curve() -> None:
    """By hand: 100 steps at a mean of a quarter of the end, 300 at three quarters: 5/8 of it."""
    step = np.array([0.0, 100.0, 400.0])
    values = np.array([[0.0, 4.0, 8.0], [np.nan, 2.0, 4.0], [np.nan, 1.0, np.nan]])
    np.testing.assert_allclose(mean_over_training(step, values), [5.0, 3.0, np.nan])
    judged = judge_by_kills(cells())
    table = score_table(judged, {})
    areas = [row[table.head.index("area under the curve")] for row in table.rows]
    assert areas[0].startswith("54.2 ± ") and areas[0].endswith(" %")
    assert areas[2] == "2.50 ± 0.16 kills of 8"
