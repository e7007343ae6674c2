"""The pages of results: they agree with the runs in the repository, and are made of them."""

import json
import shutil
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_cells import finished

from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework.run_data import RunDataError, run_name
from fp3o.reports.data.measures import MEASURES
from fp3o.reports.pages.markdown import inline_markdown

RESULTS = Path(__file__).parents[2] / "docs" / "results"

PUBLISHED = sorted(path.parent.name for path in RESULTS.glob("*/summary.json"))

MADE = [name for name in PUBLISHED if (RESULTS / name / "seeds.json").exists()]
"""Those that are made from stored runs."""

QUICK = ("a2po",)
"""Experiments that are made again in every test session; the others in the slow one."""


def load_script(folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """The script that makes the pages in a folder; it imports those beside it."""
    for path in folder.glob("*.py"):
        patch.delitem(sys.modules, path.stem, raising=False)
    patch.syspath_prepend(folder)
    spec = spec_from_file_location("collect_results", folder / "collect.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)
    return module


@pytest.fixture
def collect(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script of the repository."""
    return load_script(RESULTS, monkeypatch)


def read(name: str, file: str) -> Any:
    return json.loads((RESULTS / name / file).read_text())


def final_scores(document: dict[str, Any], measure: str) -> dict[str, float]:
    """Scores of the last policies by seed; win rates in percent."""
    rows = {str(row["seed"]): MEASURES[measure].value(row) for row in document["results"]["last"]}
    return {seed: value for seed, value in rows.items() if np.isfinite(value)}


def test_every_experiment_is_published(collect: Any) -> None:
    assert sorted([*collect.SCALES, *collect.EARLIER]) == PUBLISHED == sorted(all_experiments())
    index = (RESULTS / "index.md").read_text()
    for name in PUBLISHED:
        assert f"]({name}.md)" in index and find_experiment(name).title in index


@pytest.mark.parametrize("name", PUBLISHED)
def test_pages_state_the_verdict_of_their_summary(name: str) -> None:
    """The summary's counts are those of its cells, too."""
    summary, page = read(name, "summary.json"), (RESULTS / f"{name}.md").read_text()
    assert summary["verdict"] and summary["name"] == name
    for line in summary["verdict"]:
        assert inline_markdown(line) in page
    assert summary["done"] <= summary["cells"] and summary["failed"] == 0
    assert ("## Not run" in page) == (summary["done"] < summary["cells"])
    for link in ("seeds.json", "tables.tex") if name in MADE else ():
        assert f"({name}/{link})" in page and (RESULTS / name / link).exists()
    for line in page.splitlines():
        if line.startswith("!["):
            assert (RESULTS / line.rpartition("](")[2].removesuffix(")")).exists()


@pytest.mark.parametrize("name", MADE)
def test_numbers_of_seeds_are_those_of_the_runs(name: str) -> None:
    rows, summary = read(name, "seeds.json"), read(name, "summary.json")
    assert len(rows) <= summary["done"]
    assert sorted({len(row["scores"]) for row in rows}) == summary["seeds"]
    for row in rows:
        document = json.loads((RESULTS / row["run"]).read_text())
        scores = final_scores(document, row["measure"])
        assert row["scores"].keys() == scores.keys()
        for seed, score in scores.items():
            assert row["scores"][seed] == pytest.approx(score, rel=1e-5)
        settings = document["config"]["settings"]
        assert (settings["task"], document["results"]["steps"]) == (row["task"], row["steps"])


def test_runs_are_named_by_their_settings() -> None:
    """Those of measured times by their cells."""
    for path in (RESULTS / "runs").glob("*.json"):
        if not path.stem.startswith("time-"):
            document = json.loads(path.read_text())
            assert path.stem == run_name(document["config"]["settings"])


@pytest.mark.parametrize(
    "name", [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in MADE]
)
def test_the_verdict_follows_from_the_runs(name: str, collect: Any, tmp_path: Path) -> None:
    """So do the numbers of every seed."""
    page, summary = collect.make_page(name, tmp_path), read(name, "summary.json")
    assert [*page.report.verdict] == summary["verdict"]
    text = (RESULTS / f"{name}.md").read_text()
    assert all(inline_markdown(note) in text for note in page.report.notes)
    assert [*page.seeds] == read(name, "seeds.json")
    assert len(page.cells) - len(page.missing) == summary["done"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script in a folder of its own, for one experiment at the scale `smoke`."""
    folder = tmp_path / "site" / "docs" / "results"
    for name in ("runs", "policies"):
        (folder / name).mkdir(parents=True)
    (folder / "policies" / "index.json").write_text("{}")
    for path in RESULTS.glob("*.py"):
        shutil.copy(path, folder)
    collect = load_script(folder, monkeypatch)
    monkeypatch.setattr(collect, "SCALES", {"split": "smoke"})
    # The results in the README are from other experiments.
    monkeypatch.setattr(collect, "write_readme", lambda: None)
    return collect


def train(folder: Path) -> dict[str, Path]:
    """Run directories of the cells of the experiment, by variant."""
    cells = find_experiment("split").cells("smoke")
    return {cell.variant: finished(cell, folder, seeds=2).path for cell in cells}


def test_runs_are_packed_and_made_into_pages(site: Any, tmp_path: Path) -> None:
    """From run directories to documents, page, tables, numbers, figures and index."""
    train(tmp_path / "experiments")
    site.add_runs([tmp_path])
    site.make_pages(["split"], tmp_path / "reports")
    names = sorted(path.stem.rpartition("-")[0] for path in site.RUNS.glob("*.json"))
    start = "simple_speaker_listener-full-fp3o"
    assert names == [start, f"{start}_split_random"]
    page, index = ((site.HERE / x).read_text() for x in ("split.md", "index.md"))
    assert "(split/seeds.json)" in page and "](split/scores.png)" in page
    assert "## Not run" not in page and "| Runs | 2 of 2 cells at the scale `smoke` |" in index
    files = {path.name for path in (site.HERE / "split").iterdir()}
    assert {"seeds.json", "summary.json", "tables.tex", "scores.png"} <= files
    rows = json.loads((site.HERE / "split" / "seeds.json").read_text())
    assert [row["variant"] for row in rows] == ["random split", "average split"]
    assert all((site.HERE / row["run"]).exists() and len(row["scores"]) == 2 for row in rows)
    assert "<svg" in (tmp_path / "reports" / "split.html").read_text()
    # Made again from the documents alone, it is the same page.
    before = page, index
    site.make_pages(["split"])
    assert before == tuple((site.HERE / x).read_text() for x in ("split.md", "index.md"))


def test_what_is_missing_is_listed_with_its_cost(site: Any, tmp_path: Path) -> None:
    paths = train(tmp_path / "experiments")
    site.add_runs([paths["average split"]])
    site.make_pages(["split"])
    page, index = ((site.HERE / x).read_text() for x in ("split.md", "index.md"))
    assert "## Not run: 200 steps, about a minute of an H200" in page
    assert page.endswith("about a minute: random split (full)\n")
    assert "| Runs | 1 of 2 cells at the scale `smoke` |" in index
    assert "| [split](split.md) | 1 | 200 steps, about a minute |" in index


def test_baselines_are_added_to_runs_without(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the run's task; runs that have them stay as they are."""
    paths = train(tmp_path / "experiments")
    edit(paths["average split"] / "results.json", lambda content: content | {"baselines": {}})
    site.add_runs([tmp_path])
    before = {path: json.loads(path.read_text()) for path in site.RUNS.glob("*.json")}
    asked = []
    monkeypatch.setitem(
        site.add_baselines.__globals__, "evaluate_baselines",
        lambda *task: asked.append(task) or {"still": {"return": 1.0}},
    )  # fmt: skip
    site.add_baselines()
    settings = find_experiment("split").cells("smoke")
    (cell,) = (cell for cell in settings if cell.variant == "average split")
    assert asked == [(cell.task, "paper", cell.config.final_episodes)]
    for path, document in before.items():
        if not document["results"]["baselines"]:
            document["results"]["baselines"] = {"still": {"return": 1.0}}
        assert json.loads(path.read_text()) == document


def test_policies_are_listed_with_their_videos(site: Any, tmp_path: Path) -> None:
    paths = train(tmp_path / "experiments")
    site.add_runs([tmp_path])
    entry = {"seed": 1, "step": 2_000_000, "measure": "return", "score": -4.5}
    names = sorted(path.stem for path in site.RUNS.glob("*.json"))
    (site.POLICIES / "index.json").write_text(json.dumps(dict.fromkeys(names, entry)))
    (site.POLICIES / names[0]).mkdir()
    (site.POLICIES / names[0] / "episode.gif").touch()
    site.make_pages(["split"])
    text = (site.HERE / "split.md").read_text().partition("## Policies")[2]
    assert f"](policies/{names[0]}/episode.gif)" in text and text.count(".gif") == 1
    assert all(f'fp3o.Policy.load("docs/results/policies/{name}")' in text for name in names)
    assert text.count("seed 1, after 2M steps (-4.5 in the final evaluation)") == len(paths)


def test_a_shorter_run_replaces_none(
    site: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor one with fewer seeds; one that is as long replaces it."""
    path = train(tmp_path / "experiments")["average split"]
    site.add_runs([path])
    (document,) = site.RUNS.glob("*.json")
    before = document.read_text()
    edit(path / "results.json", lambda content: content | {"steps_per_second": 1.0})
    site.add_runs([path])
    longest = document.read_text()
    assert before != longest
    edit(path / "results.json", lambda content: content | {"steps": 50})
    site.add_runs([path])
    assert document.read_text() == longest
    assert "has more steps or seeds than" in capsys.readouterr().out


def test_unfinished_runs_are_not_added(site: Any, tmp_path: Path) -> None:
    """A run directory without results is none; one whose seeds are there twice is an error."""
    path = train(tmp_path / "experiments")["average split"]
    (path / "results.json").unlink()
    site.add_runs([path])
    assert not [*site.RUNS.iterdir()]
    for name in ("one", "other"):
        train(tmp_path / name)
    with pytest.raises(RunDataError, match="the same seeds"):
        site.add_runs([tmp_path / "one", tmp_path / "other"])


def edit(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
