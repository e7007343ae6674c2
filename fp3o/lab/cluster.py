"""Cells on a Ray cluster, one machine or many, and their results in one place.

A cell works in a folder of its node. What changes there goes every few seconds to a keeper on the
machine that asked, in the folder of the experiment, where it looks as if it had been run there. A
cell whose node dies is taken up by another one from what the keeper has: its newest checkpoint.
Nodes need no common disk, only fp3o itself.
"""

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.errors import MissingExtraError
from fp3o.lab.conduct import FAILURES, Outcome, carry_out, done
from fp3o.lab.grid import Cell
from fp3o.progress import Display, Quiet, clock

SYNC = 2.0
"""Seconds between two looks at what has changed in a cell's folder."""
PRIVATE = ("lock",)
"""Files that belong to the process that works there."""

Files = Mapping[str, bytes]


class Cluster(NamedTuple):
    """Where cells go, and what each of them may take."""

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    retries: int = 3
    """How often a cell is taken up again whose node has died."""


class Keeper:
    """The folder of an experiment, for those who cannot reach it."""

    def __init__(self, out: str):
        self._out = Path(out)

    def take(self, label: str) -> Files:
        """All that is there of a cell."""
        folder = self._out / label
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in paths
            if path.name not in PRIVATE
        }

    def put(self, label: str, changed: Files, gone: Sequence[str]) -> None:
        """Write what has changed, the newest things last, and forget what is gone."""
        for name, content in changed.items():
            write(self._out / label / name, content)
        for name in gone:
            (self._out / label / name).unlink(missing_ok=True)

    def fail(self, label: str, words: str) -> None:
        """Write down why a cell has failed; without words: it has not."""
        path = self._out / FAILURES / f"{label}.txt"
        if words:
            write(path, words.encode())
        else:
            path.unlink(missing_ok=True)


def write(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there: it is seen as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    beside.replace(path)


class Mirror:
    """Tells a keeper what changes in a folder, every few seconds and at the end."""

    def __init__(self, folder: Path, put: Any):
        self._folder, self._put = folder, put
        self._known: dict[str, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._known = {name: stamp for name, (stamp, _) in self._look().items()}

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.tell()

    def tell(self) -> None:
        """What has changed since the last time, in one message.

        Checkpoints are read before the metrics, which are then at least as long as a checkpoint
        says, and written after them.
        """
        now = self._look()
        new = [name for name, (stamp, _) in now.items() if self._known.get(name) != stamp]
        gone = [name for name in self._known if name not in now]
        changed: dict[str, bytes] = {}
        for name in sorted(new, key=lambda name: not name.startswith("checkpoints")):
            try:
                changed[name] = now[name][1].read_bytes()
            except FileNotFoundError:  # an old checkpoint has just been removed
                continue
        if changed or gone:
            self._put(dict(reversed(changed.items())), gone)
        self._known = {name: stamp for name, (stamp, _) in now.items()}

    def _watch(self) -> None:
        while not self._stop.wait(SYNC):
            self.tell()

    def _look(self) -> dict[str, tuple[tuple[int, int], Path]]:
        """Every file's size and age."""
        found = {}
        for path in self._folder.rglob("*"):
            if path.name in PRIVATE or path.name.startswith("."):
                continue
            try:
                told = path.stat()
            except FileNotFoundError:
                continue
            if path.is_file():
                name = str(path.relative_to(self._folder))
                found[name] = ((told.st_size, told.st_mtime_ns), path)
        return found


def needed() -> Any:
    """Ray, or an error that says how to get it."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error


def work_on(cell: Cell, keeper: Any) -> Outcome:
    """A cell's work on some node: from what the keeper has to what the keeper gets."""
    ray = needed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, content in ray.get(keeper.take.remote(cell.label)).items():
            write(folder / cell.label / path, content)
        put = lambda changed, gone: ray.get(keeper.put.remote(cell.label, changed, gone))  # noqa: E731
        with Mirror(folder / cell.label, put):
            outcome = carry_out(cell, folder, Quiet())
        failure = folder / FAILURES / f"{cell.label}.txt"
        ray.get(keeper.fail.remote(cell.label, failure.read_text() if failure.exists() else ""))
    return outcome


def conduct_on(cluster: Cluster, cells: Sequence[Cell], out: Path, screen: Display) -> bool:
    """Do all cells that are not done on a Ray cluster; False: somebody asked to stop."""
    ray = needed()
    left = [cell for cell in cells if not done(cell, out)]
    screen.say(f"{len(cells) - len(left)} of {len(cells)} cells are done already")
    if not left:
        return True
    ray.init(address=cluster.address, ignore_reinit_error=True, log_to_driver=False)
    strategies = import_module("ray.util.scheduling_strategies")
    node = ray.get_runtime_context().get_node_id()
    here = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    out.mkdir(parents=True, exist_ok=True)
    hire = ray.remote(num_cpus=0, scheduling_strategy=here)(Keeper)
    keeper = hire.remote(str(out.resolve()))
    task = ray.remote(
        num_cpus=cluster.cpus, num_gpus=cluster.gpus, max_retries=cluster.retries
    )(work_on)  # fmt: skip
    labels = {task.remote(cell, keeper): cell.label for cell in left}
    screen.say(f"{len(left)} cells on {len(ray.nodes())} nodes, {cluster_words(ray)}")
    try:
        return _gather(ray, labels, keeper, screen)
    except KeyboardInterrupt:
        for reference in labels:
            ray.cancel(reference, force=True)
        return False
    finally:
        ray.kill(keeper)


def _gather(ray: Any, labels: dict[Any, str], keeper: Any, screen: Display) -> bool:
    """Wait for all cells, and tell of each."""
    began, total, finished = time.perf_counter(), len(labels), True
    waiting = [*labels]
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        outcome = _outcome(ray, ready[0], labels[ready[0]], keeper)
        number = total - len(waiting)
        left = clock((time.perf_counter() - began) / number * len(waiting))
        ending = f"FAILED: {outcome.error.splitlines()[0]}" if outcome.error else "done"
        screen.say(f"{number}/{total} {outcome.label} {ending}, about {left} left")
        finished &= outcome.finished or bool(outcome.error)
    return finished


def _outcome(ray: Any, reference: Any, label: str, keeper: Any) -> Outcome:
    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:  # its nodes have died more often than it is retried
        ray.get(keeper.fail.remote(label, f"{type(error).__name__}: {error}"))
        return Outcome(label, False, f"{type(error).__name__}: {error}")


def cluster_words(ray: Any) -> str:
    """The cluster's cores and graphics processors."""
    there = ray.cluster_resources()
    return f"{there.get('CPU', 0):g} cores, {there.get('GPU', 0):g} GPUs"
