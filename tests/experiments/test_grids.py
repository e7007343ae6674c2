"""Grids of experiments: their cells, scales and discovery."""

import sys
from pathlib import Path
from typing import Any

import pytest
from finished_cells import PAPER_TABLES

from fp3o.errors import SettingError
from fp3o.experiments import all_experiments, find_experiment
from fp3o.experiments.framework import paper_results
from fp3o.experiments.framework.grid import SCALES, Cell
from fp3o.experiments.framework.options import ExperimentOptions
from fp3o.experiments.framework.scales import cell_config
from fp3o.experiments.framework.session import experiment_cells, run_experiment
from fp3o.runs.run_config import RunConfig

CUSTOM = """
from fp3o.experiments.framework.grid import Experiment
from fp3o.experiments.framework.scales import algorithm_variants, make_cells
from fp3o.experiments.framework.summary import score_summary

EXPERIMENT = Experiment(
    name="mine",
    title="Mine",
    question="Does it run?",
    cells=lambda scale: make_cells(
        ["mpe/simple_spread"], ["full"], algorithm_variants("mappo"), scale
    ),
    summarise=score_summary(),
)
"""


@pytest.mark.parametrize("name", all_experiments())
def test_cells_have_unique_labels_and_valid_configurations(name: str) -> None:
    experiment = find_experiment(name)
    assert experiment.question.endswith("?") and experiment.title
    for scale in SCALES:
        grid = [*experiment.cells(scale)]
        labels = [cell.label for cell in grid]
        assert len({*labels}) == len(labels) > 1
        assert all(x.isalnum() or x in "-_" for label in labels for x in label)
        seeds = {cell.config.seeds for cell in grid}
        assert seeds == ({2} if scale == "smoke" else {5})
    for cell in experiment.cells("smoke"):
        if cell.config.learner.sharing != "auto":
            cell.config.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", all_experiments())
@pytest.mark.parametrize("scale", ["paper", "gpu", "laptop"])
def test_configurations_of_every_scale_are_valid(name: str, scale: Any) -> None:
    for cell in find_experiment(name).cells(scale):
        if cell.config.learner.sharing != "auto":
            cell.config.check()


def test_the_tables_of_the_paper_are_complete() -> None:
    """Every printed number has a cell."""
    sizes = {"mamujoco-table": 6 * 3 * 4, "smac-table": 6 * 3 * 4, "mpe-table": 2 * 2 * 4}
    for name, known in PAPER_TABLES.items():
        assert len(known) == sizes[name]
        cells = find_experiment(name).cells("paper")
        assert {*known} <= {(cell.task, cell.sharing, cell.variant) for cell in cells}
    assert paper_results.PAPER_SMAC["smac/6h_vs_8z", "partial", "FP3O"] == (81.3, 18.3)
    assert paper_results.PAPER_MAMUJOCO["mamujoco/Reacher-2x1", "none", "IPPO"] == (-31.7, 5.4)
    assert paper_results.PAPER_MINUTES["smac/bane_vs_bane", "none", "HAPPO"] == 813
    assert paper_results.PAPER_MEBIBYTES["mamujoco/HalfCheetah-6x1", "full", "MAPPO"] == 967


def test_the_table_of_battles_has_more_maps_on_an_accelerator() -> None:
    """All eight maps of the paper and four more tasks, by settings for many environments."""
    cells = [*find_experiment("smac-table").cells("gpu")]
    sharings = {cell.task: set[str]() for cell in cells}
    for cell in cells:
        sharings[cell.task].add(cell.sharing)
    # Three algorithms and two controls.
    assert len(cells) == 6 * 3 * 5 + 6 * 5
    assert [*map(len, sharings.values())] == [3] * 6 + [1] * 6
    assert {cell.config.learner.num_envs for cell in cells} == {256}
    assert {cell.config.final_episodes for cell in cells} == {1000}


def test_scales_change_the_configuration() -> None:
    paper, gpu = (cell_config("smac/3s5z", "partial", scale, "happo") for scale in ("paper", "gpu"))
    assert (paper.learner.num_envs, gpu.learner.num_envs) == (8, 256)
    assert paper.learner.head_lr_factor == gpu.learner.head_lr_factor == 8.0
    assert gpu.learner.sharing == "partial" and gpu.learner.algorithm == "happo"
    robot = cell_config("mamujoco/Hopper-3x1", "none", "gpu", "fp3o")
    assert (robot.steps, robot.learner.hyperparameters.clip_range) == (10_000_000, 0.05)
    particles = cell_config("mpe/simple_reference", "full", "laptop", "fp3o", epochs=9)
    assert particles.learner.epochs == 9


def test_a_new_file_is_a_new_experiment() -> None:
    """Built-in experiments are found by folder, those of the paper first."""
    root = Path(str(sys.modules["fp3o.experiments"].__file__)).parent
    for folder in ("paper", "beyond"):
        files = [path for path in (root / folder).glob("*.py") if path.stem != "__init__"]
        assert len(files) == sum(
            experiment.cells.__module__.split(".")[-2] == folder
            for experiment in all_experiments().values()
        )
    assert [*all_experiments()][:2] == ["mamujoco-table", "smac-table"]
    claims = [bool(experiment.claim) for experiment in all_experiments().values()]
    assert claims == sorted(claims, reverse=True)


def test_custom_experiments_are_named_by_import_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_experiments.py").write_text(CUSTOM)
    monkeypatch.syspath_prepend(tmp_path)
    options = ExperimentOptions("my_experiments:EXPERIMENT", "smoke")
    assert [cell.label for cell in experiment_cells(options)] == ["simple_spread-full-mappo"]
    assert find_experiment(options.name).title == "Mine"
    with pytest.raises(SettingError, match="is not an Experiment"):
        find_experiment("my_experiments:make_cells")


WRONG = """
from dataclasses import replace
from my_experiments import EXPERIMENT

def fails(argument):
    raise KeyError("oops")

TWICE = replace(EXPERIMENT, cells=lambda scale: [*EXPERIMENT.cells(scale)] * 2)
EMPTY = replace(EXPERIMENT, cells=lambda scale: [])
NO_CELLS = replace(EXPERIMENT, cells=lambda scale: ["smoke"])
FAILS = replace(EXPERIMENT, cells=fails)
SUMMARY_FAILS = replace(EXPERIMENT, summarise=fails)
NO_SUMMARY = replace(EXPERIMENT, summarise=lambda results: None)
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("TWICE", "two cells of wrong_experiments:TWICE have the label 'simple_spread-full-mappo'"),
        ("EMPTY", "has no cells at this scale"),
        ("NO_CELLS", "a cell of wrong_experiments:NO_CELLS is no Cell but a str"),
        ("FAILS", r"cells of wrong_experiments:FAILS cannot be made: KeyError: 'oops' .*line 6"),
        ("SUMMARY_FAILS", r"which are kept \(repeat it with --show\): KeyError: 'oops'"),
        ("NO_SUMMARY", "which are kept .*: summarise returned a NoneType"),
        ("SUMARY_FAILS", "did you mean 'SUMMARY_FAILS'"),
    ],
)
def test_custom_experiments_that_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    """What is wrong, in one line; results that were computed are kept."""
    (tmp_path / "my_experiments.py").write_text(CUSTOM)
    (tmp_path / "wrong_experiments.py").write_text(WRONG)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("my_experiments", "wrong_experiments"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SettingError, match=message):
        found = find_experiment(f"wrong_experiments:{name}")
        assert [*found.cells("smoke")]
        found.summarise([])


def test_folders_of_custom_tasks_have_safe_names() -> None:
    cell = Cell("python:my_module:Env", "my_module:pairs", "A: b", RunConfig())
    assert cell.label == "python_my_module_Env-my_module_pairs-a_b"


def test_options_are_checked() -> None:
    with pytest.raises(SettingError, match="did you mean 'split'"):
        run_experiment(ExperimentOptions("splitt"))
    with pytest.raises(SettingError, match="no cell of split has 'nothing'"):
        run_experiment(ExperimentOptions("split", part="nothing"))
    options = ExperimentOptions("split", seeds=3, steps=1000, out="x")
    assert options.command == "fp3o experiment split --scale laptop"
    cells = experiment_cells(options)
    assert {(cell.config.seeds, cell.config.steps) for cell in cells} == {(3, 1000)}
