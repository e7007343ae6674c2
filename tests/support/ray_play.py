"""A run whose players are on a Ray cluster of two nodes on this machine; one of them is killed.

    python tests/support/ray_play.py OUT

Prints JSON: the lines displayed, the rows of metrics when the node was killed, and the nodes alive.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from finished_cells import RecordingDisplay
from host_cues import TASK
from ray.cluster_utils import Cluster

from fp3o.experiments.framework.ray_players import RayPlayers
from fp3o.runs.placement import Placement
from fp3o.runs.run_config import RunConfig
from fp3o.runs.train import start_run

SETTINGS: dict[str, Any] = {
    "task": TASK, "algorithm": "mappo", "num_envs": 4, "blocks": 4, "rollout": 6, "minibatches": 1,
    "hidden": (8,), "epochs": 1, "eval_every": 0, "eval_episodes": 1, "final_episodes": 1,
    "steps": 24 * 400,
}  # fmt: skip


def config() -> RunConfig:
    return RunConfig().with_settings(SETTINGS).resolve()


def main(out: Path) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    display, written = RecordingDisplay(), []

    def kill_second_node() -> None:
        """Kill the second node after some iterations; no other has a core for its player."""
        path = out / "metrics.jsonl"
        while not path.exists() or len(path.read_bytes().splitlines()) < 20:
            time.sleep(0.02)
        written.append(len(path.read_bytes().splitlines()))
        cluster.remove_node(second, allow_graceful=False)

    threading.Thread(target=kill_second_node, daemon=True).start()
    placement = Placement(players=RayPlayers(2, address=cluster.address))
    run = start_run(config(), out, display, (), False, placement)
    assert run
    found = {"alive": sum(node["Alive"] for node in ray.nodes()), "lines": display.lines}
    print("\n" + json.dumps({"finished": run.finished, "written": written, **found}), flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
