"""Cells on a Ray cluster: copying folders, failing nodes."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fp3o.experiments.framework import folder_sync
from fp3o.experiments.framework.folder_sync import FolderSync, ResultStore
from fp3o.experiments.framework.run_grid import run_grid
from fp3o.runs.progress import QuietDisplay


def test_files_are_written_in_an_order_a_run_can_resume_from(tmp_path: Path) -> None:
    """Interrupted at any moment, a cell can resume from what was written."""
    order: list[str] = []
    store = ResultStore(str(tmp_path))
    names = (
        "results.json", "checkpoints/1", "policy/last/card.json", "metrics.jsonl", "config.json",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_sync, "write_file", lambda path, _: order.append(path.name))
        store.put("cell", dict.fromkeys(names, b""), [])
    assert order[0] == "config.json" and order[-2:] == ["1", "results.json"]


def test_folders_may_disappear_while_they_are_read(tmp_path: Path) -> None:
    """Policies are replaced as whole folders."""
    sent: dict[str, bytes] = {}
    sync = FolderSync(tmp_path, lambda changed, _: sent.update(changed))
    (tmp_path / ".best.1234").mkdir()
    (tmp_path / ".best.1234" / "card.json").write_text("half")
    (tmp_path / ".config.json.part").write_text("half")
    (tmp_path / "config.json").write_text("complete")
    sync.send()
    assert sent == {"config.json": b"complete"}
    with pytest.MonkeyPatch.context() as patch:
        gone = {"config.json": tmp_path / "config.json", "gone": tmp_path / "policy" / "gone"}
        patch.setattr(folder_sync, "list_files", lambda _: gone)
        sync.send()
    assert [*sent] == ["config.json"]


def test_changes_are_sent_once(tmp_path: Path) -> None:
    """New, changed and removed files; locks are not copied."""
    source, out = tmp_path / "source", tmp_path / "out"
    store, messages = ResultStore(str(out)), []
    (source / "checkpoints").mkdir(parents=True)

    def put(changed: Mapping[str, bytes], removed: Sequence[str]) -> None:
        messages.append([*changed])
        store.put("cell", changed, removed)

    sync = FolderSync(source, put)
    (source / "lock").write_text("")
    (source / "metrics.jsonl").write_text("1\n")
    (source / "checkpoints" / "1").write_bytes(b"one")
    sync.send()
    assert messages == [["checkpoints/1", "metrics.jsonl"]]  # in the order they were read
    sync.send()
    assert len(messages) == 1
    (source / "metrics.jsonl").write_text("1\n2\n")
    (source / "checkpoints" / "1").unlink()
    (source / "checkpoints" / "2").write_bytes(b"two")
    sync.send()
    assert store.get("cell") == {"metrics.jsonl": b"1\n2\n", "checkpoints/2": b"two"}
    store.set_failure("cell", "broken")
    assert (out / "failures" / "cell.txt").read_text() == "broken"
    store.set_failure("cell", "")
    assert not (out / "failures" / "cell.txt").exists()


@pytest.mark.slow
def test_results_on_ray_are_the_same_after_a_node_failed(tmp_path: Path) -> None:
    """Two nodes on this machine, one killed in the middle: its cell resumes on the other."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    script = Path(__file__).parents[1] / "support" / "ray_grid.py"
    program = [sys.executable, str(script), str(tmp_path / "killed"), "kill"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=True)
    # Ray's processes print to the same stream.
    (line,) = (x for x in done.stdout.splitlines() if x.startswith('{"finished"'))
    output = json.loads(line)
    from ray_grid import grid_cells

    assert output["finished"] and output["alive"] == 1
    assert run_grid(grid_cells(), tmp_path / "here", QuietDisplay())
    resumed = 0
    for cell in grid_cells():
        here, killed = (tmp_path / name / cell.label for name in ("here", "killed"))
        lines = [(folder / "metrics.jsonl").read_bytes() for folder in (here, killed)]
        assert lines[0] == lines[1]
        results = [json.loads((x / "results.json").read_text()) for x in (here, killed)]
        assert results[0]["last"] == results[1]["last"]
        resumed += len(json.loads((killed / "config.json").read_text()).get("resumed", []))
    assert resumed == 1
