"""Reports on tasks with wins and other episode metrics."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from report_runs import (
    SCRIPTS,
    WINS,
    Page,
    battle,
    make,
    written,
)

from fp3o.reports import read_runs, summary_text
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.figures import results as draw
from fp3o.reports.pages.run_page import run_page
from fp3o.reports.phrasing import finding


def test_runs_are_ranked_by_wins_where_there_are_some(tmp_path: Path) -> None:
    part = scores_by_task(read_runs([battle(tmp_path / "a")]))[0]
    assert part.ranking is part.wins and list(part.episode_metrics) == [
        "won", "dead_enemies", "dead_allies", "damage_dealt", "healed", "length",
    ]  # fmt: skip
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


def test_wins_are_compared_with_the_baselines(tmp_path: Path) -> None:
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


def test_a_report_of_battles_starts_with_the_wins(tmp_path: Path) -> None:
    path = battle(tmp_path / "run", iterations=4, plain=True)
    saved: list[str] = []
    page = Page(
        run_page(read_runs([path]), scores_by_task(read_runs([path])), lambda _, x: saved.append(x))
    )
    assert saved == [
        "win_rates", "comparison", "win_rate_curves", "training_win_rate_curves",
        "learning_curves", "training_curves",
    ]  # fmt: skip
    for words in ("93.4 ± 5.2 %", "95.0 (4.2)", "62.0 ± 3.0 %", "focus fire"):
        assert words in page.words, words
    # Of its own 2 + 6 x 0.934 kills, and so on; the same of the scripted team that wins 62 %.
    battles = page.words.partition("What happened in a battle")[2]
    assert battles.startswith("runwin ratekillsdead alliesdamage dealthealedlengthFP3O · partial")
    assert "93.4 ± 5.2 %7.60 ± 0.312.20 ± 0.1684.1 ± 4.75.13 ± 0.1025 ± 0" in battles
    assert "focus fire62 %5.723.1455.85.7631.5" in battles
    assert "Kills: dead enemies per battle; " in battles
    rows = [re.split(r"\s{2,}", row.strip()) for row in summary_text([path]).splitlines()]
    expected = [
        "FP3O · partial",
        "5",
        "38.4k",
        "93.4 ± 5.2 %",
        "18.01 ± 0.79",
        "18.01 ± 0.79",
        "24.9k",
    ]
    assert expected in rows and ["focus fire", "62 %", "12"] in rows
    text = summary_text([path, make(tmp_path / "mpe")])
    assert re.search(r"FP3O · partial +5 +38.4k +– +-5.10 ± 0.28", text)


def test_episode_metrics_without_a_title_are_titled_by_their_key(tmp_path: Path) -> None:
    path = make(tmp_path / "run", plain=True)
    results = json.loads((path / "results.json").read_text())
    for row in results["last"]:
        row["episode_metrics"] = {"lost_balls": row["seed"], "odd": None}
    (path / "results.json").write_text(json.dumps(results))
    part = scores_by_task(read_runs([path]))[0]
    assert list(part.episode_metrics) == ["length", "lost_balls"] and part.ranking is part
    _, page = written([path], tmp_path)
    assert "What happened in an episoderunlengthlost ballsFP3O" in page.words
    assert "wins" not in page.words
    assert "What happened" not in written([make(tmp_path / "plain", plain=True)], tmp_path)[1].words
