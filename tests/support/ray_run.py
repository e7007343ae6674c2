"""One run on a Ray cluster of two nodes on this machine, one of which is killed.

    python tests/support/ray_run.py OUT OPTIONS...

Prints JSON: the exit status, the lines displayed, and the nodes alive. A program of its own,
because Ray forks processes and installs signal handlers.
"""

import json
import sys
import threading
import time
from pathlib import Path

import ray
from finished_cells import RecordingDisplay
from ray.cluster_utils import Cluster

from fp3o.cli import train as train_module
from fp3o.experiments.framework import folder_sync
from fp3o.runs import progress


def main(out: Path, arguments: list[str]) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    folder_sync.SYNC_SECONDS = 0.2
    display = RecordingDisplay()
    progress.make_display = lambda style="auto": display

    def kill_second_node() -> None:
        """Kill the second node once some checkpoints have arrived here."""
        while len([*(out / "checkpoints").glob("0000000[1-9]*")]) < 2:
            time.sleep(0.02)
        cluster.remove_node(second, allow_graceful=False)

    threading.Thread(target=kill_second_node, daemon=True).start()
    where = ["--on", "ray", "--address", cluster.address, "--processes", "2", "--out", str(out)]
    status = train_module.train_command([*arguments, *where])
    alive = sum(node["Alive"] for node in ray.nodes())
    output = {"finished": status == 0, "lines": display.lines, "alive": alive}
    print("\n" + json.dumps(output), flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
