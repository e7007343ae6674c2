"""Proposals, pruning and results, without any training."""

from pathlib import Path
from typing import Any

import pytest
from small_sweeps import small_settings

from fp3o.errors import SettingError
from fp3o.experiments.sweep import study as study_module
from fp3o.experiments.sweep.queue import TrialQueue
from fp3o.experiments.sweep.study import FAILED, FINISHED, PRUNED, SweepStudy, check_packages


def quality(params: dict[str, Any]) -> float:
    """Best at a clip range of 0.4."""
    return params["clip_range"]


def run_study(study: SweepStudy, trials: int) -> list[Any]:
    """All trials, with an evaluation after each third of training."""
    for _ in range(trials):
        number = study.ask()
        score = quality(study.params(number))
        for evaluation in (1, 2, 3):
            if study.report(number, evaluation, score) and evaluation < 3:
                study.tell(number, PRUNED, [score])
                break
        else:
            study.tell(number, FINISHED, [score, score], steps=9, seconds=1.0)
    return study.records()


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_journal_that_was_cut_back_proposes_the_same(sampler: Any, tmp_path: Path) -> None:
    settings = small_settings(sampler=sampler, trials=20)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    whole = run_study(SweepStudy(settings, tmp_path / "whole"), 20)
    run_study(SweepStudy(settings, tmp_path / "cut"), 12)
    size = (tmp_path / "cut" / "journal.log").stat().st_size
    run_study(SweepStudy(settings, tmp_path / "cut"), 5)
    with (tmp_path / "cut" / "journal.log").open("r+b") as file:
        file.truncate(size)
    (tmp_path / "cut" / "journal.log.lock").symlink_to("left by a process that was killed")
    again = run_study(SweepStudy(settings, tmp_path / "cut"), 8)
    assert [row.params for row in again] == [row.params for row in whole]
    assert len({str(row.params) for row in whole}) == 20


@pytest.mark.parametrize("pruner", ["median", "halving", "hyperband", "none"])
def test_bad_trials_are_pruned(pruner: Any) -> None:
    records = run_study(SweepStudy(small_settings(pruner=pruner), None), 40)
    states = {row.state for row in records}
    assert states == ({FINISHED} if pruner == "none" else {FINISHED, PRUNED})
    if pruner != "none":
        mean = {
            state: sum(quality(x.params) for x in records if x.state == state)
            / sum(x.state == state for x in records)
            for state in states
        }
        assert mean[PRUNED] < mean[FINISHED]


def test_the_sampler_learns_and_knows_what_matters() -> None:
    study = SweepStudy(small_settings(pruner="none"), None)
    records = run_study(study, 40)
    late = [quality(row.params) for row in records[20:]]
    assert sum(late) / len(late) > 0.3  # 0.225 at random
    importances = study.importances()
    assert importances["clip_range"] > 3 * importances["actor_lr"]
    best = study.best()
    assert best and best.score == max(quality(row.params) for row in records)
    smallest = SweepStudy(small_settings(pruner="none", minimise=True), None)
    records = run_study(smallest, 5)
    best = smallest.best()
    assert best and best.score == min(quality(row.params) for row in records)


def test_settings_that_do_not_go_together_are_failed_trials() -> None:
    """Each value fits the other settings, but 7 minibatches do not divide 24 samples."""
    settings = small_settings("minibatches=1,4 rollout=6,7", sampler="grid", trials=None)
    queue = TrialQueue(SweepStudy(settings, None))
    while (key := queue.choose_program()) is not None:
        number = queue.next(key)
        assert number is not None
        queue.end(number, FINISHED, [1.0])
    states = {tuple(row.params.values()): row for row in queue.study.records()}
    assert len(states) == 4
    failed = [row for row in states.values() if row.state == FAILED]
    assert all("minibatches" in row.reason for row in failed)


def test_trials_are_proposed_as_late_as_possible() -> None:
    settings = small_settings(trials=6, parallel=3)
    queue = TrialQueue(SweepStudy(settings, None))
    key = queue.choose_program()
    assert key and queue.proposed == 3
    taken = [queue.next(key) for _ in range(4)]
    assert taken == [0, 1, 2, 3] and queue.proposed == 4 and queue.waiting == []


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(study_module, "import_module", nothing)
    with pytest.raises(ImportError, match=r"pip install 'fp3o\[sweep\]'"):
        check_packages("tpe")
    monkeypatch.setattr(study_module, "import_optuna", lambda: None)
    with pytest.raises(SettingError, match="pip install cmaes"):
        check_packages("cmaes")
