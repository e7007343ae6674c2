"""Summaries of experiments: comparisons, verdicts, tables, figures, aggregates."""

import json
import shutil
import tarfile
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from finished_cells import finished, result

from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework.aggregate import (
    aggregate_results,
    normalised_scores,
    score_bounds,
)
from fp3o.experiments.framework.grid import CellResult
from fp3o.experiments.framework.score_table import (
    bold_score,
    difference_text,
    gradient_steps,
    score_table,
    training_minutes,
)
from fp3o.experiments.framework.summary import (
    Comparison,
    Counts,
    claim_verdict,
    compare_variants,
    count_differences,
)
from fp3o.experiments.framework.unlearned import unlearned_notes
from fp3o.reports.data.timing import elapsed_seconds
from fp3o.reports.experiment_report import ExperimentReport
from fp3o.reports.pages.experiment_page import write_experiment_page

COLLECT = Path(__file__).parents[2] / "docs" / "results" / "collect.py"


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
    assert count_differences(results, "ours", "theirs") == (1, 1, 1)
    assert difference_text(results[0], results, "theirs").startswith("+1.0")
    text = compare_variants(results, Comparison("ours", "theirs"))
    assert text[0].startswith("“ours” is better than “theirs” in 1 of 3 cells, worse in 1")
    assert text[1] == "The paper's claim is neither confirmed nor refuted here."


def test_a_claim_needs_most_cells_and_no_contradiction() -> None:
    assert claim_verdict(Counts(3, 0, 2)) == "The paper's claim holds here."
    assert "neither" in claim_verdict(Counts(2, 0, 3)) and "neither" in claim_verdict(
        Counts(4, 1, 0)
    )
    assert "the opposite does" in claim_verdict(Counts(0, 3, 2))


def test_a_claim_of_equality_states_what_it_would_miss() -> None:
    equal = Comparison("ours", "theirs", "equal")
    results = [result("ours", [1.0, 2.0, 3.0]), result("theirs", [1.5, 1.5, 3.0])]
    text = compare_variants(results, equal)
    assert "not distinguishable in 1" in text[0] and text[1].startswith("No difference is found")
    assert "(1.24)" in text[1]
    single = [result("ours", [1.0]), result("theirs", [9.0])]
    assert "not known yet" in compare_variants(single, equal)[0]
    far = [*results, result("ours", [1.0, 1.1, 1.2], "b"), result("theirs", [5.0, 5.2, 5.1], "b")]
    assert "does not hold in all cells" in compare_variants(far, equal)[1]


def test_seeds_without_a_finished_episode_are_left_out() -> None:
    some, none = result("ours", [1.0, None, 3.0]), result("theirs", [None, None, None])
    assert some.by_seed == {0: 1.0, 2: 3.0} and bold_score(none) == "–"
    table = score_table([some, none], {}, "theirs")
    assert [row[4] for row in table.rows] == ["**2** ± 13", "–"]
    assert table.rows[0][6] == "–"


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
        assert item.run
        baselines = {"random": {"return": -30.0, "role": "random"}, "blind": blind}
        return replace(
            item, run=replace(item.run, results={**item.run.results, "baselines": baselines})
        )

    assert score_bounds(evaluated(-9.9)) is None  # no baseline counts as 1
    note = unlearned_notes([evaluated(-9.9)])[0]
    assert note.startswith("a with full sharing is not learned")
    assert "“best blind” (-10)" in note and not unlearned_notes([evaluated(-9.0)])


def test_returns_are_normalised_by_the_baselines_roles() -> None:
    item = result("ours", [-15.0, -10.0, -5.0])
    assert item.run and score_bounds(item) is None
    baselines = {
        "any": {"return": -25.0, "role": "random"}, "still": {"return": -20.0, "role": None},
        "all-knowing": {"return": -5.0, "role": "oracle"},
    }  # fmt: skip
    run = replace(item.run, results={**item.run.results, "baselines": baselines})
    scores = normalised_scores(replace(item, run=run))
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


def test_results_are_collected_for_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page, its figures and its report, and a list of all experiments."""
    folder = tmp_path / "split-laptop"
    (folder / "figures").mkdir(parents=True)
    for name in ("scores.png", "unused.png"):
        (folder / "figures" / name).write_bytes(b"png")
    (folder / "report.html").write_text("<html>")
    (folder / "results.md").write_text("# Split\n\nWords.\n\n![x](figures/scores.png)\n")
    summary = {"name": "split", "scale": "laptop", "cells": 4, "done": 3, "seeds": [5],
               "machines": "a GPU", "verdict": ["One.", "Two."]}  # fmt: skip
    run = folder / "a-full-mappo"
    run.mkdir()
    rows = [{"step": 1, "seed": 0, "kl": 0.5}, {"step": 2, "eval_return": 1 / 3, "kl": [1.0]}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "results.json").write_text("{}")
    (folder / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "into").mkdir()
    script = tmp_path / "into" / "collect.py"
    shutil.copy(COLLECT, script)
    spec = spec_from_file_location("collect", script)
    assert spec and spec.loader
    collect = module_from_spec(spec)
    spec.loader.exec_module(collect)
    collect.add_experiment(folder)
    page = (tmp_path / "into" / "split.md").read_text()
    assert "![x](split/scores.png)" in page and "(split/report.html)" in page
    names = {path.name for path in (tmp_path / "into" / "split").iterdir()}
    assert names == {"scores.png", "report.html", "summary.json", "runs.tar.xz"}
    with tarfile.open(tmp_path / "into" / "split" / "runs.tar.xz") as archive:
        archive.extractall(tmp_path / "data", filter="data")
    data = tmp_path / "data" / "a-full-mappo"
    assert {path.name for path in data.iterdir()} == {"metrics.jsonl", "results.json"}
    row = json.loads((data / "metrics.jsonl").read_text())
    assert row == {"step": 2, "eval_return": 0.3333333}
    assert "| [split](split.md) | laptop | 3 of 4 | 5 | a GPU | One. Two. |" in collect.index_page()
