"""The HTML page about runs, and the terminal table."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from report_runs import (
    BASELINES,
    RETURNS,
    Page,
    battle,
    make,
    written,
)

from fp3o.reports import read_runs, report, summary_table, summary_text
from fp3o.reports.data.scores import iqm_over_tasks, scores_by_task
from fp3o.reports.figures import results as draw
from fp3o.reports.figures.canvas import (
    MAX_POINTS,
)
from fp3o.reports.pages.curves import chart_script
from fp3o.reports.pages.markup import Html, tag
from fp3o.reports.pages.results import MOST_RUNS, diagnosed_runs
from fp3o.reports.phrasing import finding


def test_a_report_of_one_run_is_complete_and_offline(tmp_path: Path) -> None:
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


def test_an_unfinished_run_is_marked_and_uses_the_baselines_of_others(tmp_path: Path) -> None:
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
    assert {name: metric["early"] for name, metric in page.curves()["metrics"].items()} == {
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
    shown = evil.replace("\u2028", r"\u2028")
    assert page.words.count(shown) >= 4 and "<img" not in text
    data, _ = page.scripts
    assert not set("<>&\u2028") & set(data)
    assert page.curves()["runs"][0]["task"] == shown
    assert evil[:20] in summary_text([path])


def test_the_data_of_the_charts(tmp_path: Path) -> None:
    paths = [
        make(tmp_path / "long", plain=True, iterations=400),
        make(tmp_path / "two", (-5.0, -6.0), algorithm="mappo", plain=True),
        make(tmp_path / "one", (-5.0,), algorithm="mappo", sharing="none", plain=True),
        battle(tmp_path / "won", plain=True),
    ]
    _, page = written(paths, tmp_path)
    expected = page.curves()
    assert [run["task"] for run in expected["runs"]] == ["mpe/simple_reference"] * 3 + ["smac/3m"]
    assert list(expected["metrics"]) == ["eval_won", "episode_won", "eval_return", "episode_return"]
    assert expected["metrics"]["eval_won"]["ends"] == [0, 100]
    charts = {(c["task"], c["metric"], c["title"]): c for c in expected["charts"]}
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


def test_diagnostics_of_many_runs_are_those_of_the_best(tmp_path: Path) -> None:
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


def test_text_is_escaped_unless_it_is_html() -> None:
    assert tag("p", "a<b", Html("<i>c</i>"), title='"') == '<p title="&quot;">a&lt;b<i>c</i></p>'


def test_the_terminal_table_has_runs_and_baselines(tmp_path: Path) -> None:
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
