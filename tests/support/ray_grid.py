"""A small grid on a Ray cluster of two nodes on this machine; one of them may be killed.

    python tests/support/ray_grid.py OUT kill

Prints JSON: the lines displayed, and the nodes alive. A program of its own, because Ray forks
processes and installs signal handlers.
"""

import json
import sys
import threading
import time
from pathlib import Path

import ray
from finished_cells import RecordingDisplay, smoke_cells
from ray.cluster_utils import Cluster

from fp3o.experiments.framework import folder_sync
from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.options import ExperimentOptions
from fp3o.experiments.framework.ray_backend import run_grid_on_ray

STEPS = 7500


def grid_cells() -> list[Cell]:
    """Two cells, long enough that both run when a node fails; a checkpoint per iteration."""
    return smoke_cells("mappo", "ippo", steps=STEPS, save_every=0, eval_every=0)


def main(out: Path, kill: bool) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    folder_sync.SYNC_SECONDS = 0.2
    display = RecordingDisplay()
    killed: list[list[str]] = []

    def kill_second_node() -> None:
        """Kill the second node once every cell has a checkpoint."""
        folders = [out / cell.label / "checkpoints" for cell in grid_cells()]
        while not all(any(folder.glob("*")) for folder in folders):
            time.sleep(0.05)
        killed.append([x.name for folder in folders for x in sorted(folder.glob("*"))])
        cluster.remove_node(second, allow_graceful=False)

    if kill:
        threading.Thread(target=kill_second_node, daemon=True).start()
    options = ExperimentOptions("grid", on="ray", address=cluster.address)
    finished = run_grid_on_ray(options, grid_cells(), out, display)
    alive = sum(node["Alive"] for node in ray.nodes())
    output = {"finished": finished, "lines": display.lines, "killed": killed, "alive": alive}
    print("\n" + json.dumps(output), flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] == ["kill"])
