"""Experiments: their grids, how they are carried out, and what they say."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fp3o.cli.main import main
from fp3o.experiments import EXPERIMENTS, find
from fp3o.experiments.framework import aggregate as overall
from fp3o.experiments.framework import paper_results as published
from fp3o.experiments.framework import ray_backend as cluster
from fp3o.experiments.framework import run_grid as conduct
from fp3o.experiments.framework import summary as show
from fp3o.experiments.framework.grid import SCALES, Cell, CellResult
from fp3o.experiments.framework.scales import cells, plan, rows
from fp3o.experiments.framework.session import ExperimentOptions, film, laid_out, run_experiment
from fp3o.reports.data.record import RunRecord
from fp3o.reports.pages.experiment_page import write_exhibit
from fp3o.runs.directory import RunError
from fp3o.runs.progress import QuietDisplay
from fp3o.runs.signals import stop_signals

TASK = "mpe/simple_speaker_listener"
TABLES = {
    "mamujoco-table": published.MAMUJOCO, "smac-table": published.SMAC, "mpe-table": published.MPE,
}  # fmt: skip
QUICK = ("compute",)
"""Experiments that run whenever tests do; the others do in the slow ones."""
COLLECT = Path(__file__).parents[2] / "docs" / "results" / "collect.py"


class Told(QuietDisplay):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, text: str) -> None:
        self.words.append(text)


def smoke(*algorithms: str, **settings: Any) -> list[Cell]:
    """Tiny cells."""
    made = cells([TASK], ["full"], rows(*algorithms), "smoke")
    return [replace(cell, config=cell.config.with_settings(settings)) for cell in made]


# Grids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_grids_are_well_made(name: str) -> None:
    """Names of cells are their own, files can have them, and small plans can be run."""
    experiment = find(name)
    assert experiment.question.endswith("?") and experiment.title
    for scale in SCALES:
        grid = [*experiment.cells(scale)]
        labels = [cell.label for cell in grid]
        assert len({*labels}) == len(labels) > 1
        assert all(x.isalnum() or x in "-_" for label in labels for x in label)
        seeds = {cell.config.seeds for cell in grid}
        assert seeds == ({2} if scale == "smoke" else {5})
    for cell in experiment.cells("smoke"):
        if cell.config.learner.sharing != "auto":
            cell.config.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", ["paper", "gpu", "laptop"])
def test_plans_of_every_scale_can_be_run(name: str, scale: Any) -> None:
    for cell in find(name).cells(scale):
        if cell.config.learner.sharing != "auto":
            cell.config.check()


def test_the_paper_has_all_cells_of_its_tables() -> None:
    """Every number that is printed, and nothing that is not."""
    sizes = {"mamujoco-table": 6 * 3 * 4, "smac-table": 6 * 3 * 4, "mpe-table": 2 * 2 * 4}
    for name, known in TABLES.items():
        assert len(known) == sizes[name]
        grid = {(cell.task, cell.sharing, cell.variant) for cell in find(name).cells("paper")}
        assert {*known} <= grid
    assert published.SMAC["smac/6h_vs_8z", "partial", "FP3O"] == (81.3, 18.3)
    assert published.MAMUJOCO["mamujoco/Reacher-2x1", "none", "IPPO"] == (-31.7, 5.4)
    assert published.MINUTES["smac/bane_vs_bane", "none", "HAPPO"] == 813
    assert published.MEBIBYTES["mamujoco/HalfCheetah-6x1", "full", "MAPPO"] == 967


def test_scales_change_what_they_say() -> None:
    paper, gpu = (plan("smac/3s5z", "partial", scale, "happo") for scale in ("paper", "gpu"))
    assert (paper.learner.num_envs, gpu.learner.num_envs) == (8, 256)
    assert paper.learner.head_lr_factor == gpu.learner.head_lr_factor == 8.0
    assert gpu.learner.sharing == "partial" and gpu.learner.algorithm == "happo"
    body = plan("mamujoco/Hopper-3x1", "none", "gpu", "fp3o")
    assert (body.steps, body.learner.hyperparameters.clip_range) == (2_000_000, 0.05)
    assert plan(TASK, "full", "laptop", "fp3o", epochs=9).learner.epochs == 9


# What is said ------------------------------------------------------------------------------------


def finding(
    variant: str, values: Sequence[float], task: str = "a", won: bool = False
) -> CellResult:
    """A finished cell with these returns (or wins)."""
    key = {"outcomes": {"won": 0.0}} if won else {}
    last = [
        {"seed": k, "return": x, **({"outcomes": {"won": x}} if won else key)}
        for k, x in enumerate(values)
    ]
    run = RunRecord(Path(variant), {"settings": {}}, {}, {"last": last})
    return CellResult(
        Cell(task, "full", variant, plan(TASK, "full", "smoke", "fp3o")), Path("x"), run
    )


def test_contrasts_are_paired_and_counted() -> None:
    """Seeds differ by more than the variants, and the difference is seen all the same."""
    base = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    noise = np.array([0.1, -0.1, 0.2, 0.0, -0.2])
    found = [
        finding("ours", base + 1.0 + noise, "a"), finding("theirs", base, "a"),
        finding("ours", base - 1.0 + noise, "b"), finding("theirs", base, "b"),
        finding("ours", base + 5 * noise, "c"), finding("theirs", base, "c"),
        finding("ours", base, "d"),
    ]  # fmt: skip
    assert show.tally(found, "ours", "theirs") == (1, 1, 1)
    assert show.difference(found[0], found, "theirs").startswith("+1.0")
    assert show.difference(found[1], found, "theirs") == "–"
    words = show.judged(found, show.Comparison("ours", "theirs"))
    assert "in 1 of 3 cells, worse in 1" in words[0] and "neither" in words[1]
    # Seeds are told apart by their numbers, not by their places.
    assert found[0].run
    turned = replace(found[0].run, results={"last": found[0].run.results["last"][::-1]})
    assert show.paired(replace(found[0], run=turned), found[1]).centre == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((3, 0, 1), "holds here"), ((3, 1, 0), "neither"), ((0, 1, 17), "neither"),
        ((0, 3, 1), "other way round"), ((1, 3, 0), "neither"), ((1, 0, 5), "neither"),
    ],
)  # fmt: skip
def test_a_claim_holds_only_where_most_cells_say_so(
    counts: tuple[int, int, int], words: str
) -> None:
    assert words in show.answer(show.Verdict(*counts))


def test_no_difference_is_a_claim_with_a_margin() -> None:
    """What could hide in the intervals is said; one seed says nothing; one difference is enough."""
    equal = show.Comparison("ours", "theirs", "equal")
    found = [finding("ours", [1.0, 2.0, 3.0]), finding("theirs", [1.5, 1.5, 3.0])]
    words = show.judged(found, equal)
    assert "not told apart in 1" in words[0] and words[1].startswith("No difference is seen")
    assert "(1.24)" in words[1]
    assert (
        "not known yet" in show.judged([finding("ours", [1.0]), finding("theirs", [9.0])], equal)[0]
    )
    far = [*found, finding("ours", [1.0, 1.1, 1.2], "b"), finding("theirs", [5.0, 5.2, 5.1], "b")]
    assert "does not hold everywhere" in show.judged(far, equal)[1]


def test_gradient_steps_do_not_depend_on_what_was_logged() -> None:
    item = finding("ours", [1.0, 2.0])
    lines = {k: {"step": 50 * k, "seed": 0, "iteration": k, "actor_steps": 4} for k in (5, 10)}
    assert item.run
    settings = {"settings": {"num_envs": 2, "rollout": 25}}
    run = replace(item.run, records={0: lines}, config=settings)
    assert show.gradient_steps(replace(item, run=run)) == 40


def test_wins_are_told_in_percent() -> None:
    item = finding("ours", [0.9, 1.0, 0.95], won=True)
    assert item.measure.name == "won"
    np.testing.assert_allclose(item.seeds, [90.0, 100.0, 95.0])
    assert show.bold(item).startswith("**95**") and show.bold(item).endswith("%")


def test_what_is_not_learned_is_said() -> None:
    """No better than a team that knows nothing: differences there are those of early learning."""

    def judged(value: float) -> CellResult:
        item = finding("ours", [value, value + 0.1, value - 0.1])
        row = {"return": -10.0, "stderr": 0.1}
        assert item.run
        known = {**item.run.results, "references": {"random": {"return": -30.0}, "blind": row}}
        return replace(item, run=replace(item.run, results=known))

    assert show.unlearned([judged(-9.9)])[0].startswith("a with full sharing is not learned")
    assert not show.unlearned([judged(-9.0)])


def test_all_tasks_together() -> None:
    """Wins are shares already; returns need a planner and random actions."""
    found = [
        finding(name, np.array(wins) / 100, task, won=True)
        for name, task, wins in (
            ("ours", "a", (90, 100, 95)), ("theirs", "a", (10, 20, 15)),
            ("ours", "b", (50, 60, 55)), ("theirs", "b", (40, 50, 45)),
            ("half", "a", (1, 2, 3)),
        )
    ]  # fmt: skip
    grids, pictures = overall.overall(found, "theirs")
    # Of the third a task is missing.
    assert [row[0] for row in grids[0].rows] == ["ours", "theirs"]
    assert grids[0].rows[0][3].startswith("0.750 [") and grids[0].rows[0][-1].startswith("0.9")
    assert [picture.name for picture in pictures] == ["profiles"]
    assert overall.overall([finding("ours", [1.0, 2.0])], "") == ([], [])


def test_results_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page, its figures and its report, and a list of all."""
    folder = tmp_path / "split-laptop"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "scores.png").write_bytes(b"png")
    (folder / "figures" / "unused.png").write_bytes(b"png")
    (folder / "report.html").write_text("<html>")
    (folder / "results.md").write_text("# Split\n\nWords.\n\n![x](figures/scores.png)\n")
    told = {"name": "split", "scale": "laptop", "cells": 4, "done": 3, "seeds": [5],
            "machines": "a GPU", "verdict": ["One.", "Two."]}  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(told))
    spec = importlib.util.spec_from_file_location("collect", COLLECT)
    assert spec and spec.loader
    collect = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(collect)
    monkeypatch.setattr(collect, "HERE", tmp_path / "into")
    (tmp_path / "into").mkdir()
    collect.take(folder)
    page = (tmp_path / "into" / "split.md").read_text()
    assert "![x](split/scores.png)" in page and "(split/report.html)" in page
    names = {path.name for path in (tmp_path / "into" / "split").iterdir()}
    assert names == {"scores.png", "report.html", "summary.json"}
    assert "| [split](split.md) | laptop | 3 of 4 | 5 | a GPU | One. Two. |" in collect.listed()


# Carrying out ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Cell], Told]]:
    """Two cells, one of which fails."""
    out, told = tmp_path_factory.mktemp("grid"), Told()
    made = [*smoke("mappo"), replace(smoke("ippo")[0], plan=broken())]
    assert conduct.run_grid(made, out, told)
    yield out, made, told


def broken() -> Any:
    """A plan that is refused."""
    return smoke("ippo")[0].config.with_settings({"minibatches": 7})


def test_a_failed_cell_is_told_and_the_rest_goes_on(grid: tuple[Path, list[Cell], Told]) -> None:
    out, made, told = grid
    assert conduct.done(made[0], out) and not conduct.done(made[1], out)
    assert any("ippo FAILED: ValueError: 7 minibatches" in words for words in told.words)
    page = conduct.exhibit(find("mpe-table"), made, "smoke", out, "fp3o experiment ...")
    assert [failure.label for failure in page.failures] == [made[1].label]
    assert "7 minibatches do not divide" in page.failures[0].error
    assert not page.missing and len(page.runs) == 1
    other = [*made, *smoke("happo")]
    page = conduct.exhibit(find("mpe-table"), other, "smoke", out, "")
    assert page.missing == [other[-1].label]


def test_what_is_done_is_skipped_and_what_failed_is_tried_again(
    grid: tuple[Path, list[Cell], Told],
) -> None:
    out, made, _ = grid
    told = Told()
    before = (out / made[0].label / "results.json").stat().st_mtime_ns
    assert conduct.run_grid(made, out, told)
    assert told.words[0] == "1 of 2 cells are done already"
    assert (out / made[0].label / "results.json").stat().st_mtime_ns == before
    assert any("FAILED" in words for words in told.words)


def test_other_settings_are_refused(grid: tuple[Path, list[Cell], Told]) -> None:
    """A folder must hold its cell, finished or not; how long it was trained may differ."""
    out, made, _ = grid
    changed = replace(made[0], config=made[0].config.with_settings({"gamma": 0.5}))
    with pytest.raises(RunError, match="other settings \\(gamma\\)"):
        conduct.run_grid([changed], out, QuietDisplay())
    longer = made[0].config.with_settings({"steps": 10_000})
    assert not conduct.differing(made[0].config, longer)
    conduct.refuse_another(replace(made[0], config=longer), out)
    more = made[0].config.with_settings({"seeds": 3})
    with pytest.raises(RunError, match="begun with 2 seeds, not 3"):
        conduct.learn(more, out / made[0].label, QuietDisplay())


def test_an_old_failure_is_forgotten(grid: tuple[Path, list[Cell], Told]) -> None:
    """A process may die between a cell's end and the removal of what was wrong with it before."""
    out, made, _ = grid
    old = out / conduct.FAILURES / f"{made[0].label}.txt"
    old.write_text("old")
    page = conduct.exhibit(find("mpe-table"), made[:1], "smoke", out, "")
    old.unlink()
    assert not page.failures and len(page.runs) == 1


def test_who_stops_a_run_stops_the_grid() -> None:
    """A request inside counts outside, and one from before counts inside."""
    words: list[str] = []
    with stop_signals(words.append) as outer:
        with stop_signals(words.append) as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            assert inner and outer and len(words) == 1
        with stop_signals(words.append) as inner:
            assert inner


@pytest.mark.slow
def test_the_best_team_is_filmed(grid: tuple[Path, list[Cell], Told]) -> None:
    out, made, _ = grid
    film(conduct.found(made, out), QuietDisplay())
    assert (out / made[0].label / "films" / "episode.gif").stat().st_size > 5000
    page = conduct.exhibit(find("mpe-table"), made, "smoke", out, "")
    write_exhibit(page, out / "page")
    assert "data:image/gif;base64" in (out / "page" / "report.html").read_text()


def test_orders_are_checked() -> None:
    with pytest.raises(ValueError, match="did you mean 'split'"):
        run_experiment(ExperimentOptions("splitt"))
    with pytest.raises(ValueError, match="no cell of split has 'nothing'"):
        run_experiment(ExperimentOptions("split", part="nothing"))
    assert ExperimentOptions("split", seeds=3, out="x").command == "fp3o experiment split --scale laptop"
    made = laid_out(ExperimentOptions("split", "laptop", seeds=3, steps=1000))
    assert {(cell.config.seeds, cell.config.steps) for cell in made} == {(3, 1000)}


def test_the_list_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in EXPERIMENTS)


@pytest.mark.parametrize(
    "name", [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in EXPERIMENTS]
)
def test_every_experiment_runs_and_draws(name: str, tmp_path: Path) -> None:
    """At the scale `smoke`, from the command line to the pages."""
    assert main(["experiment", name, "--scale", "smoke", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "results.md").read_text()
    assert find(name).question in text and "| ---" in text
    assert "tabular" in (tmp_path / "tables.tex").read_text()
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert drawn and drawn == {path.stem for path in (tmp_path / "figures").glob("*.pdf")}
    page = (tmp_path / "report.html").read_text()
    assert find(name).title in page and "<table" in page and "<svg" in page
    if find(name).show is not find("compute").show:
        assert (tmp_path / "marl_eval.json").exists()
    if name in TABLES:
        cell = next(find(name).cells("smoke"))
        known = TABLES[name][cell.task, cell.sharing, cell.variant]
        assert "the paper" in text and f"{known.centre:g} ± {known.deviation:g}" in text


@pytest.mark.slow
def test_a_grid_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGKILL in the middle of a cell; then the same command, and the same numbers."""
    words = ["experiment", "split", "--scale", "smoke", "--steps", "2000", "--out"]
    assert main([*words, str(tmp_path / "whole")]) == 0
    cut = tmp_path / "cut"
    first = next(find("split").cells("smoke")).label
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    program = [sys.executable, "-m", "fp3o", *words, str(cut)]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL)
    metrics, deadline = cut / first / "metrics.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline:
        if metrics.exists() and len(metrics.read_bytes().splitlines()) > 20:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (cut / first / "results.json").exists()
    assert main([*words, str(cut)]) == 0
    for cell in find("split").cells("smoke"):
        for name in ("last", "best"):
            one, other = (
                json.loads((folder / cell.label / "results.json").read_text())[name]
                for folder in (tmp_path / "whole", cut)
            )
            assert one == other
        lines = [(x / cell.label / "metrics.jsonl").read_bytes() for x in (tmp_path / "whole", cut)]
        assert lines[0] == lines[1]


# Elsewhere ---------------------------------------------------------------------------------------


def test_a_keeper_writes_what_counts_on_others_last(tmp_path: Path) -> None:
    """Cut short at any moment, a cell can go on from what is there."""
    order: list[str] = []
    keeper = cluster.ResultStore(str(tmp_path))
    names = (
        "results.json",
        "checkpoints/1",
        "policy/last/card.json",
        "metrics.jsonl",
        "config.json",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "write", lambda path, _: order.append(path.name))
        keeper.put("cell", dict.fromkeys(names, b""), [])
    assert order[0] == "config.json" and order[-2:] == ["1", "results.json"]


def test_a_mirror_outlives_folders_that_go(tmp_path: Path) -> None:
    """Policies are replaced as whole folders, while somebody looks."""
    sent: dict[str, bytes] = {}
    mirror = cluster.FolderSync(tmp_path, lambda changed, _: sent.update(changed))
    (tmp_path / ".best.1234").mkdir()
    (tmp_path / ".best.1234" / "card.json").write_text("half")
    (tmp_path / ".config.json.part").write_text("half")
    (tmp_path / "config.json").write_text("whole")
    mirror.tell()
    assert sent == {"config.json": b"whole"}
    with pytest.MonkeyPatch.context() as patch:
        gone = {"config.json": tmp_path / "config.json", "gone": tmp_path / "policy" / "gone"}
        patch.setattr(cluster, "files", lambda _: gone)
        mirror.tell()
    assert [*sent] == ["config.json"]


def test_a_mirror_tells_what_changes(tmp_path: Path) -> None:
    """New, changed and removed files, locks stay at home."""
    source, out = tmp_path / "source", tmp_path / "out"
    keeper, messages = cluster.ResultStore(str(out)), []
    (source / "checkpoints").mkdir(parents=True)

    def put(changed: dict[str, bytes], gone: Sequence[str]) -> None:
        messages.append([*changed])
        keeper.put("cell", changed, gone)

    mirror = cluster.FolderSync(source, put)
    (source / "lock").write_text("")
    (source / "metrics.jsonl").write_text("1\n")
    (source / "checkpoints" / "1").write_bytes(b"one")
    mirror.tell()
    assert messages == [["checkpoints/1", "metrics.jsonl"]]  # as they were read
    mirror.tell()
    assert len(messages) == 1
    (source / "metrics.jsonl").write_text("1\n2\n")
    (source / "checkpoints" / "1").unlink()
    (source / "checkpoints" / "2").write_bytes(b"two")
    mirror.tell()
    assert keeper.take("cell") == {"metrics.jsonl": b"1\n2\n", "checkpoints/2": b"two"}
    keeper.fail("cell", "broken")
    assert (out / "failures" / "cell.txt").read_text() == "broken"
    keeper.fail("cell", "")
    assert not (out / "failures" / "cell.txt").exists()


@pytest.mark.slow
def test_ray_gives_the_same_results_and_survives_a_dead_node(tmp_path: Path) -> None:
    """Two nodes on this machine, one killed in the middle: its cell resumes on the other."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    script = Path(__file__).parents[1] / "support" / "ray_grid.py"
    found = []
    for name, words in (("calm", []), ("killed", ["kill"])):
        program = [sys.executable, str(script), str(tmp_path / name), *words]
        asked = subprocess.run(program, capture_output=True, text=True, timeout=600, check=True)
        # Ray's own processes say things on the same stream.
        (told,) = (x for x in asked.stdout.splitlines() if x.startswith('{"whole"'))
        found.append(json.loads(told))
    from ray_grid import grid

    assert found[0]["whole"] and found[1]["whole"]
    assert (found[0]["alive"], found[1]["alive"]) == (2, 1)
    assert conduct.run_grid(grid(), tmp_path / "here", QuietDisplay())
    resumed = 0
    for cell in grid():
        folders = [tmp_path / name / cell.label for name in ("here", "calm", "killed")]
        lines = [(folder / "metrics.jsonl").read_bytes() for folder in folders]
        assert lines[0] == lines[1] == lines[2]
        results = [json.loads((folder / "results.json").read_text()) for folder in folders]
        assert results[0]["last"] == results[1]["last"] == results[2]["last"]
        resumed += len(json.loads((folders[2] / "config.json").read_text()).get("resumed", []))
    assert resumed == 1
