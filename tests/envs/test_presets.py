"""Default presets are small; the paper's are there by name, and experiments use them."""

import pytest

from fp3o.envs.registry import TASKS, get_task
from fp3o.errors import SettingError
from fp3o.experiments.framework.scales import cell_config
from fp3o.runs.run_config import RunConfig

PAPER = ("mpe/simple_spread", "mamujoco/HalfCheetah-6x1", "smac/3s5z", "smacv2/terran_5_vs_5")


@pytest.mark.parametrize("task", TASKS)
def test_the_default_takes_minutes(task: str) -> None:
    """Every task with presets: few steps and seeds."""
    presets = TASKS[task].presets
    if not presets:
        return
    first = next(iter(presets))
    assert first == {"matrix": "decided", "radio": "demo"}.get(task.split("/")[0], "quick")
    config = RunConfig.from_preset(task)
    assert config.steps * config.seeds <= 1_000_000
    assert config.settings == RunConfig.from_preset(task, first).settings


@pytest.mark.parametrize("task", [*PAPER, "starcraft2/3m"])
def test_presets_of_the_paper_are_named(task: str) -> None:
    """Five seeds and millions of steps; in the game, no more than eight at once by default."""
    paper, quick = RunConfig.from_preset(task, "paper"), RunConfig.from_preset(task)
    assert paper.seeds == 5 and paper.steps >= 5_000_000
    assert quick.seeds == 1 and quick.steps < paper.steps
    if task.startswith("starcraft2"):
        assert quick.learner.num_envs <= 8


@pytest.mark.parametrize("task", PAPER)
def test_experiments_use_the_presets_of_the_paper(task: str) -> None:
    """Not the default of the task."""
    cell = cell_config(task, "full", "paper", "fp3o")
    assert cell.settings == RunConfig.from_preset(task, "paper").settings


def test_other_bodies_have_a_preset_in_experiments() -> None:
    """`farama` where there is no `paper`."""
    cell = cell_config("mamujoco/Humanoid-9p8", "full", "paper", "fp3o")
    assert cell.settings == RunConfig.from_preset("mamujoco/Humanoid-9p8", "farama").settings


def test_unknown_presets_are_refused() -> None:
    """With the nearest name."""
    with pytest.raises(SettingError, match="did you mean 'quick'"):
        get_task("mpe/simple_spread").preset("quik")
