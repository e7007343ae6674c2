"""The script that runs cells side by side on one GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "results" / "side_by_side.py"


def run_side_by_side(out: Path, *options: str, status: int = 0) -> str:
    """What the script prints for the smallest grid of particle tasks."""
    names = "mpe-table", "--scale", "smoke", "--out", str(out), "--jobs", "2"
    command = [sys.executable, str(SCRIPT), *names, *options]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == status, ended.stderr
    return ended.stdout


def test_cells_stop_when_the_time_is_over_and_go_on_later(tmp_path: Path) -> None:
    """Both cells run at once; a second call finishes them and a third has nothing to do."""
    stopped = run_side_by_side(tmp_path, "--seconds", "1", status=1)
    assert stopped.count(" started") == 2 and " finished" not in stopped
    assert stopped.splitlines()[-1].partition("unfinished: ")[2].count("simple_") == 2
    finished = run_side_by_side(tmp_path)
    assert finished.count(" finished\n") == 2 and finished.endswith("unfinished: none\n")
    results = [*tmp_path.glob("*/results.json")]
    assert len(results) == 2 and all(json.loads(path.read_text())["steps"] for path in results)
    assert " started" not in run_side_by_side(tmp_path)


def test_a_cell_waits_for_memory(tmp_path: Path) -> None:
    """With room for one cell the second starts when the first has ended."""
    text = run_side_by_side(tmp_path, "--memory", "4")
    events = [line.split()[2].rstrip(",") for line in text.splitlines()]
    cells = [event for event in events if event in ("started", "finished")]
    assert cells == ["started", "finished"] * 2


@pytest.mark.slow
def test_cells_are_chosen_by_name(tmp_path: Path) -> None:
    """Several names; cells that have a stored run are left out if asked for."""
    named = "--part", "listener-full-mappo", "no-such-cell"
    command = [sys.executable, str(SCRIPT), "mpe-table", "--scale", "smoke", "--out", str(tmp_path)]
    failed = subprocess.run([*command, *named], capture_output=True, text=True)
    assert failed.returncode and "simple_speaker_listener-full-fp3o" in failed.stderr
    one = run_side_by_side(tmp_path, *named[:2], "--seeds", "1")
    assert one.count(" started") == 1 and "full-mappo finished" in one
    (results,) = tmp_path.glob("*/results.json")
    assert len(json.loads(results.read_text())["last"]) == 1


def test_cells_with_a_stored_run_are_left_out(tmp_path: Path) -> None:
    """All cells of this table with the names below are published."""
    options = "split", "--scale", "gpu", "--out", str(tmp_path), "--missing", "--part"
    command = [sys.executable, str(SCRIPT), *options, "simple_reference-full"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("unfinished: none\n") and " started" not in ended.stdout
