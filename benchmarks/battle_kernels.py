"""Kernels of the SMAC tasks on a GPU: how often each runs in a step, and how long.

    python benchmarks/battle_kernels.py --maps 3s5z 2c_vs_64zg --top 20

Random actions as in `fp3o bench battles`; the profiler records one chunk of steps.
"""

import argparse
import gzip
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import jax

from fp3o.bench.battles import BATTLE_STEPS as CHUNK
from fp3o.bench.compiled_jobs import random_play_program
from fp3o.envs.registry import get_task


def kernel_times(run: Any, carry: Any) -> dict[str, list[float]]:
    """Durations of all kernels of one call in microseconds, by name."""
    carry, _ = jax.block_until_ready(run(carry, jax.random.key(0)))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            jax.block_until_ready(run(carry, jax.random.key(1)))
        file = next(Path(folder).rglob("perfetto_trace.json.gz"))
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    named = [event for event in events if event.get("name") == "process_name"]
    devices = {event["pid"] for event in named if "/device:GPU" in event["args"]["name"]}
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and "Stream" in event["args"]["name"]
    }
    times = defaultdict(list)
    for event in events:
        on_stream = (event.get("pid"), event.get("tid")) in threads
        if event.get("ph") == "X" and event["pid"] in devices and on_stream:
            times[event["name"]].append(float(event["dur"]))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Kernels of the SMAC tasks on a GPU.")
    parser.add_argument("--maps", nargs="*", default=["3s5z"])
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--top", type=int, default=20, help="number of kernels to list")
    options = parser.parse_args()
    if jax.default_backend() != "gpu":
        parser.error(f"this needs a GPU, not the backend {jax.default_backend()!r}")
    for name in options.maps:
        env = get_task(f"smac/{name}").vec_env("paper", options.envs)
        times = kernel_times(*random_play_program(env, CHUNK))
        total, count = sum(map(sum, times.values())), sum(map(len, times.values()))
        print(f"{name}: {count / CHUNK:.1f} kernels, {total / CHUNK:.0f} microseconds per step")
        for kernel in sorted(times, key=lambda name: -sum(times[name]))[: options.top]:
            runs = times[kernel]
            mean, share = sum(runs) / len(runs), 100 * sum(runs) / total
            print(f"  {share:5.1f} %  {len(runs) / CHUNK:5.1f} x {mean:7.2f}  {kernel}", flush=True)


if __name__ == "__main__":
    main()
