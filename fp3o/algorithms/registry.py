"""Registered schedules and surrogates, by name. Needs no JAX."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fp3o.errors import SettingError

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Schedule:
    """A function that returns the stages of an iteration, and its static properties."""

    function: Callable[..., Any]
    """Random key, mean absolute advantage per agent, epochs, row -> `Stage` with a stage axis."""
    condition_stage: int = -1
    """Index of the stage after which FP3O's condition is evaluated."""

    def __call__(self, *args: Any) -> Any:
        """The stages of an iteration."""
        return self.function(*args)


@dataclass(frozen=True)
class Surrogate:
    """The objective that a stage maximises, and its static properties."""

    function: Callable[..., Any]
    """Ratio, the others' product, advantage, clip, inner clip -> objective per sample."""
    differentiates_others: bool = False
    """Whether gradients also flow through the ratios of the other agents."""

    def __call__(self, *args: Any) -> Any:
        """Evaluate the objective per sample."""
        return self.function(*args)


SCHEDULES: dict[str, Schedule] = {}
"""Schedules that a row may name."""

SURROGATES: dict[str, Surrogate] = {}
"""Surrogates that a row may name."""


def register_schedule(
    function: Callable[..., Any] | None = None, *, condition_stage: int = -1
) -> Any:
    """Decorate a function so that rows can name it as their schedule.

    `condition_stage` is the stage after which FP3O's condition is evaluated: the last one, or 0 for
    a schedule whose later stages need the condition of the first.
    """
    return _decorate(SCHEDULES, lambda target: Schedule(target, condition_stage), function)


def register_surrogate(
    function: Callable[..., Any] | None = None, *, differentiates_others: bool = False
) -> Any:
    """Decorate a function so that rows can name it as their surrogate.

    With `differentiates_others`, gradients flow through the ratios of the other agents (which needs
    a schedule of the whole team).
    """
    return _decorate(SURROGATES, lambda target: Surrogate(target, differentiates_others), function)


def _decorate(
    table: dict[str, Any], entry: Callable[[Callable[..., Any]], Any], function: Any
) -> Any:
    """Register a function, or return the decorator that does."""

    def register(target: Function) -> Function:
        name = target.__name__
        if name in table and table[name].function.__module__ != target.__module__:
            owner = table[name].function.__module__
            raise SettingError(f"{name!r} is already registered by {owner}: choose another name")
        table[name] = entry(target)
        return target

    return register if function is None else register(function)
