"""Running cells on a Ray cluster, with all results on the machine that started them.

A cell works in a temporary folder of its node. Every few seconds, changed files are sent to a
`ResultStore` on the starting machine, which writes them to the experiment's folder as if the cell
had run there. If a node fails, another node resumes its cell from the newest checkpoint in the
store. Nodes need no shared disk, only fp3o itself.
"""

import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fp3o.experiments.framework.folder_sync import FolderSync, ResultStore, write_file
from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.options import WhereOptions
from fp3o.experiments.framework.ray_cluster import connect, import_ray
from fp3o.experiments.framework.run_grid import FAILURES, CellStatus, run_cell, unfinished_cells
from fp3o.runs.progress import Display, QuietDisplay, duration_text

STOP_SECONDS = 60.0
"""Seconds that cells have to save a checkpoint after an interrupt."""


def run_remote_cell(cell: Cell, store: Any) -> CellStatus:
    """Run a cell on a node: from the files in the store, sending back what changes."""
    ray = import_ray()

    def put(changed: Any, removed: Any) -> None:
        ray.get(store.put.remote(cell.label, changed, removed))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, content in ray.get(store.get.remote(cell.label)).items():
            write_file(folder / cell.label / path, content)
        with FolderSync(folder / cell.label, put):
            status = run_cell(cell, folder, QuietDisplay())
        failure = folder / FAILURES / f"{cell.label}.txt"
        error = failure.read_text() if failure.exists() else ""
        ray.get(store.set_failure.remote(cell.label, error))
    return status


def run_grid_on_ray(
    options: WhereOptions, cells: Sequence[Cell], out: Path, display: Display
) -> bool:
    """Run all unfinished cells on a Ray cluster; False if it was interrupted."""
    ray = import_ray()
    left = unfinished_cells(cells, out, display)
    if not left:
        return True
    connect(ray, options.address, display)
    out.mkdir(parents=True, exist_ok=True)
    store = start_store(ray, out)
    task = _remote_task(ray, options)
    labels = {task.remote(cell, store): cell.label for cell in left}
    display.say(f"{len(left)} cells on {len(ray.nodes())} nodes, {_resources_text(ray, options)}")
    try:
        return _wait_for_cells(ray, labels, store, display)
    except KeyboardInterrupt:
        display.say("stopping; the cells save a checkpoint ...")
        _cancel(ray, [*labels])
        return False
    finally:
        ray.kill(store)


def _remote_task(ray: Any, options: WhereOptions) -> Any:
    """`run_remote_cell` as a Ray task with the resources of a cell."""
    # Cells that share a GPU must not preallocate most of its memory each.
    shared = {"env_vars": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}} if options.gpus else {}
    return ray.remote(
        num_cpus=options.cpus, num_gpus=options.gpus, max_retries=options.retries,
        runtime_env=shared,
    )(run_remote_cell)  # fmt: skip


def _cancel(ray: Any, tasks: Sequence[Any]) -> None:
    """Let tasks save a checkpoint, then end them."""
    for task in tasks:
        ray.cancel(task)
    ray.wait(tasks, num_returns=len(tasks), timeout=STOP_SECONDS)
    for task in tasks:
        ray.cancel(task, force=True)


def start_store(ray: Any, out: Path) -> Any:
    """A `ResultStore` as an actor on this machine."""
    strategies = import_module("ray.util.scheduling_strategies")
    node = ray.get_runtime_context().get_node_id()
    here = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(ResultStore).remote(str(out.resolve()))


def _wait_for_cells(ray: Any, labels: dict[Any, str], store: Any, display: Display) -> bool:
    """Wait for all cells and print a line for each; False if some cell was stopped."""
    start, total, finished = time.perf_counter(), len(labels), True
    waiting = [*labels]
    while waiting:
        ready, waiting = ray.wait(waiting, num_returns=1)
        status = _cell_status(ray, ready[0], labels[ready[0]], store)
        number = total - len(waiting)
        left = duration_text((time.perf_counter() - start) / number * len(waiting))
        ending = f"FAILED: {status.error.splitlines()[0]}" if status.error else "done"
        display.say(f"{number}/{total} {status.label} {ending}, about {left} left")
        finished &= status.finished or bool(status.error)
    return finished


def _cell_status(ray: Any, task: Any, label: str, store: Any) -> CellStatus:
    try:
        return ray.get(task)
    except ray.exceptions.RayError as error:  # its nodes failed more often than it is retried
        text = f"{type(error).__name__}: {error}"
        ray.get(store.set_failure.remote(label, text))
        return CellStatus(label, False, text)


def _resources_text(ray: Any, options: WhereOptions) -> str:
    """CPU cores and GPUs of the cluster, and whether GPUs are used."""
    resources = ray.cluster_resources()
    text = f"{resources.get('CPU', 0):g} cores, {resources.get('GPU', 0):g} GPUs"
    unused = resources.get("GPU") and not options.gpus
    return f"{text} (not used without --gpus)" if unused else text
