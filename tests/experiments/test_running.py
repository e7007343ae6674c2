"""Running grids: skipping, resuming, failures, pages from the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from finished_cells import PAPER_TABLES, RecordingDisplay, smoke_cells

from fp3o.cli.main import main
from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework import session
from fp3o.experiments.framework.collect import experiment_report, read_cells
from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.run_grid import (
    FAILURES,
    cell_finished,
    check_cell_folder,
    differing_fields,
    run_grid,
    train_cell,
)
from fp3o.experiments.framework.session import render_best
from fp3o.reports.pages.experiment_page import write_experiment_page
from fp3o.runs.directory import RunError
from fp3o.runs.progress import QuietDisplay
from fp3o.runs.signals import stop_signals

QUICK = ("compute",)
"""Experiments that run in every test session; the others run in the slow one."""

Grid = tuple[Path, list[Cell], RecordingDisplay]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """Two cells, one of which fails."""
    out, display = tmp_path_factory.mktemp("grid"), RecordingDisplay()
    cells = [*smoke_cells("mappo"), *smoke_cells("ippo", minibatches=7)]
    assert run_grid(cells, out, display)
    yield out, cells, display


def test_a_failed_cell_is_reported_and_the_others_run(grid: Grid) -> None:
    out, cells, display = grid
    assert cell_finished(cells[0], out) and not cell_finished(cells[1], out)
    assert any("ippo FAILED: SettingError: 7 minibatches" in line for line in display.lines)
    report = experiment_report(find_experiment("mpe-table"), cells, "smoke", out, "fp3o ...")
    assert [failure.label for failure in report.failures] == [cells[1].label]
    assert "7 minibatches do not divide" in report.failures[0].error
    assert not report.missing and len(report.runs) == 1
    assert report.runs[0].label == "MAPPO · full"
    more = [*cells, *smoke_cells("happo")]
    report = experiment_report(find_experiment("mpe-table"), more, "smoke", out, "")
    assert report.missing == [more[-1].label]


def test_finished_cells_are_skipped_and_failed_ones_repeated(grid: Grid) -> None:
    out, cells, _ = grid
    display = RecordingDisplay()
    before = (out / cells[0].label / "results.json").stat().st_mtime_ns
    assert run_grid(cells, out, display)
    assert display.lines[0] == "1 of 2 cells are already finished"
    assert (out / cells[0].label / "results.json").stat().st_mtime_ns == before
    assert any("FAILED" in line for line in display.lines)


def test_a_folder_with_another_run_is_rejected(grid: Grid) -> None:
    """Finished or not; only the length of training may differ."""
    out, cells, _ = grid
    config = cells[0].config
    changed = replace(cells[0], config=config.with_settings({"gamma": 0.5}))
    with pytest.raises(RunError, match="other settings \\(gamma\\)"):
        run_grid([changed], out, QuietDisplay())
    on_mujoco = config.with_settings({"task": "mamujoco/Walker2d-2x3", "variant": "paper"})
    assert not differing_fields(
        on_mujoco, on_mujoco.with_settings({"variant": "paper:backend=fused"})
    )
    longer = config.with_settings({"steps": 10_000})
    assert not differing_fields(config, longer)
    check_cell_folder(replace(cells[0], config=longer), out)
    with pytest.raises(RunError, match="started with 2 seeds, not 3"):
        train_cell(config.with_settings({"seeds": 3}), out / cells[0].label, QuietDisplay())


def test_an_old_failure_of_a_finished_cell_is_ignored(grid: Grid) -> None:
    """A process may end after a cell is finished and before its old error is removed."""
    out, cells, _ = grid
    old = out / FAILURES / f"{cells[0].label}.txt"
    old.write_text("old")
    report = experiment_report(find_experiment("mpe-table"), cells[:1], "smoke", out, "")
    old.unlink()
    assert not report.failures and len(report.runs) == 1


def test_the_run_records_its_algorithm(grid: Grid) -> None:
    out, cells, _ = grid
    row = json.loads((out / cells[0].label / "config.json").read_text())["algorithm"]
    assert (row["name"], row["title"], row["gated"]) == ("mappo", "MAPPO", False)
    assert row["fields"]["schedule"] == "simultaneous" and len(row["colour"]) == 2


def test_a_stop_signal_for_a_run_stops_the_grid() -> None:
    """A request inside counts outside, and one from before counts inside."""
    lines: list[str] = []
    with stop_signals(lines.append) as outer:
        with stop_signals(lines.append) as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            assert inner and outer and len(lines) == 1
        with stop_signals(lines.append) as inner:
            assert inner


@pytest.mark.slow
def test_the_best_policy_is_rendered(grid: Grid) -> None:
    out, cells, _ = grid
    render_best(read_cells(cells, out), QuietDisplay())
    assert (out / cells[0].label / "videos" / "episode.gif").stat().st_size > 5000
    report = experiment_report(find_experiment("mpe-table"), cells, "smoke", out, "")
    write_experiment_page(report, out / "page")
    assert "data:image/gif;base64" in (out / "page" / "report.html").read_text()


def test_the_list_shows_all_experiments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in all_experiments())


@pytest.mark.parametrize(
    "name",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in all_experiments()],
)
def test_every_experiment_runs_from_the_command_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first cells at the scale `smoke`, from training to the pages."""
    select = session.select_cells
    monkeypatch.setattr(session, "select_cells", lambda *args: select(*args)[:2])
    assert main(["experiment", name, "--scale", "smoke", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "results.md").read_text()
    experiment = find_experiment(name)
    assert experiment.question in text and "| ---" in text
    assert "tabular" in (tmp_path / "tables.tex").read_text()
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert drawn and drawn == {path.stem for path in (tmp_path / "figures").glob("*.pdf")}
    page = (tmp_path / "report.html").read_text()
    assert experiment.title in page and "<table" in page and "<svg" in page
    assert (tmp_path / "marl_eval.json").exists() == (name != "compute")
    if name in PAPER_TABLES:
        cell = next(experiment.cells("smoke"))
        known = PAPER_TABLES[name][cell.task, cell.sharing, cell.variant]
        assert f"{known.centre:g} ± {known.deviation:g}" in text


@pytest.mark.slow
def test_a_killed_grid_resumes_to_the_same_results(tmp_path: Path) -> None:
    """SIGKILL in the middle of a cell; then the same command, and the same numbers."""
    arguments = ["experiment", "split", "--scale", "smoke", "--steps", "2000", "--out"]
    assert main([*arguments, str(tmp_path / "whole")]) == 0
    cut = tmp_path / "cut"
    cells = [*find_experiment("split").cells("smoke")]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    program = [sys.executable, "-m", "fp3o", *arguments, str(cut)]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL)
    metrics, deadline = cut / cells[0].label / "metrics.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline:
        if metrics.exists() and len(metrics.read_bytes().splitlines()) > 20:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (cut / cells[0].label / "results.json").exists()
    assert main([*arguments, str(cut)]) == 0
    for cell in cells:
        folders = [folder / cell.label for folder in (tmp_path / "whole", cut)]
        one, other = (json.loads((x / "results.json").read_text()) for x in folders)
        assert one["last"] == other["last"] and one["best"] == other["best"]
        lines = [(folder / "metrics.jsonl").read_bytes() for folder in folders]
        assert lines[0] == lines[1]
