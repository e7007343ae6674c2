"""What a sweep searches: ranges and choices of settings, from text or from Python.

| text                      | Python                | meaning                               |
|---------------------------|-----------------------|---------------------------------------|
| `actor_lr=1e-4..1e-2:log` | `(1e-4, 1e-2, "log")` | a range, uniform in the logarithm     |
| `clip_range=0.05..0.4`    | `(0.05, 0.4)`         | a range, uniform                      |
| `epochs=5..20:5`          | `(5, 20, 5)`          | 5, 10, 15, 20                         |
| `algorithm=fp3o,mappo`    | `["fp3o", "mappo"]`   | choices                               |
| `hidden=(64,64),(128,)`   | `[(64, 64), (128,)]`  | choices with commas are in brackets   |
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fp3o.errors import SettingError, nearest
from fp3o.learning.check_config import check_numbers
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.value_schedules import ValueSchedule
from fp3o.options import TYPE_NAMES, read_value, show
from fp3o.runs.run_config import SETTING_TYPES, RunConfig
from fp3o.runs.settings import coerce, setting_types

HYPERPARAMETERS = tuple(field.name for field in dataclasses.fields(Hyperparameters))
"""Settings in which the trials of one program may differ."""

SEARCHABLE = (*HYPERPARAMETERS, *setting_types(Config))
"""Settings that can be searched."""

MAX_GRID = 100_000
"""Largest number of points of a grid."""

GRAMMAR = "LOW..HIGH, LOW..HIGH:log, LOW..HIGH:STEP or A,B,C"

_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[][(){},]""")


@dataclass(frozen=True)
class ValueRange:
    """All numbers between two, or those at a distance of `step`."""

    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None
    whole: bool = False
    """Integers only."""

    def points(self) -> list[Any] | None:
        """The values in order; None if there is no smallest distance between them."""
        step = self.step or (1 if self.whole else None)
        if step is None:
            return None
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        if count > MAX_GRID:
            return None
        values = [self.low + k * step for k in range(count)]
        return [int(x) for x in values] if self.whole else [float(f"{x:.12g}") for x in values]

    def __str__(self) -> str:
        end = ":log" if self.log else f":{self.step!r}" if self.step else ""
        return f"{self.low!r}..{self.high!r}{end}"


@dataclass(frozen=True)
class ChoiceSet:
    """Some values, by their texts."""

    values: Mapping[str, Any]

    def points(self) -> list[Any]:
        """The texts of the values."""
        return [*self.values]

    def __str__(self) -> str:
        return ",".join(self.values)


Dimension = ValueRange | ChoiceSet
Space = Mapping[str, Dimension]
"""The searched settings by name."""


def parse_search(search: Mapping[str, Any] | Sequence[str]) -> dict[str, Dimension]:
    """The space given by texts `NAME=...`, or by a dict of names."""
    if isinstance(search, str):
        search = search.split()
    if not isinstance(search, Mapping):
        pairs = [_split_assignment(text) for text in search]
        search = dict(pairs)
        if len(search) < len(pairs):
            raise SettingError("a setting is searched twice: give all its values at once")
    if not search:
        raise SettingError(f"nothing to search: give settings as NAME=VALUES with {GRAMMAR}")
    return {name: _dimension(name, values) for name, values in search.items()}


def space_texts(space: Space) -> dict[str, str]:
    """The space as texts that `parse_search` reads."""
    return {name: str(dimension) for name, dimension in space.items()}


def setting_values(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the searched settings from the values that the sampler has chosen."""
    return {
        name: dimension.values[params[name]] if isinstance(dimension, ChoiceSet) else params[name]
        for name, dimension in space.items()
    }


def check_space(space: Space, base: RunConfig) -> None:
    """Raise unless every choice and both ends of every range fit the other settings."""
    for name, dimension in space.items():
        ends = (
            dimension.values.values()
            if isinstance(dimension, ChoiceSet)
            else (dimension.low, dimension.high)
        )
        for value in ends:
            try:
                config = base.with_settings({name: value})
                if name in HYPERPARAMETERS:
                    check_numbers(config.learner.hyperparameters)
                else:
                    config.resolve()
            except SettingError as error:
                raise SettingError(f"search of {name}, value {show(value)}: {error}") from error


def grid_points(space: Space) -> list[dict[str, Any]]:
    """All combinations, those of one program together: hyperparameters change fastest."""
    names = sorted(space, key=lambda name: name in HYPERPARAMETERS)
    axes: list[list[Any]] = []
    for name in names:
        points = space[name].points()
        if points is None:
            raise SettingError(
                f"a grid needs single values of {name}, got {space[name]}: give choices or a step, "
                f"as in {name}=LOW..HIGH:STEP, or choose another sampler"
            )
        axes.append(points)
    if math.prod(map(len, axes)) > MAX_GRID:
        raise SettingError(f"the grid has more than {MAX_GRID} points: give fewer values")
    return [dict(zip(names, point, strict=True)) for point in itertools.product(*axes)]


def _split_assignment(text: str) -> tuple[str, str]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise SettingError(f"{show(text)} is no search: write NAME=VALUES with {GRAMMAR}")
    return name.strip().replace("-", "_"), values.strip()


def _dimension(name: str, values: Any) -> Dimension:
    if name not in SEARCHABLE:
        if name in SETTING_TYPES:
            raise SettingError(
                f"{name} cannot be searched: it changes the task, the length of training or how it "
                "is evaluated, so that scores could not be compared. Searchable: "
                + ", ".join(sorted(SEARCHABLE))
            )
        raise SettingError(f"unknown setting {show(name)}: {nearest(str(name), SEARCHABLE)}")
    if isinstance(values, str):
        return _from_text(name, values)
    if isinstance(values, tuple) and len(values) in (2, 3):
        return _range(name, *values)
    if isinstance(values, list):
        return _choices(name, values)
    raise SettingError(
        f"the search of {name} must be a tuple (LOW, HIGH), (LOW, HIGH, 'log') or (LOW, HIGH, "
        f"STEP), a list of choices, or a text, got {show(values)}"
    )


def _from_text(name: str, text: str) -> Dimension:
    parts = [*_split_commas(text)]
    if len(parts) > 1 or ".." not in text:
        return _choices(name, [read_value(part) for part in parts])
    ends, _, how = text.partition(":")
    low, _, high = ends.partition("..")
    return _range(name, low, high, how or None)


def _range(name: str, low: Any, high: Any, how: Any = None) -> ValueRange:
    """A checked range; `how` is `log`, a step or nothing."""
    kind = SETTING_TYPES[name]
    low, high = _end(name, low), _end(name, high)
    whole = kind is int or kind == int | None
    log = how == "log"
    step = None if how is None or log else _end(name, how, f"{name}'s step")
    text = f"{low}..{high}"
    if low >= high:
        raise SettingError(f"the range {text} of {name} is empty: the first number must be smaller")
    if log and low <= 0:
        raise SettingError(f"the range {text}:log of {name} must start above 0")
    if step is not None and not 0 < step <= high - low:
        raise SettingError(f"the step of {name} must be above 0 and at most {high - low:g}")
    return ValueRange(low, high, log, step, whole)


def _end(name: str, value: Any, title: str | None = None) -> Any:
    """A number of the type of the setting."""
    kind, title = SETTING_TYPES[name], title or name
    value = read_value(value.strip()) if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingError(f"a range of {title} needs numbers, got {show(value)}: {GRAMMAR}")
    number = coerce(title, kind, value)
    if isinstance(number, str | bool) or not math.isfinite(number):
        raise SettingError(f"{title} has no range, it is {TYPE_NAMES[type(number)]}: give A,B,C")
    return number


def _choices(name: str, values: Sequence[Any]) -> ChoiceSet:
    """Checked choices; a value that is no number is kept by its text."""
    known = [coerce(name, SETTING_TYPES[name], value) for value in values]
    if any(isinstance(value, ValueSchedule) for value in known):
        raise SettingError(f"a search of {name} needs numbers: a schedule is a setting of training")
    found = {_choice_text(value): value for value in known}
    if len(found) < len(known):
        raise SettingError(f"the choices of {name} contain a value twice")
    for text, value in found.items():
        if coerce(name, SETTING_TYPES[name], read_value(text)) != value:
            raise SettingError(f"a choice of {name} cannot be written as text: {show(value)}")
    if len(found) < 2:
        raise SettingError(
            f"{name}={', '.join(found)} is a single value: give it as a setting, or search it with "
            f"{GRAMMAR}"
        )
    return ChoiceSet(found)


def _choice_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value).replace(" ", "") if isinstance(value, tuple) else f"{value}".lower()


def _split_commas(text: str) -> Iterator[str]:
    """Split at commas, except inside brackets and quotes."""
    start = depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if token[0] == "," and depth <= 0:
            yield text[start : token.start()].strip()
            start = token.end()
    yield text[start:].strip()
