"""Controls of FP3O against MAPPO: equal gradient steps, and FP3O without its dependent step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_runs import read_metrics

import fp3o
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.experiments import find_experiment
from fp3o.experiments.framework import scales
from fp3o.experiments.framework.run_data import run_name
from fp3o.experiments.framework.scales import (
    FP3O_HALF,
    MAPPO_TWICE,
    cell_config,
    controls,
    with_controls,
)
from fp3o.reports.data.record import RunRecord

TASK = "mpe/simple_speaker_listener"


def stage_epochs(variant: Mapping[str, Any]) -> list[int]:
    """The epochs of every stage of an iteration, as the learner makes them."""
    config = cell_config(TASK, "full", "smoke", **variant).learner
    stage = SCHEDULES[config.row.schedule](
        jax.random.key(0), jnp.zeros(2), config.epochs, config.row
    )
    return stage.epochs.tolist()


@pytest.mark.parametrize(
    ("epochs", "twice", "half"),
    [(2, 4, [1, 1]), (5, 10, [3, 2]), (10, 20, [5, 5]), (15, 30, [8, 7])],
)
def test_controls_have_equal_gradient_steps(
    epochs: int, twice: int, half: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice MAPPO's epochs are FP3O's two steps; half of FP3O's, odd or not, are MAPPO's one."""
    make = scales.cell_config
    monkeypatch.setattr(
        scales, "cell_config", lambda *args, **more: make(*args, **{"epochs": epochs, **more})
    )
    known = controls(TASK, "laptop")
    assert known[MAPPO_TWICE]["algorithm"] == "mappo"
    usual = {name: {"algorithm": name, "epochs": epochs} for name in ("fp3o", "mappo")}
    assert stage_epochs(known[MAPPO_TWICE]) == [twice]
    assert stage_epochs(known[FP3O_HALF]) == half
    assert sum(stage_epochs(usual["fp3o"])) == twice
    assert stage_epochs(usual["mappo"]) == [sum(half)] == [epochs]


def test_controls_differ_in_their_epochs_alone() -> None:
    """They stand beside all variants of every cell, with the settings of the others."""
    cells = [*with_controls([TASK], ["full", "none"], {}, "laptop", clip_range=0.1)]
    titles = [MAPPO_TWICE, FP3O_HALF]
    assert [(cell.sharing, cell.variant) for cell in cells] == [
        (sharing, title) for sharing in ("full", "none") for title in titles
    ]
    for cell in cells[:2]:
        settings = cell.config.settings
        plain = cell_config(TASK, "full", "laptop", settings["algorithm"], clip_range=0.1).settings
        assert {name for name in plain if plain[name] != settings[name]} == {"epochs"}


def test_the_same_control_is_the_same_run_in_several_experiments() -> None:
    """The ablation of the dependent step shares its runs with the comparisons."""

    def names(experiment: str) -> set[str]:
        cells = find_experiment(experiment).cells("gpu")
        chosen = [x for x in cells if (x.task, x.sharing) == ("mpe/simple_reference", "full")]
        return {run_name(cell.config.settings) for cell in chosen}

    assert len(names("dependent-step")) == 3
    assert names("dependent-step") < names("mpe-table")
    assert names("dependent-step") < names("fair")


def test_without_its_dependent_step_fp3o_is_mappo(tmp_path: Path) -> None:
    """To the last bit: in every metric that both log, and in the final policies' results."""
    runs = {}
    for name in ("mappo", "fp3o:steps=independent"):
        config = cell_config(TASK, "full", "smoke", name, steps=150)
        settings = {x: y for x, y in config.settings.items() if x != "task"}
        out = tmp_path / name.partition(":")[0]
        fp3o.train(TASK, out=out, loggers=(), progress="quiet", **settings)
        runs[name] = out
    one, other = (read_metrics(path) for path in runs.values())
    assert len(one) == len(other) == 2 * (3 + 1)  # two seeds; before training, and three iterations
    for ours, theirs in zip(one, other, strict=True):
        common = {*ours} & {*theirs}
        assert {x: ours[x] for x in common} == {x: theirs[x] for x in common}
        if ours["iteration"]:
            assert {"kl", "entropy", "actor_steps", "value_loss", "eval_return"} <= common
    results = [RunRecord.read(path).results for path in runs.values()]
    assert results[0]["last"] == results[1]["last"] and results[0]["best"] == results[1]["best"]
    assert len({row["return"] for row in results[0]["last"]}) == 2
