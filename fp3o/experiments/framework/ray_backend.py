"""Cells on a Ray cluster, one machine or many, and their results in one place.

A cell works in a folder of its node. What changes there goes every few seconds to a keeper on the
machine that asked, in the folder of the experiment, where it looks as if it had been run there. A
cell whose node dies is taken up by another one from what the keeper has: its newest checkpoint.
Nodes need no common disk, only fp3o itself.
"""

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.errors import MissingExtraError
from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.run_grid import FAILURES, WORKS, CellStatus, run_cell, to_do
from fp3o.runs.progress import Display, QuietDisplay, duration_text

SYNC = 2.0
"""Seconds between two looks at what has changed in a cell's folder."""

GOODBYE = 60.0
"""Seconds that cells have to save themselves when somebody asks to stop."""

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


class ResultStore:
    """The folder of an experiment, for those who cannot reach it."""

    def __init__(self, out: str):
        self._out = Path(out)

    def take(self, label: str) -> Files:
        """All that is there of a cell."""
        folder = self._out / label
        return {name: path.read_bytes() for name, path in files(folder).items()}

    def put(self, label: str, changed: Files, gone: Sequence[str]) -> None:
        """Write what has changed, and forget what is gone.

        Whenever this is cut short, a run can go on from what is there: first what makes it a run,
        then all that a checkpoint counts on, then checkpoints, and last that it is done.
        """
        for name in sorted(changed, key=_turn):
            write(self._out / label / name, changed[name])
        for name in gone:
            (self._out / label / name).unlink(missing_ok=True)

    def fail(self, label: str, words: str) -> None:
        """Write down why a cell has failed; without words: it has not."""
        path = self._out / FAILURES / f"{label}.txt"
        if words:
            write(path, words.encode())
        else:
            path.unlink(missing_ok=True)


def _turn(name: str) -> int:
    if name == "config.json":
        return 0
    if name in {work.result for work in WORKS.values()}:
        return 3
    return 2 if name.startswith("checkpoints") else 1


def write(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there: it is seen as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    beside.replace(path)


def files(folder: Path) -> dict[str, Path]:
    """The files of a cell by their names inside; not those that are being written, nor locks.

    Folders may go while they are looked at: policies are replaced as a whole.
    """
    found = {}
    for place, inside, names in os.walk(folder):
        inside[:] = [name for name in inside if not name.startswith(".")]
        for name in names:
            if name not in PRIVATE and not name.startswith("."):
                path = Path(place) / name
                found[str(path.relative_to(folder))] = path
    return found


class FolderSync:
    """Tells a keeper what changes in a folder, every few seconds and at the end."""

    def __init__(self, folder: Path, put: Callable[[Files, Sequence[str]], None]):
        self._folder, self._put = folder, put
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._known = self._stamps()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.tell()

    def tell(self) -> None:
        """What has changed since the last time, in one message.

        Checkpoints are read before the metrics, which are then at least as long as they say.
        """
        now = self._stamps()
        new = [name for name, stamp in now.items() if self._known.get(name) != stamp]
        gone = [name for name in self._known if name not in now]
        changed: dict[str, bytes] = {}
        for name in sorted(new, key=lambda name: not name.startswith("checkpoints")):
            with contextlib.suppress(FileNotFoundError):  # it has just been replaced or removed
                changed[name] = (self._folder / name).read_bytes()
        if changed or gone:
            self._put(changed, gone)
        self._known = {name: stamp for name, stamp in now.items() if name in changed} | {
            name: stamp for name, stamp in self._known.items() if name in now and name not in new
        }

    def _watch(self) -> None:
        while not self._stop.wait(SYNC):
            try:
                self.tell()
            except (
                Exception
            ) as error:  # the next time may be better; the last one, at the end, counts
                print(f"what changed could not be sent: {error!r}", file=sys.stderr)

    def _stamps(self) -> dict[str, tuple[int, int]]:
        """Every file's size and age."""
        found = {}
        for name, path in files(self._folder).items():
            with contextlib.suppress(FileNotFoundError):
                told = path.stat()
                found[name] = told.st_size, told.st_mtime_ns
        return found


def needed() -> Any:
    """Ray, or an error that says how to get it."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error


def work_on(cell: Cell, keeper: Any) -> CellStatus:
    """A cell's work on some node: from what the keeper has to what the keeper gets."""
    ray = needed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, content in ray.get(keeper.take.remote(cell.label)).items():
            write(folder / cell.label / path, content)
        put = lambda changed, gone: ray.get(keeper.put.remote(cell.label, changed, gone))  # noqa: E731
        with FolderSync(folder / cell.label, put):
            outcome = run_cell(cell, folder, QuietDisplay())
        failure = folder / FAILURES / f"{cell.label}.txt"
        ray.get(keeper.fail.remote(cell.label, failure.read_text() if failure.exists() else ""))
    return outcome


def conduct_on(cluster: Cluster, cells: Sequence[Cell], out: Path, screen: Display) -> bool:
    """Do all cells that are not done on a Ray cluster; False: somebody asked to stop."""
    ray = needed()
    if cluster.address and cluster.address.startswith("ray://"):
        raise ValueError(
            f"{cluster.address} is reached through a proxy, on whose machine results would stay: "
            "run this on a node of the cluster, with its address as `ray status` tells it"
        )
    left = to_do(cells, out, screen)
    if not left:
        return True
    ray.init(address=cluster.address, ignore_reinit_error=True, log_to_driver=False)
    out.mkdir(parents=True, exist_ok=True)
    keeper = _hired(ray, out)
    # Cells that share a graphics processor must not take most of its memory each.
    shared = {"env_vars": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}} if cluster.gpus else {}
    task = ray.remote(
        num_cpus=cluster.cpus, num_gpus=cluster.gpus, max_retries=cluster.retries,
        runtime_env=shared,
    )(work_on)  # fmt: skip
    labels = {task.remote(cell, keeper): cell.label for cell in left}
    screen.say(f"{len(left)} cells on {len(ray.nodes())} nodes, {cluster_words(ray, cluster)}")
    try:
        return _gather(ray, labels, keeper, screen)
    except KeyboardInterrupt:
        screen.say("stopping; what the cells have learned is saved ...")
        for reference in labels:
            ray.cancel(reference)
        ray.wait([*labels], num_returns=len(labels), timeout=GOODBYE)
        for reference in labels:
            ray.cancel(reference, force=True)
        return False
    finally:
        ray.kill(keeper)


def _hired(ray: Any, out: Path) -> Any:
    """A keeper on this machine."""
    strategies = import_module("ray.util.scheduling_strategies")
    node = ray.get_runtime_context().get_node_id()
    here = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(ResultStore).remote(str(out.resolve()))


def _gather(ray: Any, labels: dict[Any, str], keeper: Any, screen: Display) -> bool:
    """Wait for all cells, and tell of each."""
    began, total, finished = time.perf_counter(), len(labels), True
    waiting = [*labels]
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        outcome = _outcome(ray, ready[0], labels[ready[0]], keeper)
        number = total - len(waiting)
        left = duration_text((time.perf_counter() - began) / number * len(waiting))
        ending = f"FAILED: {outcome.error.splitlines()[0]}" if outcome.error else "done"
        screen.say(f"{number}/{total} {outcome.label} {ending}, about {left} left")
        finished &= outcome.finished or bool(outcome.error)
    return finished


def _outcome(ray: Any, reference: Any, label: str, keeper: Any) -> CellStatus:
    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:  # its nodes have died more often than it is retried
        ray.get(keeper.fail.remote(label, f"{type(error).__name__}: {error}"))
        return CellStatus(label, False, f"{type(error).__name__}: {error}")


def cluster_words(ray: Any, cluster: Cluster) -> str:
    """The cluster's cores and graphics processors, and whether they are used."""
    there = ray.cluster_resources()
    words = f"{there.get('CPU', 0):g} cores, {there.get('GPU', 0):g} GPUs"
    idle = there.get("GPU") and not cluster.gpus
    return f"{words} (which cells do not use without --gpus)" if idle else words
