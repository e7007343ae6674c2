"""Figures of runs: curves, scores, diagnostics."""

import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.lines import Line2D
from report_runs import make, written

from fp3o.reports import RunRecord, read_runs, summary_text
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.figures import results as draw
from fp3o.reports.figures.canvas import (
    RC_PARAMS,
    line_styles,
    save_figure,
    spread_labels,
)
from fp3o.reports.figures.diagnostics import diagnostic_panels, diagnostics_figure
from fp3o.reports.pages.markup import inline_svg


def test_figures_show_every_run_and_baseline(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / f"{algorithm}-{sharing}", algorithm=algorithm, sharing=sharing)
        for algorithm in ("fp3o", "mappo")
        for sharing in ("full", "none")
    ]
    part = scores_by_task(read_runs(paths))[0]
    groups = draw.group_by_sharing(part.runs)
    assert list(groups) == ["full sharing", "no sharing"]
    figure = draw.curves_figure(groups, part.baselines)
    assert [axis.get_title("left") for axis in figure.axes] == [
        "Evaluation return, full sharing",
        "Evaluation return, no sharing",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FP3O", "MAPPO"]
    labels = {text.get_text() for text in figure.axes[-1].texts}
    assert labels == {"↓ random −34.2", "still −29.4", "blind −10.1", "planner −4.5"}
    # per run a mean and five seeds, and a dashed line per baseline on the axis
    assert len(figure.axes[0].get_lines()) == 2 * (1 + 5) + 3
    # a baseline far below the scores is marked by an arrow
    labels = {text.get_text() for text in draw.scores_figure(part).axes[0].texts}
    assert labels == {
        "random\n← −34.2", "still\n← −29.4", "blind\n−10.1", "planner\n−4.5",
    }  # fmt: skip
    rows = draw.scores_figure(part).axes[0].get_yticklabels()
    assert [row.get_text() for row in rows] == [
        "full sharing", "FP3O", "MAPPO", "no sharing", "FP3O", "MAPPO",
    ]  # fmt: skip
    hues = [style.colour for style in line_styles(part.runs)]
    assert hues[0] == hues[2] != hues[1] == hues[3]


def heights(line: Line2D) -> np.ndarray:
    """The values of a line."""
    return np.asarray(line.get_ydata(), float)


def test_diagnostics_show_the_gate_and_the_gap(tmp_path: Path) -> None:
    run, other = read_runs([make(tmp_path / "a"), make(tmp_path / "b", algorithm="mappo")])
    titles = [panel.title for panel in diagnostic_panels(run)]
    assert "Share of iterations with an open gate" in titles and len(titles) == 6
    assert not any("gate" in panel.title for panel in diagnostic_panels(other))
    axes = {axis.get_title("left"): axis for axis in diagnostics_figure(run).axes}
    gap = axes["Condition gap per sample (open from 0 up)"].get_lines()[0]
    np.testing.assert_allclose(heights(gap), 2.0 / (128 * 25 * 2))  # of the first stage
    kl = axes["KL from the rollout policy, per agent"].get_lines()
    np.testing.assert_allclose(heights(kl[1]), 0.03)  # second agent, last stage
    np.testing.assert_allclose(heights(axes["Value loss (first stage)"].get_lines()[0]), 0.5)


def test_a_custom_algorithm_has_its_own_title_colour_and_panels(tmp_path: Path) -> None:
    row = {
        "name": "my_module:careful",
        "title": "Careful",
        "colour": ["#123456", "#abcdef"],
        "gated": True,
    }
    path = make(tmp_path / "run", algorithm="my_module:careful", row=row)
    run = read_runs([path])[0]
    assert run.label == "Careful · partial" and line_styles([run])[0].colour == "#123456"
    assert any("open gate" in panel.title for panel in diagnostic_panels(run))
    _, page = written([path], tmp_path)
    assert "Careful with partial sharing" in page.words and "my_module " not in page.words
    assert page.curves()["charts"][0]["curves"][0]["colour"] == "light-dark(#123456,#abcdef)"
    evil = {**row, "colour": ["red;background:url(//e.vil)", "#abcdef"]}
    evil_run = make(tmp_path / "evil", algorithm="my_module:careful", row=evil)
    assert RunRecord.read(evil_run).colour is None


def test_runs_without_a_finished_episode_show_a_dash(tmp_path: Path) -> None:
    """A null return means that no evaluation episode finished."""
    some, none = make(tmp_path / "some", plain=True), make(tmp_path / "none", algorithm="mappo")
    for path, seeds in ((some, (1,)), (none, range(5))):
        results = json.loads((path / "results.json").read_text())
        for key, seed in ((key, seed) for key in ("last", "best") for seed in seeds):
            results[key][seed] |= {"return": None, "std": None, "stderr": None}
        results["baselines"]["still"] |= {"return": None, "stderr": None}
        (path / "results.json").write_text(json.dumps(results))
    runs = scores_by_task(read_runs([some, none]))[0]
    assert [len(score.seeds) for score in runs.last] == [4, 5] and runs.best[1] is None
    assert not runs.last[1].final and runs.baseline("still") is None
    _, page = written([some, none], tmp_path)
    assert "so far: latest evaluation" in page.words and "–" in page.words
    assert "MAPPO · partial" in summary_text([some, none])


def test_files_are_reproducible_and_global_state_is_unchanged(tmp_path: Path) -> None:
    part = scores_by_task(read_runs([make(tmp_path / "run")]))[0]
    figures = [draw.scores_figure(part) for _ in range(2)]
    before = inline_svg(figures[1], "x")  # does not depend on what was saved before
    one, two = (save_figure(figures[k], tmp_path / str(k) / "x.y") for k in range(2))
    assert [path.name for path in one] == ["x.y.png", "x.y.pdf"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert inline_svg(figures[0], "x") == before
    theirs = matplotlib.rcParamsOrig
    assert all(matplotlib.rcParams[name] == theirs[name] for name in RC_PARAMS)


def test_labels_of_baselines_are_spread() -> None:
    assert spread_labels([0.0, 0.5, 1.0], 0.1) == [0.0, 0.5, 1.0]
    moved = spread_labels([0.5, 0.51, 0.52], 0.1)
    assert min(np.diff(moved)) >= 0.1 - 1e-6 and moved[1] == pytest.approx(0.51, abs=0.02)
