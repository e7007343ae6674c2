"""The report of a sweep: what it says and draws."""

import re
from pathlib import Path

import pytest
from small_sweeps import small_settings

from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.report import trials_table, verdict_text, write_sweep_report
from fp3o.experiments.sweep.result import SweepResult
from fp3o.experiments.sweep.study import FAILED, FINISHED, PRUNED, SweepStudy
from fp3o.reports.pages import experiment_page

SEARCH = "actor_lr=1e-4..1e-1:log clip_range=0.1..0.4 epochs=1..4 algorithm=mappo,fp3o"


@pytest.fixture(autouse=True)
def quick_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures as files take seconds each."""

    def touch(figure: object, stem: Path) -> None:
        stem.parent.mkdir(exist_ok=True)
        stem.with_suffix(".png").touch()

    monkeypatch.setattr(experiment_page, "save_figure", touch)


def made_up(path: Path, trials: int, **options: object) -> tuple[SweepResult, SweepStudy]:
    """A sweep that was never trained: the score is the clip range."""
    settings = small_settings(SEARCH, trials=trials, **options)
    folder = SweepFolder(path)
    with folder.writing(settings):
        study = SweepStudy(settings, path)
        for index in range(trials):
            number = study.ask()
            score = study.params(number)["clip_range"]
            study.report(number, 1, score / 2)
            if index % 5 == 3:
                study.tell(number, PRUNED, [score / 2] * 2, steps=48, seconds=0.5)
            elif index % 5 == 4:
                study.tell(number, FAILED, [], steps=24, reason="training diverged: <b>why</b>")
            else:
                study.report(number, 2, score)
                study.tell(number, FINISHED, [score - 0.01, score + 0.01], steps=144, seconds=1.0)
        folder.write_results(study)
        return SweepResult(path, settings, study.records(), True), study


def test_the_page(tmp_path: Path) -> None:
    result, study = made_up(tmp_path / "sweep", 20)
    page = write_sweep_report(result, study.importances()).read_text()
    text = re.sub("<[^>]*>", "", page)
    best = result.best
    assert best is not None
    assert "Best of 20 trials (12 finished, 4 pruned, 4 failed): return" in text
    assert f"(trial {best.number})" in text and f"{best.params['clip_range']:.3g}" in text
    assert "Most important setting: clip_range" in text
    assert "training diverged: &lt;b&gt;why" in page  # texts are escaped
    for title in ("Score over trials", "Importance", "Settings and score", "Evaluations"):
        assert title in page
    for name in ("actor_lr", "clip_range", "epochs", "algorithm"):
        assert page.count(name) >= 4  # table, importance, parallel coordinates, slice
    assert "mathdefault" not in page  # formulas are not drawn
    assert not re.search(r'(src|href)="https?:', page)
    figures = {path.name for path in (tmp_path / "sweep" / "figures").glob("*.png")}
    names = ("scores", "importance", "parallel", "slices", "evaluations")
    assert figures == {f"{name}.png" for name in names}
    rows = trials_table(result).row_count
    assert rows == 10


@pytest.mark.parametrize("trials", [1, 2])
def test_few_trials(tmp_path: Path, trials: int) -> None:
    result, study = made_up(tmp_path / "sweep", trials, minimise=True)
    assert study.importances() == {}
    page = write_sweep_report(result, {}).read_text()
    assert f"Best of {trials} trials" in page and "PED-ANOVA" not in page
    assert ("Settings and score" in page) == (trials > 1)


def test_nothing_finished(tmp_path: Path) -> None:
    settings = small_settings(SEARCH, trials=1)
    folder = SweepFolder(tmp_path / "sweep")
    with folder.writing(settings):
        study = SweepStudy(settings, folder.path)
        study.tell(study.ask(), FAILED, [], reason="diverged")
        folder.write_results(study)
    result = SweepResult(folder.path, settings, study.records(), True)
    assert verdict_text(result) == "No trial is finished: 1 trials (1 failed)."
    assert "No trial is finished" in write_sweep_report(result, {}).read_text()
    assert not (folder.path / "best.json").exists()
