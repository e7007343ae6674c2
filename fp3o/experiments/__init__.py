"""Experiments: a grid of training runs per table or figure, and its summary.

Every module in `paper` and `beyond` defines one `EXPERIMENT`; a new file there is a new
experiment. Custom ones are named by their import path, `my_module:EXPERIMENT`.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

from fp3o.errors import SettingError, nearest
from fp3o.experiments import beyond, paper
from fp3o.experiments.framework.grid import Experiment
from fp3o.imports import load


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
    return experiment
