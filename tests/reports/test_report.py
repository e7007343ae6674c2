"""From run directories to statistics, figures, an HTML page and a table."""

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

from fp3o.reports import read_run, read_runs, report, summary_table, summary_text
from fp3o.reports.data.scores import overall, sections
from fp3o.reports.figures import results as draw
from fp3o.reports.figures.canvas import POINTS, RULES, colours, spread
from fp3o.reports.figures.diagnostics import diagnostics, panels_of
from fp3o.reports.pages import run_page as html
from fp3o.reports.pages.curves import script
from fp3o.reports.pages.markup import Html, svg, tag
from fp3o.reports.pages.results import MOST, diagnosed
from fp3o.reports.pages.videos import LARGEST, watch
from fp3o.reports.phrasing import count_text, finding, number_text, score_text
from fp3o.reports.stats import intervals as stats
from report_runs import (
    REFERENCES,
    RETURNS,
    SCRIPTS,
    WINS,
    Page,
    battle,
    line,
    make,
    written,
)

# Statistics ----------------------------------------------------------------------------------


def test_student_interval_against_hand_and_scipy() -> None:
    # 1..5: mean 3, sd √2.5, standard error √0.5, t(4) = 2.7764
    interval = stats.mean_interval([1, 2, 3, 4, 5])
    assert interval.centre == 3 and interval.size == 5
    assert interval.half == pytest.approx(2.7764 * 0.5**0.5)
    for freedom in (1, 2, 4, 9, 10, 30, 200):
        assert stats.t_quantile(freedom) == pytest.approx(
            scipy.stats.t.ppf(0.975, freedom), abs=2e-4
        )


def test_missing_numbers_are_left_out_and_one_seed_has_no_interval() -> None:
    mean, low, high = stats.mean_band(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_allclose(mean, [2, 5, np.nan])
    np.testing.assert_allclose(high - low, [2 * 12.7062, np.nan, np.nan])
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
    [(0, "0"), (950, "950"), (41_600, "41.6k"), (999_999, "1M"), (1.5e6, "1.5M"), (2e9, "2G")],
)
def test_counts_are_short(count: float, text: str) -> None:
    assert count_text(count) == text


def test_numbers_have_the_digits_of_their_spread() -> None:
    assert score_text(stats.Interval(-5.2149, -5.52, -4.90, 5)) == "-5.21 ± 0.31"
    assert score_text(stats.Interval(4123.4, 3990.0, 4250.0, 5)) == "4123 ± 130"
    assert number_text(-4.5) == "-4.5" and number_text(1000.0) == "1000"
    assert number_text(float("nan")) == "–"


def test_a_claim_needs_an_interval_clear_of_the_reference(tmp_path: Path) -> None:
    def said(name: str, *returns: float, **settings: Any) -> str:
        return finding(sections(read_runs([make(tmp_path / name, returns, **settings)]))[0])

    clear = said("clear", *RETURNS)
    assert "FP3O with partial sharing reached -5.10 ± 0.28 per agent (5 seeds)" in clear
    assert "better than the best blind policy (-10.1): the team communicates" in clear
    assert "the planner reaches -4.5" in clear
    # where every agent sees the goals, being better than blind proves no communication
    seen = said("seen", *RETURNS, task="mpe/simple_spread")
    assert "better than the best blind policy" in seen and "communicates" not in seen
    near = said("near", -9.9, -9.2, -10.6, -9.0, -9.5)
    assert "not clearly better than the best blind policy" in near and "communicates" not in near
    assert "worse than the best blind policy" in said("bad", -14.0, -14.1, -14.2, -13.9, -14.0)
    assert "is not clearly better" in said("top", -4.6, -4.7, -4.5, -4.4, -4.8)
    one = said("one", -5.0)
    assert "one seed" in one and "±" not in one and "other seeds may differ" in one


def test_the_order_of_runs_is_open_where_intervals_overlap(tmp_path: Path) -> None:
    good = make(tmp_path / "good")
    same = make(tmp_path / "same", tuple(x - 0.4 for x in RETURNS), algorithm="mappo")
    poor = make(tmp_path / "poor", tuple(x - 5 for x in RETURNS), algorithm="happo")
    words = finding(sections(read_runs([good, same, poor]))[0])
    assert words.startswith("Best of 3 runs: FP3O")
    assert words.endswith("overlaps that of MAPPO · partial: the order among these is open.")
    assert "clear of all others" in finding(sections(read_runs([good, poor]))[0])


# Reading -------------------------------------------------------------------------------------


def test_series_are_aligned_over_seeds_and_stages(tmp_path: Path) -> None:
    path = make(tmp_path / "run", (-5.0, -6.0), iterations=2)
    with (path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line(3, 1, -4.0)) + "\n")
        file.write(json.dumps(line(2, 0, -99.0, clip_fraction=[None, None])) + "\n")  # resumed
    run = read_run(path)
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
    assert read_run(path).series("eval_return").step.size == 3
    lines = whole.splitlines()
    metrics.write_text("\n".join([lines[0], "{torn", "[1]", *lines[1:]]))
    with pytest.warns(UserWarning) as caught:
        run = read_run(path)
    assert [str(w.message).split("line ")[1][:1] for w in caught] == ["2", "3"]
    assert run.series("eval_return").step.size == 3


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    run = make(tmp_path / "all" / "run")
    with pytest.raises(FileNotFoundError, match=r"holds config.json.*inside it: .*run"):
        read_run(tmp_path / "all")
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no run was given"):
        report([], tmp_path / "r.html")
    (run / "metrics.jsonl").write_text("")
    (run / "results.json").unlink()
    with pytest.raises(ValueError, match="nothing to report"):
        report([run], tmp_path / "r.html")
    (run / "config.json").write_text('{"format": 2, "versions": {"fp3o": "9.0"}, "settings": {}}')
    with pytest.raises(ValueError, match=r"format 2.*reads format 1.*9\.0"):
        read_run(run)
    (run / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        read_run(run)


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / "a", actor_lr=1e-3),
        make(tmp_path / "b"),
        make(tmp_path / "c", algorithm="a2po:blocks=2", sharing=[0, 0, 1]),
        make(tmp_path / "d", algorithm={"name": "mine"}, sharing=[[0, 0], [0, 1]]),
        make(tmp_path / "e", algorithm="coppo", sharing="none"),
        make(tmp_path / "f", algorithm="coppo", sharing="none"),
    ]
    assert [run.label for run in read_runs([*paths, paths[0]])] == [
        "FP3O · partial · actor_lr=0.001",
        "FP3O · partial · actor_lr=0.0007",
        "CoPPO · none · e",
        "CoPPO · none · f",
        "mine · custom map",
        "A2PO (blocks=2) · map 0-0-1",
    ]


# Figures -------------------------------------------------------------------------------------


def test_figures_show_every_run_and_reference(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / f"{algorithm}-{sharing}", algorithm=algorithm, sharing=sharing)
        for algorithm in ("fp3o", "mappo")
        for sharing in ("full", "none")
    ]
    part = sections(read_runs(paths))[0]
    groups = draw.panels(part.runs)
    assert list(groups) == ["full sharing", "no sharing"]
    figure = draw.learning_curves(groups, part.references)
    assert [axis.get_title("left") for axis in figure.axes] == [
        "Evaluation return, full sharing",
        "Evaluation return, no sharing",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FP3O", "MAPPO"]
    labels = {text.get_text() for text in figure.axes[-1].texts}
    assert labels == {"↓ random −34.2", "blind −10.1", "planner −4.5"}
    # of each run a mean and five seeds, and a dashed line for each reference on the axis
    assert len(figure.axes[0].get_lines()) == 2 * (1 + 5) + 2
    rows = draw.comparison(part).axes[0].get_yticklabels()
    assert [row.get_text() for row in rows] == [
        "full sharing", "FP3O", "MAPPO", "no sharing", "FP3O", "MAPPO",
    ]  # fmt: skip
    hues = [colour for colour, _ in colours(part.runs)]
    assert hues[0] == hues[2] != hues[1] == hues[3]


def test_diagnostics_show_the_gate_and_the_gap(tmp_path: Path) -> None:
    run, other = read_runs([make(tmp_path / "a"), make(tmp_path / "b", algorithm="mappo")])
    titles = [panel.title for panel in panels_of(run)]
    assert "Share of iterations with an open gate" in titles and len(titles) == 6
    assert not any("gate" in panel.title for panel in panels_of(other))
    axes = {axis.get_title("left"): axis for axis in diagnostics(run).axes}
    gap = axes["Condition gap per sample: open from 0 up"].get_lines()[0].get_ydata()
    np.testing.assert_allclose(gap, (3.0 - 1.0) / (128 * 25 * 2))  # of the first stage
    kl = axes["KL from the rollout policy, each agent"].get_lines()
    np.testing.assert_allclose(kl[1].get_ydata(), 0.03)  # second agent, last stage
    np.testing.assert_allclose(axes["Value loss (first stage)"].get_lines()[0].get_ydata(), 0.5)


def test_files_are_repeatable_and_global_state_is_left_alone(tmp_path: Path) -> None:
    part = sections(read_runs([make(tmp_path / "run")]))[0]
    figures = [draw.comparison(part) for _ in range(2)]
    before = svg(figures[1], "x")  # does not depend on what was saved before
    one, two = (draw.save(figures[k], tmp_path / str(k) / "x.y") for k in range(2))
    assert [path.name for path in one] == ["x.y.png", "x.y.pdf"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert svg(figures[0], "x") == before
    theirs = matplotlib.rcParamsOrig
    assert all(matplotlib.rcParams[name] == theirs[name] for name in RULES)


def test_labels_of_references_are_pushed_apart() -> None:
    assert spread([0.0, 0.5, 1.0], 0.1) == [0.0, 0.5, 1.0]
    moved = spread([0.5, 0.51, 0.52], 0.1)
    assert min(np.diff(moved)) >= 0.1 - 1e-6 and moved[1] == pytest.approx(0.51, abs=0.02)


# Battles -------------------------------------------------------------------------------------


def test_wins_lead_where_there_are_some(tmp_path: Path) -> None:
    part = sections(read_runs([battle(tmp_path / "a")]))[0]
    assert part.lead is part.wins and list(part.outcomes) == ["won", "dead_allies", "dead_enemies"]
    assert finding(part) == (
        "FP3O with partial sharing wins 93.4 ± 5.2 % of its battles (5 seeds), more than the best "
        "scripted team (kiting, 70 %); its return is 18.01 ± 0.79 per agent."
    )
    # more wins with a lower return are ahead; a run without wins leaves returns to rank all
    kind = make(tmp_path / "b", (3.0,) * 5, wins=(0.99,) * 5, task="smac/3m", algorithm="mappo")
    old = make(tmp_path / "c", (30.0,) * 5, task="smac/3m", algorithm="happo")
    words = finding(sections(read_runs([tmp_path / "a", kind]))[0])
    assert words.startswith("Best of 2 runs: MAPPO") and words.endswith(
        "Its 95 % interval of wins is clear of all others."
    )
    assert "HAPPO with partial sharing reached 30" in finding(
        sections(read_runs([tmp_path / "a", kind, old]))[0]
    )


def test_wins_are_held_against_the_best_scripted_team(tmp_path: Path) -> None:
    def said(name: str, *wins: float, **more: Any) -> str:
        return finding(sections(read_runs([battle(tmp_path / name, wins, **more)]))[0])

    assert "not clearly more than the best scripted team (kiting, 70 %)" in said("a", 0.6, 0.7, 0.8)
    assert ", less than the best scripted team" in said("b", 0.1, 0.12, 0.11)
    # a single seed has the error of its thousand episodes
    one = said("c", 1.0)
    assert "wins 100 % of its battles (one seed), more than" in one
    assert "(kiting, 70 %; other seeds may differ)" in one
    assert "not clearly more than" in said("d", 0.72)
    chance = {"random": SCRIPTS["random"]}
    assert "more than random actions (0 %); its return" in said("e", *WINS, references=chance)
    assert "battles (5 seeds); its return" in said("f", *WINS, references={})
    early = said("g", 0.5, 0.5, finished=False)
    assert "wins 50 ± 0 % of its battles (2 seeds) so far (latest evaluation" in early


def test_win_rates_are_drawn_in_percent(tmp_path: Path) -> None:
    part = sections(read_runs([battle(tmp_path / "a", (0.97, 1.0, 0.4))]))[0]
    wins = part.wins
    assert wins is not None
    figure = draw.learning_curves(draw.panels(wins.runs), wins.references, "eval_won")
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
    chart = draw.comparison(wins).axes[0]
    bar = next(line for line in chart.get_lines() if np.size(line.get_xdata()) == 2)
    assert np.max(np.asarray(bar.get_xdata())) == 100
    # equal references share a label; the return's axis is as it was
    ties = [item._replace(value=0.0) for item in wins.references]
    labels = [
        text.get_text() for text in draw.comparison(wins._replace(references=ties)).axes[0].texts
    ]
    assert labels == ["random, nearest,\nfocus, kite\n0 %"]
    assert "%" not in "".join(text.get_text() for text in draw.comparison(part).axes[0].texts)


def test_a_report_of_battles_begins_with_the_wins(tmp_path: Path) -> None:
    path = battle(tmp_path / "run", iterations=4, plain=True)
    saved: list[str] = []
    page = Page(
        html.page(read_runs([path]), sections(read_runs([path])), lambda _, x: saved.append(x))
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
        row["outcomes"] = {"lost_balls": row["seed"], "odd": None}
    (path / "results.json").write_text(json.dumps(results))
    part = sections(read_runs([path]))[0]
    assert list(part.outcomes) == ["lost_balls"] and part.lead is part
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
    assert program == script() and json.loads(data) == page.curves()
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
    assert page.words.count("How sure is the order?") == 2
    assert "Where the runs differ" in page.words and "mark" in page.tags
    assert "MAPPO · partial: nothing was logged." in page.words
    assert "All tasks together" in page.words
    # random is 0, the planner 1: the middle six of the ten scaled returns of both tasks
    scaled = sorted((x + 34.2) / 29.7 for x in (*RETURNS, *(2 * x for x in RETURNS)))
    label, interval = overall(sections(read_runs(paths)))[0]
    assert label == "FP3O · partial"
    assert interval.centre == pytest.approx(np.mean(scaled[2:8]))


def test_an_unfinished_run_says_so_and_borrows_the_references(tmp_path: Path) -> None:
    running = make(tmp_path / "running", (-7.0, -7.5), finished=False)
    done = make(tmp_path / "done", algorithm="mappo", plain=True)
    empty = make(tmp_path / "empty", (), finished=False, algorithm="happo")
    _, page = written([running, done, empty], tmp_path)
    assert "Unfinished, shown as far as it got: FP3O · partial at 38.4k steps." in page.words
    assert "so far: latest evaluation" in page.words
    assert "Nothing measured yet, left out" in page.words and "empty" in page.words
    alone = finding(sections(read_runs([running]))[0])
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
        references={evil: {"return": -9.0, "stderr": 0.1, "episodes": 5}},
    )  # fmt: skip
    curve = draw.learning_curves(draw.panels(runs := read_runs([path])))
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
    assert chart["references"] == [["random", -34.2], ["blind", -10.1], ["planner", -4.5]]
    long, two = chart["curves"]
    assert long["name"] == "FP3O" and long["colour"] == "--fp3o" and long["dashes"] == []
    assert len(long["step"]) == len(long["mean"]) == len(long["seeds"][0]) == POINTS
    mean, low, high = (two[key][-1] for key in ("mean", "low", "high"))
    assert mean == -5.5 and high - low == pytest.approx(2 * 12.7062 * 0.5, rel=1e-3)
    assert two["late"][1] == -5 and two["whole"] == [-30, -5] and two["late"][0] > -30
    single = charts["mpe/simple_reference", "eval_return", "no sharing"]["curves"][0]
    assert single["seeds"] == [] and set(single["low"]) == {None}
    won = charts["smac/3m", "eval_won", ""]["curves"][0]
    assert won["mean"][-1] == pytest.approx(93.4) and max(won["high"]) <= 100
    # training wins of the first iterations are missing
    assert charts["smac/3m", "episode_won", ""]["curves"][0]["step"][0] == 6400


def test_of_many_runs_the_best_are_diagnosed(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / f"{k}", (-5.0 - k % 7,), plain=True, actor_lr=k, task=f"t/{k % 2}")
        for k in range(14)
    ]
    parts = sections(read_runs(paths))
    chosen = diagnosed(parts)
    assert len(chosen) == MOST == 12
    assert {run.settings["actor_lr"] for run in parts[0].runs if run not in chosen} == {6}
    assert diagnosed(parts[:1]) == parts[0].runs
    _, page = written(paths, tmp_path)
    assert "Of 14 runs the best 12 are here" in page.words and "All 14 runs" in page.words


def test_films_of_runs_are_part_of_the_page(tmp_path: Path) -> None:
    run = make(tmp_path / "run", plain=True)
    (run / "films").mkdir()
    film = b"GIF89a" + bytes(range(256))
    for name in ("b.gif", "films/c.mp4", "films/d.mp4", "films/note.txt"):
        (run / name).write_bytes(film)
    (run / "a.gif").write_bytes(bytes(LARGEST + 1))
    (run / "empty.gif").write_bytes(b"")
    text, page = written([run], tmp_path)
    code = base64.b64encode(film).decode()
    assert page.addresses.count(f"data:image/gif;base64,{code}") == 1
    assert page.addresses.count(f"data:video/mp4;base64,{code}") == 1
    assert "img" in page.tags and "video" in page.tags and "Watch" in page.words
    named = page.words[page.words.index("Not in this file") :]
    assert str(run / "a.gif") in named and str(run / "films" / "d.mp4") in named
    assert "note.txt" not in text and "empty.gif" not in text
    # a page about many runs has room for few: what does not fit is named
    words = "".join(watch(read_runs([run]), len(film)))
    assert words.count("base64") == 1 and words.count("<li>") == 3
    assert watch(read_runs([make(tmp_path / "other")]), 100) == []


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
    assert summary_table(paths).row_count == 2 + len(REFERENCES)


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
