"""Changes of hyperparameters during a run: read from Python and JSON, checked, written."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from fp3o.errors import SettingError, nearest
from fp3o.learning.check_config import check_numbers
from fp3o.learning.config import Hyperparameters
from fp3o.learning.value_schedules import ValueSchedule
from fp3o.options import show
from fp3o.runs.metrics_log import Row, json_value
from fp3o.runs.run_config import SETTING_TYPES
from fp3o.runs.settings import coerce

Changes = Mapping[str, Any]
"""New values of hyperparameters: numbers, texts of schedules, or one number per seed."""


class RunHyperparameters:
    """The hyperparameters of a run, which may have schedules and change during it."""

    def __init__(self, values: Hyperparameters, seeds: int):
        self.values, self._seeds = values, seeds
        self.current = values
        """The numbers of the last iteration."""
        self._changed: set[str] = set()

    def change(self, changes: Changes) -> None:
        """Replace some values, from the next iteration on."""
        self.values = read_changes(self.values, changes, self._seeds)
        self._changed |= {*changes}

    @property
    def changes(self) -> dict[str, Any]:
        """The changed values as `change` takes them, for JSON."""
        values = {name: getattr(self.values, name) for name in sorted(self._changed)}
        return {
            name: x.text if isinstance(x, ValueSchedule) else plain_value(x)
            for name, x in values.items()
        }

    def rows(self) -> list[Row]:
        """The numbers of those that have a schedule or were changed, a row per seed."""
        names = [
            field.name
            for field in dataclasses.fields(Hyperparameters)
            if field.name in self._changed
            or isinstance(getattr(self.values, field.name), ValueSchedule)
        ]
        numbers = {name: np.asarray(getattr(self.current, name), np.float32) for name in names}
        arrays = {name: np.broadcast_to(x, (self._seeds,)) for name, x in numbers.items()}
        return [{name: json_value(x[k]) for name, x in arrays.items()} for k in range(self._seeds)]


def read_changes(hparams: Hyperparameters, changes: Changes, seeds: int) -> Hyperparameters:
    """Hyperparameters with some values replaced and checked."""
    known = [field.name for field in dataclasses.fields(hparams)]
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise SettingError(f"{show(name)} is no hyperparameter: {nearest(str(name), known)}")
        if (value is None) != (getattr(hparams, name) is None):
            raise SettingError(f"{name} cannot change between none and a number during a run")
        values[name] = _read_change(name, value, seeds)
    changed = dataclasses.replace(hparams, **values)
    check_numbers(changed)
    return changed


def _read_change(name: str, value: Any, seeds: int) -> Any:
    """A number, a schedule, or an array with a number per seed."""
    if isinstance(value, str | ValueSchedule) or not np.ndim(value):
        return coerce(name, SETTING_TYPES[name], value)
    if np.shape(value) != (seeds,):
        raise SettingError(
            f"{name} must be a number, a schedule or a list with one number for each of the "
            f"{seeds} seeds, got {show(value)}"
        )
    numbers = [coerce(name, SETTING_TYPES[name], x) for x in np.asarray(value).tolist()]
    return jnp.asarray(numbers, float) if seeds > 1 else numbers[0]


def plain_value(value: Any) -> float | list[float] | None:
    """The value of a hyperparameter for JSON: a number, or a list with a number per seed."""
    return json_value(np.asarray(value)) if np.ndim(value) else value
