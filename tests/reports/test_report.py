"""Reports on run directories: statistics, text, figures, HTML pages, terminal tables."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.stats
from report_runs import (
    BASELINES,
    RETURNS,
    SCRIPTS,
    WINS,
    Page,
    battle,
    line,
    make,
    written,
)

from fp3o.reports import RunRecord, read_runs, report, summary_table, summary_text
from fp3o.reports.data.scores import iqm_over_tasks, scores_by_task
from fp3o.reports.figures import results as draw
from fp3o.reports.figures.canvas import (
    MAX_POINTS,
    RC_PARAMS,
    line_styles,
    save_figure,
    spread_labels,
)
from fp3o.reports.figures.diagnostics import diagnostic_panels, diagnostics_figure
from fp3o.reports.pages.curves import chart_script
from fp3o.reports.pages.markup import Html, inline_svg, tag
from fp3o.reports.pages.results import MOST_RUNS, diagnosed_runs
from fp3o.reports.pages.run_page import run_page
from fp3o.reports.pages.videos import LARGEST_VIDEO, videos_section
from fp3o.reports.phrasing import count_text, finding, number_text, score_text
from fp3o.reports.stats import intervals as stats

# Statistics ----------------------------------------------------------------------------------


def test_student_interval_against_hand_and_scipy() -> None:
    # 1..5: mean 3, sd √2.5, standard error √0.5, t(4) = 2.7764
    interval = stats.mean_interval([1, 2, 3, 4, 5])
    assert interval.centre == 3 and interval.size == 5
    assert interval.half == pytest.approx(2.7764451 * 0.5**0.5)
    for freedom in (1, 2, 4, 9, 10, 30, 200):
        assert stats.t_quantile(freedom) == pytest.approx(
            scipy.stats.t.ppf(0.975, freedom), abs=2e-4
        )


def test_missing_numbers_are_left_out_and_one_seed_has_no_interval() -> None:
    mean, low, high = stats.mean_band(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_allclose(mean, [2, 5, np.nan])
    np.testing.assert_allclose(high - low, [2 * 12.7062, np.nan, np.nan], rtol=1e-5)
    single = stats.mean_interval([7.0])
    assert single.centre == 7 and not single.known and score_text(single) == "7"


def test_interquartile_mean_drops_a_quarter_at_each_end() -> None:
    assert stats.iqm([0, 1, 2, 3, 4, 5, 6, 100]) == 3.5
    assert stats.iqm([100, 1, 2, 3, -50]) == 2
    values = np.random.default_rng(3).normal(size=23)
    assert stats.iqm(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25))


def test_bootstrap_is_repeatable_stratified_and_near_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(size=400)
    interval = stats.bootstrap_mean(values)
    assert interval == stats.bootstrap_mean(values)
    assert interval.half == pytest.approx(1.96 * values.std() / 20, rel=0.06)
    # Two tasks that do not vary inside: a draw that mixed them would vary.
    tasks = [np.zeros(4), np.ones(4)]
    assert stats.iqm_interval(tasks)[:3] == (0.5, 0.5, 0.5)
    assert not stats.bootstrap_mean([1.0]).known


def test_probability_of_improvement_counts_pairs() -> None:
    ours, theirs = np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0])
    # of six pairs: four won, one tie, one lost
    assert stats.improvement(ours, theirs).centre == pytest.approx(4.5 / 6)
    sure = stats.improvement(ours + 10, theirs)
    assert sure[:3] == (1, 1, 1)


# Words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (41_600, "41.6k"),
        (999_600, "1M"),
        (999_999, "1M"),
        (999_400, "999k"),
        (1.5e6, "1.5M"),
        (2e9, "2G"),
    ],
)
def test_counts_are_short(count: float, text: str) -> None:
    assert count_text(count) == text


def test_numbers_have_the_digits_of_their_spread() -> None:
    assert score_text(stats.Interval(-5.2149, -5.52, -4.90, 5)) == "-5.21 ± 0.31"
    assert score_text(stats.Interval(4123.4, 3990.0, 4250.0, 5)) == "4123 ± 130"
    assert number_text(-4.5) == "-4.5" and number_text(1000.0) == "1000"
    assert number_text(float("nan")) == "–"


def test_a_claim_needs_an_interval_clear_of_the_reference(tmp_path: Path) -> None:
    def text_of(name: str, *returns: float, **settings: Any) -> str:
        return finding(scores_by_task(read_runs([make(tmp_path / name, returns, **settings)]))[0])

    clear = text_of("clear", *RETURNS)
    assert "FP3O with partial sharing reached -5.10 ± 0.28 per agent (5 seeds)" in clear
    assert "better than the baseline “best blind policy” (-10.1)" in clear
    assert clear.endswith("worse than the baseline “planner” (-4.5).")
    near = text_of("near", -9.9, -9.2, -10.6, -9.0, -9.5)
    assert "not clearly different from the baseline “best blind policy”" in near
    poor = text_of("poor", -14.0, -14.1, -14.2, -13.9, -14.0)
    assert (
        "better than the baseline “standing still” (-29.4), worse than the baseline “best" in poor
    )
    top = text_of("top", -4.6, -4.7, -4.5, -4.4, -4.8)
    assert "not clearly different from the baseline “planner” (-4.5)" in top
    one = text_of("one", -5.0)
    assert "one seed" in one and "±" not in one and "other seeds may differ" in one


def test_the_order_of_runs_is_open_where_intervals_overlap(tmp_path: Path) -> None:
    good = make(tmp_path / "good")
    same = make(tmp_path / "same", tuple(x - 0.4 for x in RETURNS), algorithm="mappo")
    poor = make(tmp_path / "poor", tuple(x - 5 for x in RETURNS), algorithm="happo")
    words = finding(scores_by_task(read_runs([good, same, poor]))[0])
    assert words.startswith("Best of 3 runs: FP3O")
    assert words.endswith("overlaps that of MAPPO · partial: their order is open.")
    assert "lies above all others" in finding(scores_by_task(read_runs([good, poor]))[0])


# Reading -------------------------------------------------------------------------------------


def test_series_are_aligned_over_seeds_and_stages(tmp_path: Path) -> None:
    path = make(tmp_path / "run", (-5.0, -6.0), iterations=2)
    with (path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line(3, 1, -4.0)) + "\n")
        file.write(json.dumps(line(2, 0, -99.0, clip_fraction=[None, None])) + "\n")  # resumed
    run = RunRecord.read(path)
    step, value = run.series("episode_return")
    np.testing.assert_array_equal(step, [3200, 6400, 9600])
    np.testing.assert_allclose(value, [[-18.5, -100, np.nan], [-19.0, -7.0, -5.0]])
    assert run.series("kl", -1).value.shape == (2, 3, 2)
    np.testing.assert_allclose(run.series("kl", -1).value[0, 0], [0.02, 0.03])
    np.testing.assert_allclose(run.series("clip_fraction", 0).value[0], [0.1, np.nan, np.nan])
    assert run.series("nothing").step.size == 0 and run.step == 38400


def test_a_torn_last_line_is_silent_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = make(tmp_path / "run", iterations=2)
    metrics = path / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + '{"iteration": 3, "step": 96')
    assert RunRecord.read(path).series("eval_return").step.size == 3
    lines = whole.splitlines()
    metrics.write_text("\n".join([lines[0], "{torn", "[1]", *lines[1:]]))
    with pytest.warns(UserWarning) as caught:
        run = RunRecord.read(path)
    assert [str(w.message).split("line ")[1][:1] for w in caught] == ["2", "3"]
    assert run.series("eval_return").step.size == 3


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    run = make(tmp_path / "all" / "run")
    with pytest.raises(FileNotFoundError, match=r"with config.json.*inside it: .*run"):
        RunRecord.read(tmp_path / "all")
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        RunRecord.read(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no run was given"):
        report([], tmp_path / "r.html")
    (run / "metrics.jsonl").write_text("")
    (run / "results.json").unlink()
    with pytest.raises(ValueError, match="nothing to report"):
        report([run], tmp_path / "r.html")
    (run / "config.json").write_text('{"format": 1, "versions": {"fp3o": "9.0"}, "settings": {}}')
    with pytest.raises(ValueError, match=r"format 1.*reads format 2.*9\.0"):
        RunRecord.read(run)
    (run / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        RunRecord.read(run)


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / "a", actor_lr=1e-3),
        make(tmp_path / "b"),
        make(tmp_path / "c", algorithm="a2po:blocks=2", sharing=[0, 0, 1]),
        make(
            tmp_path / "d",
            algorithm="my_module:mine",
            row={"title": "Mine"},
            sharing=[[0, 0], [0, 1]],
        ),
        make(tmp_path / "e", algorithm="coppo", sharing="none"),
        make(tmp_path / "f", algorithm="coppo", sharing="none"),
    ]
    assert [run.label for run in read_runs([*paths, paths[0]])] == [
        "FP3O · partial · actor_lr=0.001",
        "FP3O · partial · actor_lr=0.0007",
        "CoPPO · none · e",
        "CoPPO · none · f",
        "Mine · custom map",
        "A2PO (blocks=2) · map 0-0-1",
    ]


# Figures -------------------------------------------------------------------------------------


def test_figures_show_every_run_and_reference(tmp_path: Path) -> None:
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


def test_diagnostics_show_the_gate_and_the_gap(tmp_path: Path) -> None:
    run, other = read_runs([make(tmp_path / "a"), make(tmp_path / "b", algorithm="mappo")])
    titles = [panel.title for panel in diagnostic_panels(run)]
    assert "Share of iterations with an open gate" in titles and len(titles) == 6
    assert not any("gate" in panel.title for panel in diagnostic_panels(other))
    axes = {axis.get_title("left"): axis for axis in diagnostics_figure(run).axes}
    gap = axes["Condition gap per sample (open from 0 up)"].get_lines()[0].get_ydata()
    np.testing.assert_allclose(gap, 2.0 / (128 * 25 * 2))  # of the first stage
    kl = axes["KL from the rollout policy, per agent"].get_lines()
    np.testing.assert_allclose(kl[1].get_ydata(), 0.03)  # second agent, last stage
    np.testing.assert_allclose(axes["Value loss (first stage)"].get_lines()[0].get_ydata(), 0.5)


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


def test_files_are_repeatable_and_global_state_is_left_alone(tmp_path: Path) -> None:
    part = scores_by_task(read_runs([make(tmp_path / "run")]))[0]
    figures = [draw.scores_figure(part) for _ in range(2)]
    before = inline_svg(figures[1], "x")  # does not depend on what was saved before
    one, two = (save_figure(figures[k], tmp_path / str(k) / "x.y") for k in range(2))
    assert [path.name for path in one] == ["x.y.png", "x.y.pdf"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert inline_svg(figures[0], "x") == before
    theirs = matplotlib.rcParamsOrig
    assert all(matplotlib.rcParams[name] == theirs[name] for name in RC_PARAMS)


def test_labels_of_references_are_pushed_apart() -> None:
    assert spread_labels([0.0, 0.5, 1.0], 0.1) == [0.0, 0.5, 1.0]
    moved = spread_labels([0.5, 0.51, 0.52], 0.1)
    assert min(np.diff(moved)) >= 0.1 - 1e-6 and moved[1] == pytest.approx(0.51, abs=0.02)


# Battles -------------------------------------------------------------------------------------


def test_wins_lead_where_there_are_some(tmp_path: Path) -> None:
    part = scores_by_task(read_runs([battle(tmp_path / "a")]))[0]
    assert part.ranking is part.wins and list(part.episode_metrics) == [
        "won",
        "dead_allies",
        "dead_enemies",
    ]
    assert finding(part) == (
        "FP3O with partial sharing wins 93.4 ± 5.2 % of its battles (5 seeds), better than the "
        "baseline “kiting” (70 %); its return is 18.01 ± 0.79 per agent."
    )
    # more wins with a lower return are ahead; a run without wins leaves returns to rank all
    kind = make(tmp_path / "b", (3.0,) * 5, wins=(0.99,) * 5, task="smac/3m", algorithm="mappo")
    old = make(tmp_path / "c", (30.0,) * 5, task="smac/3m", algorithm="happo")
    words = finding(scores_by_task(read_runs([tmp_path / "a", kind]))[0])
    assert words.startswith("Best of 2 runs: MAPPO") and words.endswith(
        "Its 95 % interval of wins lies above all others."
    )
    assert "HAPPO with partial sharing reached 30" in finding(
        scores_by_task(read_runs([tmp_path / "a", kind, old]))[0]
    )


def test_wins_are_held_against_the_best_scripted_team(tmp_path: Path) -> None:
    def text_of(name: str, *wins: float, **more: Any) -> str:
        return finding(scores_by_task(read_runs([battle(tmp_path / name, wins, **more)]))[0])

    some = text_of("a", 0.6, 0.7, 0.8)
    assert "the baselines “focus fire” (62 %) and “kiting” (70 %); its return" in some
    assert "worse than the baseline “attack the nearest” (31 %)" in text_of("b", 0.1, 0.12, 0.11)
    # a single seed has the error of its thousand episodes
    one = text_of("c", 1.0)
    assert "wins 100 % of its battles (one seed), better than the baseline “kiting” (70 %)" in one
    assert "(one policy; other seeds may differ)" in one
    assert "not clearly different from the baseline “kiting”" in text_of("d", 0.72)
    chance = {"random": SCRIPTS["random"]}
    assert "“random actions” (0 %); its return" in text_of("e", *WINS, baselines=chance)
    assert "battles (5 seeds); its return" in text_of("f", *WINS, baselines={})
    early = text_of("g", 0.5, 0.5, finished=False)
    assert "wins 50 ± 0 % of its battles (2 seeds) so far (latest evaluation" in early


def test_win_rates_are_drawn_in_percent(tmp_path: Path) -> None:
    part = scores_by_task(read_runs([battle(tmp_path / "a", (0.97, 1.0, 0.4))]))[0]
    wins = part.wins
    assert wins is not None
    figure = draw.curves_figure(draw.group_by_sharing(wins.runs), wins.baselines, "eval_won")
    axis = figure.axes[0]
    assert axis.get_title("left") == "Win rate" and axis.get_ylim() == (-3, 103)
    assert "100 %" in {tick.get_text() for tick in axis.get_yticklabels()}
    assert {text.get_text() for text in axis.texts} == {
        "random 0 %", "nearest 31 %", "focus 62 %", "kite 70 %",
    }  # fmt: skip
    mean = np.asarray(axis.get_lines()[0].get_ydata())
    np.testing.assert_allclose(mean[[0, -1]], [0, 79], atol=1e-9)
    band = axis.collections[0].get_paths()[0].vertices
    assert np.asarray(band)[:, 1].max() == 100 and np.asarray(band)[:, 1].min() == 0
    chart = draw.scores_figure(wins).axes[0]
    bar = next(line for line in chart.get_lines() if np.size(line.get_xdata()) == 2)
    assert np.max(np.asarray(bar.get_xdata())) == 100
    # equal references share a label; the return's axis is as it was
    ties = [item._replace(value=0.0) for item in wins.baselines]
    labels = [
        text.get_text() for text in draw.scores_figure(wins._replace(baselines=ties)).axes[0].texts
    ]
    assert labels == ["random, nearest,\nfocus, kite\n0 %"]
    assert "%" not in "".join(text.get_text() for text in draw.scores_figure(part).axes[0].texts)


def test_a_report_of_battles_begins_with_the_wins(tmp_path: Path) -> None:
    path = battle(tmp_path / "run", iterations=4, plain=True)
    saved: list[str] = []
    page = Page(
        run_page(read_runs([path]), scores_by_task(read_runs([path])), lambda _, x: saved.append(x))
    )
    assert saved == [
        "win_rates", "comparison", "win_rate_curves", "training_win_rate_curves",
        "learning_curves", "training_curves",
    ]  # fmt: skip
    for words in ("93.4 ± 5.2 %", "95.0 (4.2)", "dead enemies", "62.0 ± 3.0 %", "focus fire"):
        assert words in page.words, words
    # 5 - 3 * 0.934 dead allies of its own, 5 - 3 * 0.62 of the scripted team
    assert "2.20 ± 0.16" in page.words and "3.14" in page.words
    rows = [re.split(r"\s{2,}", row.strip()) for row in summary_text([path]).splitlines()]
    told = ["FP3O · partial", "5", "38.4k", "93.4 ± 5.2 %", "18.01 ± 0.79", "18.01 ± 0.79", "24.9k"]
    assert told in rows and ["focus fire", "62 %", "12"] in rows
    text = summary_text([path, make(tmp_path / "mpe")])
    assert re.search(r"FP3O · partial +5 +38.4k +– +-5.10 ± 0.28", text)


def test_outcomes_without_a_name_here_are_called_by_their_key(tmp_path: Path) -> None:
    path = make(tmp_path / "run", plain=True)
    results = json.loads((path / "results.json").read_text())
    for row in results["last"]:
        row["episode_metrics"] = {"lost_balls": row["seed"], "odd": None}
    (path / "results.json").write_text(json.dumps(results))
    part = scores_by_task(read_runs([path]))[0]
    assert list(part.episode_metrics) == ["lost_balls"] and part.ranking is part
    _, page = written([path], tmp_path)
    assert "lost balls" in page.words and "wins" not in page.words


# The page ------------------------------------------------------------------------------------


def test_a_report_of_one_run_is_whole_and_offline(tmp_path: Path) -> None:
    run = make(tmp_path / "run")
    path = report([run], tmp_path / "new" / "report.html")
    text = path.read_text()
    page = Page(text)
    assert not any(word in text for word in ("http://", "https://", "xlink", "src="))
    assert page.addresses.pop(0) == "data:," and not page.handlers  # no icon is asked for
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert all(address.startswith("#") for address in page.addresses)
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"@import|url\((?!#)", text)
    for words in ("-5.10 ± 0.28", "-34.2", "24.9k", "agent_id", "0.0007", "jax 0.10.2", "-5.40"):
        assert words in page.words, words
    assert page.tags.count("svg") == 4  # final, curve, two columns of diagnostics
    data, program = page.scripts
    allowed = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert "default-src 'none'; " in text and f"script-src 'sha256-{allowed}'\"" in text
    assert program == chart_script() and json.loads(data) == page.curves()
    assert sorted(file.name for file in (tmp_path / "new" / "figures").iterdir()) == [
        f"{name}.{kind}"
        for name in ("comparison", "diagnostics", "learning_curves")
        for kind in ("pdf", "png")
    ]


def test_several_runs_and_tasks(tmp_path: Path) -> None:
    other = {"task": "mpe/simple_spread", "plain": True}
    paths = [
        make(tmp_path / "a", plain=True),
        make(tmp_path / "b", algorithm="mappo", actor_lr=5e-4, plain=True),
        make(tmp_path / "c", tuple(2 * x for x in RETURNS), **other),
        make(tmp_path / "d", algorithm="mappo", **other),
    ]
    _, page = written(paths, tmp_path)
    assert "4 runs on 2 tasks" in page.words
    assert page.words.count("How certain is the order?") == 2
    assert "Different settings" in page.words and "mark" in page.tags
    assert "MAPPO · partial: no diagnostics were logged." in page.words
    assert "All tasks together" in page.words
    # random is 0, the planner 1: the middle six of the ten scaled returns of both tasks
    scaled = sorted((x + 34.2) / 29.7 for x in (*RETURNS, *(2 * x for x in RETURNS)))
    label, interval = iqm_over_tasks(scores_by_task(read_runs(paths)))[0]
    assert label == "FP3O · partial"
    assert interval.centre == pytest.approx(np.mean(scaled[2:8]))


def test_an_unfinished_run_says_so_and_borrows_the_references(tmp_path: Path) -> None:
    running = make(tmp_path / "running", (-7.0, -7.5), finished=False)
    done = make(tmp_path / "done", algorithm="mappo", plain=True)
    empty = make(tmp_path / "empty", (), finished=False, algorithm="happo")
    _, page = written([running, done, empty], tmp_path)
    assert "Unfinished runs: FP3O · partial at 38.4k steps." in page.words
    assert "so far: latest evaluation" in page.words
    assert "Left out, no return has been logged yet" in page.words and "empty" in page.words
    alone = finding(scores_by_task(read_runs([running]))[0])
    assert "-7.2 ± 3.2 per agent (2 seeds) so far" in alone and "blind" not in alone


def test_sparse_evaluation_adds_the_training_return(tmp_path: Path) -> None:
    _, page = written([make(tmp_path / "sparse", iterations=3, plain=True)], tmp_path)
    assert "Training return" in page.words
    _, page = written([make(tmp_path / "dense", iterations=12, plain=True)], tmp_path)
    assert "Training return" not in page.words
    # the script can show it
    assert {name: told["early"] for name, told in page.curves()["metrics"].items()} == {
        "eval_return": True,
        "episode_return": False,
    }


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    _, page = written([make(tmp_path / "run", (-5.25,))], tmp_path)
    assert "A single seed has no interval" in page.words
    table = page.words[page.words.index("Results") : page.words.index("Every seed")]
    assert "-5.25" in table and "±" not in table


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&$x_$ --> </svg><img src=x onerror=alert(2)> \u2028http://e.vil"
    path = make(
        tmp_path / "run", task=evil, algorithm="_" + evil, sharing=evil, note=evil,
        baselines={evil: {"return": -9.0, "stderr": 0.1, "episodes": 5}},
    )  # fmt: skip
    curve = draw.curves_figure(draw.group_by_sharing(runs := read_runs([path])))
    assert curve.legends[0].get_texts()[0].get_text()[:30] == runs[0].label[1:31]
    text, page = written([path], tmp_path)
    assert page.tags.count("script") == 2 and "img" not in page.tags and not page.handlers
    assert all(address.startswith("#") for address in page.addresses[1:])
    assert page.words.count(evil) >= 4 and "<img" not in text
    data, _ = page.scripts
    assert not set("<>&\u2028") & set(data)
    assert page.curves()["runs"][0]["task"] == evil
    assert evil[:20] in summary_text([path])


def test_the_data_of_the_charts(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / "long", plain=True, iterations=400),
        make(tmp_path / "two", (-5.0, -6.0), algorithm="mappo", plain=True),
        make(tmp_path / "one", (-5.0,), algorithm="mappo", sharing="none", plain=True),
        battle(tmp_path / "won", plain=True),
    ]
    _, page = written(paths, tmp_path)
    told = page.curves()
    assert [run["task"] for run in told["runs"]] == ["mpe/simple_reference"] * 3 + ["smac/3m"]
    assert list(told["metrics"]) == ["eval_won", "episode_won", "eval_return", "episode_return"]
    assert told["metrics"]["eval_won"]["ends"] == [0, 100]
    charts = {(c["task"], c["metric"], c["title"]): c for c in told["charts"]}
    chart = charts["mpe/simple_reference", "eval_return", "partial sharing"]
    assert chart["baselines"] == [
        ["random", -34.2],
        ["still", -29.4],
        ["blind", -10.1],
        ["planner", -4.5],
    ]
    long, two = chart["curves"]
    assert long["name"] == "FP3O" and long["colour"] == "var(--c-d55e00)" and long["dashes"] == []
    assert len(long["step"]) == len(long["mean"]) == len(long["seeds"][0]) == MAX_POINTS
    mean, low, high = (two[key][-1] for key in ("mean", "low", "high"))
    assert mean == -5.5 and high - low == pytest.approx(2 * 12.7062 * 0.5, rel=1e-3)
    assert two["late"][1] == -5 and two["whole"] == [-30, -5] and two["late"][0] > -30
    single = charts["mpe/simple_reference", "eval_return", "no sharing"]["curves"][0]
    assert single["seeds"] == [] and set(single["low"]) == {None}
    won = charts["smac/3m", "eval_won", ""]["curves"][0]
    assert won["mean"][-1] == pytest.approx(93.4) and max(won["high"]) <= 100
    # training wins of the first iterations are missing
    assert charts["smac/3m", "episode_won", ""]["curves"][0]["step"][0] == 6400


def test_of_many_runs_the_best_are_diagnosed_runs(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / f"{k}", (-5.0 - k % 7,), plain=True, actor_lr=k, task=f"t/{k % 2}")
        for k in range(14)
    ]
    parts = scores_by_task(read_runs(paths))
    chosen = diagnosed_runs(parts)
    assert len(chosen) == MOST_RUNS == 12
    assert {run.settings["actor_lr"] for run in parts[0].runs if run not in chosen} == {6}
    assert diagnosed_runs(parts[:1]) == parts[0].runs
    _, page = written(paths, tmp_path)
    assert "The best 12 of 14 runs" in page.words and "All 14 runs" in page.words


def test_films_of_runs_are_part_of_the_page(tmp_path: Path) -> None:
    run = make(tmp_path / "run", plain=True)
    (run / "videos").mkdir()
    film = b"GIF89a" + bytes(range(256))
    for name in ("b.gif", "videos/c.mp4", "videos/d.mp4", "videos/note.txt"):
        (run / name).write_bytes(film)
    (run / "a.gif").write_bytes(bytes(LARGEST_VIDEO + 1))
    (run / "empty.gif").write_bytes(b"")
    text, page = written([run], tmp_path)
    code = base64.b64encode(film).decode()
    assert page.addresses.count(f"data:image/gif;base64,{code}") == 1
    assert page.addresses.count(f"data:video/mp4;base64,{code}") == 1
    assert "img" in page.tags and "video" in page.tags and "Videos" in page.words
    named = page.words[page.words.index("Not embedded") :]
    assert str(run / "a.gif") in named and str(run / "videos" / "d.mp4") in named
    assert "note.txt" not in text and "empty.gif" not in text
    # a page about many runs has room for few: what does not fit is named
    words = "".join(videos_section(read_runs([run]), len(film)))
    assert words.count("base64") == 1 and words.count("<li>") == 3
    assert videos_section(read_runs([make(tmp_path / "other")]), 100) == []


def test_text_is_escaped_unless_it_is_html() -> None:
    assert tag("p", "a<b", Html("<i>c</i>"), title='"') == '<p title="&quot;">a&lt;b<i>c</i></p>'


def test_the_terminal_table_has_runs_and_references(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / "a"),
        make(tmp_path / "b", (-6.0,), finished=False, sharing="[red]x[/red]"),
    ]
    text = summary_text(paths)
    rows = [re.split(r"\s{2,}", row.strip()) for row in text.splitlines() if row.strip()]
    assert ["FP3O · partial", "5", "38.4k", "-5.10 ± 0.28", "-5.10 ± 0.28", "24.9k"] in rows
    assert ["FP3O · [red]x[/red]", "1", "38.4k", "-6 (latest evaluation)", "–", "–"] in rows
    assert ["planner", "-4.5"] in rows
    assert summary_table(paths).row_count == 2 + len(BASELINES)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("fp3o.reports", {"jax", "matplotlib", "equinox"}),
        ("fp3o.reports.pages.run_page", {"jax", "matplotlib.pyplot"}),
    ],
)
def test_imports_stay_light(module: str, unwanted: set[str]) -> None:
    code = f"import sys, {module}; print(sorted(set(sys.modules) & {unwanted}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
