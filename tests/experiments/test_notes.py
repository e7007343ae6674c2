"""Notes on what a reader has to know of an experiment's cells."""

import json
from dataclasses import replace
from pathlib import Path

from finished_cells import result, with_results

from fp3o.experiments.framework.grid import Cell, CellResult
from fp3o.experiments.framework.paper_results import APPROXIMATE, EXACT, PAPER_MAMUJOCO
from fp3o.experiments.framework.scales import cell_config
from fp3o.experiments.framework.summary import score_summary
from fp3o.experiments.framework.unlearned import doubtful_notes, unlearned_notes
from fp3o.experiments.paper.approximation import time_ratios


def test_variants_that_may_be_no_better_than_the_baseline_are_named() -> None:
    """Their mean exceeds it, their interval does not; not where nothing was learned at all."""
    still = {"still": {"return": 10.0, "stderr": 0.1, "title": "Still", "role": "uninformed"}}
    walks, may_walk, stands = (
        with_results(result(name, values), baselines=still)
        for name, values in (("a", [20.0, 21.0]), ("b", [8.0, 15.0, 11.0]), ("c", [9.0, 9.1]))
    )
    assert doubtful_notes([walks, may_walk, stands]) == [
        "a with full sharing: not shown to exceed the baseline “Still” (10): “b”, “c”."
    ]
    single = with_results(result("b", [10.5]), baselines=still)
    assert doubtful_notes([walks, single]) == [], "a single seed has no interval"
    assert doubtful_notes([stands]) == [] and len(unlearned_notes([stands])) == 1
    without = result("d", [0.0, 0.1])  # an older run, whose task had no baseline yet
    assert "exceed the baseline “Still” (10): “b”." in doubtful_notes([without, walks, may_walk])[0]


def test_fewer_steps_than_the_papers_are_named() -> None:
    """Ant has half of them at the scale for a GPU; tasks without published scores do not count."""
    cells = {
        task: Cell(task, "full", "FP3O", cell_config(task, "full", "gpu", "fp3o"))
        for task in ("mamujoco/Ant-2x4", "mamujoco/HalfCheetah-6x1")
    }
    results = [replace(result("FP3O", [1.0, 2.0]), cell=cell) for cell in cells.values()]
    note = "Fewer steps are planned than in the paper: mamujoco/Ant-2x4 (5M of 10M)."
    assert note in score_summary(paper=PAPER_MAMUJOCO)(results).notes
    assert note not in score_summary()(results).notes


def test_times_are_compared_of_as_many_seeds_and_steps(tmp_path: Path) -> None:
    def cell(variant: str, seeds: int, seconds: float) -> CellResult:
        folder = tmp_path / f"{variant}-{seeds}"
        folder.mkdir(exist_ok=True)
        (folder / "timing.jsonl").write_text(json.dumps({"step": 1, "seconds": seconds}))
        return replace(result(variant, [1.0] * seeds), path=folder)

    exact, ours, fewer = (
        cell(EXACT, 3, 100.0),
        cell(APPROXIMATE, 3, 80.0),
        cell(APPROXIMATE, 2, 9.0),
    )
    assert "takes 0.80 times as long" in time_ratios([exact, ours])[0]
    assert time_ratios([exact, fewer]) == []
    assert time_ratios([exact, with_results(ours, steps=50)]) == [], "it stopped early"
