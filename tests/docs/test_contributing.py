"""The additions described in CONTRIBUTING.md work, each with the files it names.

They are applied, as they are written there, to a copy of the package.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from doc_pages import ROOT, blocks

NEW_FILES = ("fp3o/envs/meeting/tasks.py", "fp3o/experiments/beyond/clip_range.py")
APPENDED_TO = ("fp3o/algorithms/table.py", "fp3o/sharing/schemes.py")
METRICS = "fp3o/learning/metrics.py"

PROGRAM = """
import fp3o
from fp3o.envs.check import check_env
from fp3o.experiments import find_experiment

assert fp3o.__file__.startswith({folder!r}), fp3o.__file__
assert check_env("meeting/line", num_envs=2, steps=12).ok
assert len(list(find_experiment("clip-range").cells("laptop"))) == 4
run = fp3o.train(
    "meeting/line", algorithm="soppo", sharing="pairs", num_envs=2, rollout=10, steps=40,
    hidden=(4,), epochs=1, minibatches=1, eval_episodes=2, final_episodes=2, out="run",
    progress="quiet", loggers=("none",),
)
steps, values = run.series("ratio_mean", stage=-1)
print(values.shape, run.config.learner.sharing)
"""


def test_additions_work(tmp_path: Path) -> None:
    """An algorithm, a scheme, a family, an experiment and a metric, in six files together."""
    shutil.copytree(ROOT / "fp3o", tmp_path / "fp3o", ignore=shutil.ignore_patterns("__pycache__"))
    named = {block.title: block.code for block in blocks(ROOT / "CONTRIBUTING.md") if block.title}
    assert {*named} == {*NEW_FILES, *APPENDED_TO, METRICS}
    for name in NEW_FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(named[name])
    (tmp_path / NEW_FILES[0]).with_name("__init__.py").touch()
    for name in APPENDED_TO:
        with (tmp_path / name).open("a") as file:
            file.write(f"\n\n{named[name]}\n")
    source = (tmp_path / METRICS).read_text()
    assert source.count("    return {\n") == 1
    line = f"        {named[METRICS].strip()}\n"
    (tmp_path / METRICS).write_text(source.replace("    return {\n", f"    return {{\n{line}"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 2, 2) pairs"
