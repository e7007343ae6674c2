"""Processes that are killed at any moment, two writers, and readers beside a writer."""

import itertools
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaigns import Campaign, not_small
from kill_and_resume import differences, environment
from process_watch import wait_for

import fp3o
from fp3o.reports import report, summary_text

SUPPORT = Path(__file__).parents[1] / "support"
SETTINGS = shlex.split(
    "--algorithm mappo --seeds 2 --num-envs 4 --rollout 6 --hidden 8 --epochs 1 --eval-every 3 "
    "--eval-episodes 4 --final-episodes 8 --save-every 0 --quiet --loggers none"
)
RESUME = ("--quiet", "--loggers", "none")
ROUND = 12
"""Most kills before a run may finish and is compared."""


def command(out: Path, steps: int) -> list[str]:
    """Arguments that start a run, or resume it where it was started."""
    if (out / "config.json").exists():
        return ["resume", str(out), *RESUME]
    return ["train", "probe/credit", "--out", str(out), "--steps", str(steps), *SETTINGS]


def kill_inside_a_write(out: Path, steps: int, env: dict[str, str], rng: random.Random) -> str:
    number = str(rng.randrange(1, 400))
    words = [sys.executable, str(SUPPORT / "failing_writes.py"), number, str(out)]
    done = subprocess.run([*words, *command(out, steps)], env=env, check=False, timeout=300)
    return "killed inside a write" if done.returncode == -signal.SIGKILL else "finished"


def send_signal(out: Path, steps: int, env: dict[str, str], rng: random.Random) -> str:
    kind = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    words = [sys.executable, "-m", "fp3o", *command(out, steps)]
    size = _length(out)
    process = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL)
    while _length(out) <= size and process.poll() is None and rng.random() < 0.995:
        time.sleep(0.02)  # from time to time it is killed before it writes
    time.sleep(rng.uniform(0, 0.1))
    process.send_signal(kind)
    code = process.wait(120)
    return f"stopped by {kind.name}" if code not in (0, 1) else "finished"


def _length(out: Path) -> int:
    path = out / "metrics.jsonl"
    return path.stat().st_size if path.exists() else 0


@not_small
def test_kills(campaign: Campaign, tmp_path: Path) -> None:
    """Runs that are killed again and again end as an untouched one, bit for bit."""
    rng, env = random.Random(campaign.seed), environment(tmp_path / "cache")
    steps, left = 24 * 150, campaign.tries(0, 4, 200)
    whole = [sys.executable, "-m", "fp3o", *command(tmp_path / "whole", steps)]
    subprocess.run(whole, env=env, check=True)
    for number in itertools.count():
        out = tmp_path / f"run-{number}"
        for _ in range(ROUND):
            attack = rng.choice([kill_inside_a_write, kill_inside_a_write, send_signal])
            result = attack(out, steps, env, rng)
            if result == "finished":
                break
            campaign.count(result)
        subprocess.run([sys.executable, "-m", "fp3o", *command(out, steps)], env=env, check=True)
        assert differences(tmp_path / "whole", out) == []
        assert list(out.rglob(".*")) == []
        if campaign.attacks >= left:
            break


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    """Beside a run that writes, another writer is refused and readers see whole things."""
    out, env = tmp_path / "run", environment(tmp_path / "cache")
    words = [sys.executable, "-m", "fp3o", *command(out, 10**9)]
    process = subprocess.Popen(words, env=env)
    try:
        wait_for(out / "policy" / "seed-1" / "best", 120)
        with pytest.raises(fp3o.RunError, match="another process is writing"):
            fp3o.resume(out, progress="quiet")
        finish = time.monotonic() + 4
        steps: list[int] = []
        while time.monotonic() < finish:
            policy = fp3o.Policy.load(out, which="last", policy_seed=1)
            steps.append(policy.card.provenance["step"])
            assert fp3o.Policy.load(out).card.spec.num_agents == 3
            assert fp3o.Run.load(out).step >= steps[-1]
            assert "MAPPO" in summary_text([out])
        page = report([out], tmp_path / "page.html", figures=False)
        assert "probe/credit" in page.read_text()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    assert steps == sorted(steps)
    assert len({*steps}) > 1
