"""A small grid on a Ray cluster of two nodes on this machine; one of them may be killed.

    python tests/ray_grid.py OUT kill

Prints JSON: what was said, and which nodes worked. Run as a program: Ray warns, forks and hooks.
"""

import json
import sys
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster as Machines

from fp3o.experiments.framework import ray_backend as cluster
from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.scales import cells, rows
from fp3o.runs.progress import QuietDisplay

STEPS = 7500


def grid() -> list[Cell]:
    """Two cells, long enough that both run when a node dies; checkpoints after every iteration."""
    made = cells(["mpe/simple_speaker_listener"], ["full"], rows("mappo", "ippo"), "smoke")
    told = {"steps": STEPS, "save_every": 0, "eval_every": 0}
    return [Cell(x.task, x.sharing, x.variant, x.config.with_settings(told)) for x in made]


class Told(QuietDisplay):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, text: str) -> None:
        self.words.append(text)


def main(out: Path, kill: bool) -> None:
    machines = Machines(initialize_head=True, head_node_args={"num_cpus": 1})
    second = machines.add_node(num_cpus=1)
    machines.wait_for_nodes()
    cluster.SYNC = 0.2
    told = Told()
    killed: list[list[str]] = []

    def strike() -> None:
        """Kill the second node once every cell has left a checkpoint."""
        folders = [out / cell.label / "checkpoints" for cell in grid()]
        while not all(any(folder.glob("*")) for folder in folders):
            time.sleep(0.05)
        killed.append([x.name for folder in folders for x in sorted(folder.glob("*"))])
        machines.remove_node(second, allow_graceful=False)

    if kill:
        threading.Thread(target=strike, daemon=True).start()
    order = cluster.Cluster(machines.address, 1.0, 0.0, 3)
    whole = cluster.conduct_on(order, grid(), out, told)
    alive = sum(node["Alive"] for node in ray.nodes())
    found = {"whole": whole, "said": told.words, "killed": killed, "alive": alive}
    print("\n" + json.dumps(found), flush=True)
    ray.shutdown()
    machines.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] == ["kill"])
