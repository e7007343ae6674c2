"""Experiments: a grid of training runs per table or figure, and its summary.

Every module in `paper` and `beyond` defines one `EXPERIMENT`; a new file there is a new
experiment. Custom ones are named by their import path, `my_module:EXPERIMENT`.
"""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType

from fp3o.errors import SettingError, nearest
from fp3o.experiments import beyond, paper
from fp3o.experiments.framework.grid import Cell, CellResults, Experiment, Scale, Summary
from fp3o.imports import foreign_code, load


@cache
def all_experiments() -> Mapping[str, Experiment]:
    """The built-in experiments by name: those of the paper in its order, then the others."""
    return {
        experiment.name: experiment
        for package in (paper, beyond)
        for experiment in _experiments_in(package)
    }


def _experiments_in(package: ModuleType) -> list[Experiment]:
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    return sorted((module.EXPERIMENT for module in modules), key=lambda x: (x.order, x.name))


def find_experiment(name: str) -> Experiment:
    """An experiment by its name, or a custom one by import path, `my_module:EXPERIMENT`."""
    built_in = all_experiments()
    if name in built_in:
        return built_in[name]
    if ":" not in name:
        raise SettingError(
            f"unknown experiment {name!r}: {nearest(name, built_in)}; a custom one is named by its "
            "import path, my_module:EXPERIMENT"
        )
    experiment = load(name)
    if not isinstance(experiment, Experiment):
        raise SettingError(f"{name} is not an Experiment but a {type(experiment).__name__}")
    return _guarded(experiment, name)


def _guarded(experiment: Experiment, name: str) -> Experiment:
    """A custom experiment whose errors are explained in one line."""

    def cells(scale: Scale) -> Iterator[Cell]:
        with foreign_code(f"the cells of {name} cannot be made"):
            found = [*experiment.cells(scale)]
        _check_cells(name, found)
        return iter(found)

    def summarise(results: CellResults) -> Summary:
        problem = f"{name} cannot summarise its results, which are kept (repeat it with --show)"
        with foreign_code(problem):
            summary = experiment.summarise(results)
        if not isinstance(summary, Summary):
            raise SettingError(f"{problem}: summarise returned a {type(summary).__name__}")
        return summary

    return replace(experiment, cells=cells, summarise=summarise)


def _check_cells(name: str, cells: Sequence[object]) -> None:
    """Reject cells that are none, and two that would have one folder."""
    labels: list[str] = []
    for cell in cells:
        if not isinstance(cell, Cell):
            raise SettingError(f"a cell of {name} is no Cell but a {type(cell).__name__}")
        if cell.label in labels:
            raise SettingError(
                f"two cells of {name} have the label {cell.label!r}: give them different variants, "
                "or set `detail`"
            )
        labels.append(cell.label)
    if not labels:
        raise SettingError(f"{name} has no cells at this scale")
