"""Summaries of experiments: comparisons, verdicts, tables, figures, aggregates."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from finished_cells import finished, result, with_results
from latex_check import table_problems

from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework.aggregate import (
    aggregate_results,
    normalised_scores,
    score_bounds,
)
from fp3o.experiments.framework.cell_differences import (
    FP3O_AGAINST_MAPPO,
    Comparison,
    compare_cells,
    count_signs,
)
from fp3o.experiments.framework.comparison_table import comparison_table
from fp3o.experiments.framework.grid import CellResult
from fp3o.experiments.framework.paper_results import PaperScore
from fp3o.experiments.framework.scales import FP3O_HALF, MAPPO_TWICE
from fp3o.experiments.framework.score_table import (
    bold_score,
    gradient_steps,
    score_table,
    training_minutes,
)
from fp3o.experiments.framework.summary import score_summary
from fp3o.experiments.framework.unlearned import unlearned_notes
from fp3o.experiments.framework.verdicts import compare_variants
from fp3o.reports.data.timing import elapsed_seconds
from fp3o.reports.experiment_report import ExperimentReport
from fp3o.reports.pages.experiment_page import write_experiment_page

CLAIM = Comparison("ours", "theirs")


@pytest.mark.parametrize("name", all_experiments())
def test_every_summary_runs_on_finished_cells(name: str, tmp_path: Path) -> None:
    """Without training: run directories of tiny synthetic cells, and the pages made of them."""
    experiment = find_experiment(name)
    cells = [cell for cell in experiment.cells("laptop") if cell.config.learner.sharing != "auto"]
    results = [finished(cell, tmp_path) for cell in _few(cells)]
    summary = experiment.summarise(results)
    assert summary.verdict and all(summary.verdict) and summary.tables and summary.figures
    for table in summary.tables:
        assert all(len(row) == len(table.head) for row in table.rows)
    report = ExperimentReport(
        name, experiment.title, experiment.question, experiment.claim, summary.verdict, "x",
        "smoke", summary.tables, summary.figures, summary.notes,
    )  # fmt: skip
    write_experiment_page(report, tmp_path / "page")
    assert table_problems((tmp_path / "page" / "tables.tex").read_text()) == []
    assert experiment.summarise([]).verdict == ["No cell is finished yet."]


def _few(cells: list) -> list:
    """The cells of the first task, under two sharings at most."""
    sharings = [*dict.fromkeys(cell.sharing for cell in cells)][:2]
    task = cells[0].task
    return [cell for cell in cells if cell.task == task and cell.sharing in sharings]


def test_comparisons_are_paired_by_seed() -> None:
    """Seeds differ by more than the variants, and the difference is found nevertheless."""
    base = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    noise = np.array([0.1, -0.1, 0.2, 0.0, -0.2])
    results = [
        result("ours", base + 1.0 + noise, "a"), result("theirs", base, "a"),
        result("ours", base - 1.0 + noise, "b"), result("theirs", base, "b"),
        result("ours", base + 5 * noise, "c"), result("theirs", base, "c"),
        result("ours", base, "d"),
    ]  # fmt: skip
    differences = compare_cells(results, CLAIM)
    assert count_signs(differences)[:3] == (1, 1, 1)
    (table,) = comparison_table([differences])
    assert [row[table.head.index("of the scores")] for row in table.rows] == [
        "+1.00 ± 0.20", "-1.00 ± 0.20", "+0.00 ± 0.98",
    ]  # fmt: skip
    text = compare_variants(results, CLAIM)
    assert text[0].startswith("“ours” is higher than “theirs” in 1 of 3 cells, lower in 1; after")
    assert "refuted here: “ours” is lower in 1 of 3 cells" in text[1]


def test_seeds_without_a_finished_episode_are_left_out() -> None:
    some, none = result("ours", [1.0, None, 3.0]), result("theirs", [None, None, None])
    assert some.by_seed == {0: 1.0, 2: 3.0} and bold_score(none) == "–"
    table = score_table([some, none], {})
    assert [row[table.head.index("ours")] for row in table.rows] == ["**2** ± 13", "–"]
    assert [item.excluded for item in compare_cells([some, none], CLAIM)] == ["one seed"]


def test_gradient_steps_count_iterations_that_were_not_logged() -> None:
    item = result("ours", [1.0, 2.0])
    lines = {k: {"step": 50 * k, "seed": 0, "iteration": k, "actor_steps": 4} for k in (5, 10)}
    assert item.run
    metadata = {"settings": {"num_envs": 2, "rollout": 25}}
    run = replace(item.run, metrics={0: lines}, metadata=metadata)
    assert gradient_steps(replace(item, run=run)) == 40


def test_restarts_are_counted_in_the_training_time(tmp_path: Path) -> None:
    """One rule for tables and exports: a process that starts again counts from zero."""
    item = replace(result("ours", [1.0]), path=tmp_path)
    # The second process repeats step 200 and is slower than the first was.
    times = [(100, 60.0), (200, 120.0), (200, 150.0), (300, 240.0)]
    lines = [json.dumps({"step": step, "seconds": seconds}) for step, seconds in times]
    (tmp_path / "timing.jsonl").write_text("\n".join([*lines, '{"step": 4']))
    assert elapsed_seconds(tmp_path) == {100: 60.0, 200: 270.0, 300: 360.0}
    assert training_minutes(item) == 6.0


def test_win_rates_are_in_percent() -> None:
    item = result("ours", [0.9, 1.0, 0.95], won=True)
    assert item.measure.name == "won"
    np.testing.assert_allclose(item.seeds, [90.0, 100.0, 95.0])
    assert bold_score(item).startswith("**95**") and bold_score(item).endswith("%")


def test_unlearned_tasks_are_reported() -> None:
    """No better than an uninformed policy: differences there are those of early learning."""

    def evaluated(value: float) -> CellResult:
        item = result("ours", [value, value + 0.1, value - 0.1])
        blind = {"return": -10.0, "stderr": 0.1, "title": "best blind", "role": "uninformed"}
        baselines = {"random": {"return": -30.0, "role": "random"}, "blind": blind}
        return with_results(item, baselines=baselines)

    assert score_bounds(evaluated(-9.9)) is None  # no baseline counts as 1
    note = unlearned_notes([evaluated(-9.9)])[0]
    assert note.startswith("a with full sharing is not learned")
    assert "“best blind” (-10)" in note and not unlearned_notes([evaluated(-9.0)])


def test_returns_are_normalised_by_the_baselines_roles() -> None:
    item = result("ours", [-15.0, -10.0, -5.0])
    assert score_bounds(item) is None
    baselines = {
        "any": {"return": -25.0, "role": "random"}, "still": {"return": -20.0, "role": None},
        "all-knowing": {"return": -5.0, "role": "oracle"},
    }  # fmt: skip
    scores = normalised_scores(with_results(item, baselines=baselines))
    assert scores is not None
    np.testing.assert_allclose(scores, [0.5, 0.75, 1.0])


def test_aggregates_over_tasks() -> None:
    """Win rates are comparable; returns need a planner and random actions."""
    results = [
        result(name, np.array(wins) / 100, task, won=True)
        for name, task, wins in (
            ("ours", "a", (90, 100, 95)), ("theirs", "a", (10, 20, 15)),
            ("ours", "b", (50, 60, 55)), ("theirs", "b", (40, 50, 45)),
            ("half", "a", (1, 2, 3)),
        )
    ]  # fmt: skip
    tables, figures = aggregate_results(results, "theirs")
    # The third variant lacks a task.
    assert [row[0] for row in tables[0].rows] == ["ours", "theirs"]
    assert tables[0].rows[0][3].startswith("0.750 [") and tables[0].rows[0][-1].startswith("0.9")
    assert [figure.name for figure in figures] == ["profiles"]
    assert aggregate_results([result("ours", [1.0, 2.0])], "") == ([], [])


def test_aggregates_leave_cells_out_that_do_not_count() -> None:
    """Those that are not learned, below the planned steps, or won by all; the notes say so."""
    results = [
        result(name, np.array(wins) / 100, task, won=True)
        for task, wins in (("a", (90, 80)), ("b", (50, 60)), ("c", (100, 100)), ("d", (40, 50)))
        for name in ("ours", "theirs")
    ]  # fmt: skip
    results[-1] = with_results(results[-1], steps=50)
    tables, _ = aggregate_results(results, "theirs")
    assert tables[0].rows[0][3].startswith("0.700 [")
    summary = score_summary(CLAIM)(results)
    assert "Left out of all tasks together, at the ceiling: c with full sharing." in summary.notes
    assert any("below the planned steps: d with full sharing." in note for note in summary.notes)
    assert any(note.startswith("Fewer steps than planned: d-full") for note in summary.notes)


def test_the_finding_has_the_claim_in_short() -> None:
    """The paper's numbers, ours, and the controls, which have no claim."""
    noise = np.array([0.1, 0.0, -0.1])
    values = {"FP3O": 3.0 + noise, "MAPPO": 1.0 - noise, MAPPO_TWICE: 4.0 + 2 * noise}
    results = [result(name, scores) for name, scores in values.items()]
    results.append(result(FP3O_HALF, [2.0, 2.0, 2.0]))
    paper = {
        ("a", "full", "FP3O"): PaperScore(5.0, 1.0),
        ("a", "full", "MAPPO"): PaperScore(3.0, 1.0),
    }
    key_result = score_summary(*FP3O_AGAINST_MAPPO, paper=paper)(results).key_result
    assert key_result
    assert key_result.published.startswith("higher in 1 of 1 cell, by 2")
    higher, lower = (
        f"higher in {1 - k} of 1 cell, lower in {k} (Holm: {1 - k} and {k}): a full" for k in (0, 1)
    )
    assert key_result.ours == f"FP3O against MAPPO: {higher} +2.00 ± 0.50."
    assert key_result.control.startswith(f"FP3O against {MAPPO_TWICE}: {lower} -1.00 ± ")
    assert f"; {FP3O_HALF} against MAPPO: {higher} +1.00 ± " in key_result.control
    assert key_result.verdict == (
        "The paper's claim holds in 1 cell that counts. At equal gradient steps “FP3O” is higher "
        "in 0 of 1 cell and lower in 1 (Holm: 0 and 1)."
    )
    assert score_summary()(results).key_result is None
    words = score_summary(*FP3O_AGAINST_MAPPO, published="a figure")(results).key_result
    assert words and words.published == "a figure"
