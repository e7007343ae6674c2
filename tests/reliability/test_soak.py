"""Long runs with frequent checkpoints and evaluations: what they use stays the same."""

import signal
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import Campaign, not_small
from kill_and_resume import environment
from process_watch import Usage, wait_for, watch

from fp3o.runs.directory import RunDirectory

SETTINGS = (
    "--algorithm mappo --num-envs 2 --rollout 20 --hidden 8 --epochs 1 --steps 1e12 --eval-every 3 "
    "--eval-episodes 2 --save-every 0 --keep-checkpoints 2 --loggers tensorboard"
)
TASKS = {
    "compiled": "probe/credit",
    "workers": "pettingzoo:tiny_zoo:Counting --env.folder .",
}
ALLOWED = Usage(memory=12, files=0, threads=1, children=0, disk=0.1, entries=1)
"""Growth between the second quarter of the time and the last one."""


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@not_small
def test_soak(campaign: Campaign, task: str, tmp_path: Path) -> None:
    """Memory, open files, threads, child processes and disk stay flat."""
    out, seconds = tmp_path / "run", campaign.tries(0, 80, 3600)
    words = [sys.executable, "-m", "fp3o", "train", *task.split(), "--out", str(out)]
    support = str(Path(__file__).parents[1] / "support")
    env = environment(tmp_path / "cache") | {"PYTHONPATH": f"{Path.cwd()}:{support}"}
    process = subprocess.Popen([*words, *SETTINGS.split()], env=env, stdout=subprocess.DEVNULL)
    try:
        wait_for(out / "policy", 300)
        found = watch(process.pid, out, seconds, samples=80)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) in (0, 130, 143)
    finally:
        process.kill()
        process.wait()
    early, late = (_medians(part) for part in (found[20:40], found[60:]))
    assert {name: growth for name, growth, most in _growths(early, late) if growth > most} == {}
    newest = RunDirectory(out).newest()
    assert newest is not None
    leftovers = [path.name for path in out.rglob(".*")]
    assert leftovers == []
    numbers = f"{late.memory:.0f} MiB ({late.memory - early.memory:+.1f})"
    campaign.count(f"{task}: {seconds} s, {newest.iteration:,} checkpoints, {numbers}")


def _medians(part: list[Usage]) -> Usage:
    return Usage(*map(statistics.median, zip(*part, strict=True)))


def _growths(early: Usage, late: Usage) -> list[tuple[str, float, float]]:
    rows = zip(Usage._fields, early, late, ALLOWED, strict=True)
    return [(name, after - before, most) for name, before, after, most in rows]
