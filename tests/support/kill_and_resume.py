"""Kill a run at random moments, resume it each time, and compare with an uninterrupted run.

    python tests/support/kill_and_resume.py --kills 20

Metrics and final weights must be identical bit for bit. The tests do this with a few kills.
"""

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fp3o.runs.checkpoint_files import arrays_digest, read_checkpoint

SETTINGS = shlex.split(
    "--algorithm fp3o --sharing partial --seeds 2 --num-envs 8 --rollout 6 "
    "--sequence-length 3 --hidden 8 --gru-size 8 --obs-norm --eval-every 4 --eval-episodes 8 "
    "--final-episodes 16 --save-every 0.05 "
    "--quiet --loggers none"
)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "fp3o", *words]


def begin(out: Path, task: str, steps: int, options: Sequence[str] = ()) -> list[str]:
    return command("train", task, "--steps", str(steps), "--out", str(out), *SETTINGS, *options)


def environment(cache: Path) -> dict[str, str]:
    """Compiled programs are kept: only the first process spends time on them."""
    kept = {"JAX_COMPILATION_CACHE_DIR": str(cache)} | dict(os.environ)
    return {**kept, "JAX_PLATFORMS": "cpu"}


def whole(
    out: Path, task: str, steps: int, env: dict[str, str], options: Sequence[str] = ()
) -> None:
    subprocess.run(begin(out, task, steps, options), env=env, check=True)


def interrupted(
    out: Path, task: str, steps: int, kills: int, env: dict[str, str], options: Sequence[str] = ()
) -> list[int]:
    """Kill `kills` times at random times of training; the lines after each kill, then resume."""
    left: list[int] = []
    metrics, rng = out / "metrics.jsonl", random.Random(0)
    lines = lambda: metrics.read_bytes().count(b"\n") if metrics.exists() else 0  # noqa: E731
    goals = sorted(rng.randrange(1, 2 * (steps // 48)) for _ in range(kills))
    for goal in goals:
        words = command("resume", str(out), *SETTINGS[-3:])
        started = (out / "config.json").exists()
        process = subprocess.Popen(words if started else begin(out, task, steps, options), env=env)
        while lines() < goal and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:  # else it was quicker
            left.append(lines())
    subprocess.run(command("resume", str(out), *SETTINGS[-3:]), env=env, check=True)
    return left


def differences(one: Path, other: Path) -> list[str]:
    """Files that should be equal and are not; of a checkpoint, its contents."""
    names = ["metrics.jsonl"]
    names += [str(p.relative_to(one)) for p in sorted(one.glob("policy/*/*/weights.safetensors"))]
    newest = sorted(one.glob("checkpoints/*.safetensors"))[-1].relative_to(one)
    unequal = [name for name in names if (one / name).read_bytes() != (other / name).read_bytes()]
    stored = [read_checkpoint(path / newest) for path in (one, other)]
    digests = {arrays_digest(checkpoint.arrays, {}) for checkpoint in stored}
    return unequal + [str(newest)] * (len(digests) > 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--task", default="mpe/simple_speaker_listener")
    parser.add_argument("--steps", type=int, default=48 * 200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder / "cache")
        whole(folder / "whole", options.task, options.steps, env)
        left = interrupted(folder / "killed", options.task, options.steps, options.kills, env)
        print(f"killed {len(left)} times, after {left} lines of metrics")
        unequal = differences(folder / "whole", folder / "killed")
    print("different: " + ", ".join(unequal) if unequal else "everything is equal, bit for bit")
    sys.exit(bool(unequal))


if __name__ == "__main__":
    main()
