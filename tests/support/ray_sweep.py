"""A small sweep on a Ray cluster of two nodes on this machine.

    python tests/support/ray_sweep.py OUT

Prints JSON: whether it is finished. A program of its own, because Ray forks processes and installs
signal handlers.
"""

import json
import sys
from pathlib import Path

import ray
from ray.cluster_utils import Cluster
from small_sweeps import small_settings

from fp3o.experiments.framework.options import WhereOptions
from fp3o.experiments.sweep.launch import run_sweep
from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.runs.progress import make_display


def grid_sweep() -> SweepSettings:
    """Four trials of two programs."""
    return small_settings(
        "epochs=1,2 actor_lr=1e-3,1e-2", sampler="grid", trials=None, parallel=1, pruner="none"
    )


def main(out: Path) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    where = WhereOptions(on="ray", address=cluster.address)
    result = run_sweep(grid_sweep(), out, make_display("plain"), where)
    print("\n" + json.dumps({"finished": result.finished}), flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
