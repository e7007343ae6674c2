"""Cells on a Ray cluster: copying folders, failing nodes."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from finished_cells import RecordingDisplay

from fp3o.errors import SettingError
from fp3o.experiments.framework import folder_sync
from fp3o.experiments.framework.folder_sync import FolderSync, ResultStore
from fp3o.experiments.framework.ray_cluster import ClusterError, connect
from fp3o.experiments.framework.run_grid import run_grid
from fp3o.runs.progress import QuietDisplay
from fp3o.runs.train import start_run


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


def run_program(name: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a program with a Ray cluster prints, among what Ray's processes print."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    script = Path(__file__).parents[1] / "support" / name
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=600,
        check=False, env={**os.environ, "PYTHONPATH": os.getcwd(), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = (x for x in done.stdout.splitlines() if x.startswith('{"finished"'))
    return json.loads(line)


class FakeRay:
    """As much of Ray as `connect` uses: a cluster at one address, or none."""

    def __init__(self, found: str = "", error: Exception | None = None) -> None:
        self.exceptions, self.calls = SimpleNamespace(RayError=KeyError), []
        self._found, self._error = found, error

    def init(self, address: str, **options: Any) -> None:
        self.calls.append(address)
        if address != "local" and self._error:
            raise self._error
        if address == "auto" and not self._found:
            raise ConnectionError("no cluster")

    def nodes(self) -> list[dict[str, str]]:
        return [{"NodeManagerAddress": "192.168.0.7"}]


def test_open_clusters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says that whoever reaches a cluster without tokens can run code on it."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    constants = importlib.import_module("ray._private.ray_constants")
    monkeypatch.setattr(constants, "ENABLE_RAY_CLUSTER", True)
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    brought, own, closed = RecordingDisplay(), RecordingDisplay(), RecordingDisplay()
    connect(FakeRay("head:6379"), None, brought)
    assert len(brought.lines) == 1 and "can run code" in brought.lines[0]
    ray = FakeRay()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # the user's own choice
    connect(ray, None, own)
    assert ray.calls == ["auto", "local"] and constants.ENABLE_RAY_CLUSTER is False
    assert "192.168.0.7" in own.lines[0] and "can run code" in own.lines[1]
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    connect(FakeRay(), "head:6379", closed)
    assert closed.lines == []


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError, KeyError])
def test_a_cluster_that_cannot_be_reached(error: type[Exception]) -> None:
    """It is a message without a trace, and no other cluster is started instead."""
    ray = FakeRay(error=error("refused\x1b[2J\nmore"))
    with pytest.raises(ClusterError, match=r"no connection to a Ray cluster: '?refused"):
        connect(ray, "head:6379", QuietDisplay())
    with pytest.raises(SettingError, match="client address"):
        connect(ray, "ray://head:10001", QuietDisplay())
    assert ray.calls == ["head:6379"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's lists of sockets")
def test_a_cluster_started_here_is_for_this_user_of_this_machine(tmp_path: Path) -> None:
    """No process listens on an interface that others can reach, and a token is asked for."""
    output = run_program("ray_listeners.py", HOME=str(tmp_path))
    assert output["listeners"] == ["127.0.0.1"] and output["mode"] == "token"
    assert output["left"] == output["lines"] == []


@pytest.mark.slow
def test_results_on_ray_are_the_same_after_a_node_failed(tmp_path: Path) -> None:
    """Two nodes on this machine, one killed in the middle: its cell resumes on the other."""
    output = run_program("ray_grid.py", str(tmp_path / "killed"), "kill")
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


@pytest.mark.slow
def test_players_on_ray_change_no_bit_if_a_node_fails(tmp_path: Path) -> None:
    """Two players, one of which is lost for good: the other plays its blocks."""
    output = run_program("ray_play.py", str(tmp_path / "ray"))
    from ray_play import config

    assert output["alive"] == 1 and 20 <= output["written"][0] < 400
    assert sum("was lost" in line for line in output["lines"]) == 1, output["lines"]
    start_run(config(), tmp_path / "here", QuietDisplay(), (), False)
    lines = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("here", "ray")]
    assert lines[0] == lines[1]
