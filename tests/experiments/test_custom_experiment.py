"""A custom experiment on a custom environment, from the command line to its files."""

import json
import sys
from pathlib import Path

import pytest

from fp3o.cli.main import main

MODULE = '''
"""An environment with a metric, and an experiment that compares two algorithms on it."""

from dataclasses import replace

import jax.numpy as jnp
import fp3o
from fp3o.envs.toys.probe import PROBES
from fp3o.experiments.framework.grid import Experiment
from fp3o.experiments.framework.scales import make_cells
from fp3o.experiments.framework.summary import Comparison, score_summary

fp3o.register_metric("half", label="Half of one", unit="m", better="higher")


class Guess(fp3o.Env):
    max_episode_steps = 3
    spec = replace(PROBES["credit"].spec, name="anything", episode_metrics=("half",))

    def reset(self, key):
        return PROBES["credit"].reset(key)

    def step(self, state, action, key):
        return PROBES["credit"].step(state, action, key)

    def observe(self, state):
        return PROBES["credit"].observe(state)

    def episode_metrics(self, state):
        return jnp.array([0.5])


VARIANTS = {"one": {"algorithm": "mappo"}, "other": {"algorithm": "ippo"}}
MINE = Experiment(
    name="mine",
    title="A custom experiment",
    question="Does it run?",
    cells=lambda scale: make_cells(["python:my_lab:Guess"], ["full"], VARIANTS, scale),
    summarise=score_summary(Comparison("one", "other", "")),
)
'''


@pytest.mark.usefixtures("registries")
def test_every_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report, tables, data and figures; what the command names is trusted."""
    (tmp_path / "my_lab.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["experiment", "my_lab:MINE", "--scale", "smoke", "--seeds", "1"]) == 0
    folder = Path("experiments/my_lab_mine-smoke")
    cells = [f"python_my_lab_Guess-full-{name}" for name in ("one", "other")]
    for name in ("report.html", "results.md", "tables.tex", "summary.json", "marl_eval.json"):
        assert (folder / name).stat().st_size > 100
    assert [*folder.glob("figures/*.png")] and [*folder.glob("figures/*.pdf")]
    assert json.loads((folder / "summary.json").read_text())["done"] == 2
    for cell in cells:
        assert (folder / cell / "results.json").exists()
        declared = json.loads((folder / cell / "config.json").read_text())["metrics"]
        assert declared["half"] == {"label": "Half of one", "unit": "m", "better": "higher"}
    page = (folder / "report.html").read_text()
    assert "A custom experiment" in page and "Half of one" in page and "Other metrics" in page
    monkeypatch.delitem(sys.modules, "my_lab")
    assert main(["experiment", "my_lab:MINE", "--scale", "smoke", "--seeds", "1", "--show"]) == 0
    assert main(["experiment", "my_lab:MNE"]) == 2
