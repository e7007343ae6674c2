"""Schedules: hyperparameters that change over training, given as text.

| text                                      | value over training                               |
|-------------------------------------------|---------------------------------------------------|
| `5e-4:0`                                  | linear from 5e-4 to 0                             |
| `linear:start=5e-4,end=0,until=0.5`       | linear over the first half, then constant         |
| `cosine:start=5e-4,end=0`                 | half a cosine from 5e-4 to 0; `until` as above    |
| `warmup:peak=5e-4,fraction=0.05,end=0`    | linear to the peak, then linear to the end;       |
|                                           | `start=0`, `end` the peak, `decay=linear` unless  |
|                                           | given; `decay=cosine`                             |
| `piecewise:0=5e-4,0.5=1e-4`               | 5e-4 in the first half, 1e-4 in the second        |
| `constant:value=5e-4`                     | the same as the number                            |

A value depends on the share of training that is done: 0 in the first iteration, (N - 1)/N in the
last of N. The functions are those of optax, of this share in place of a number of updates.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from fp3o.errors import SettingError, nearest
from fp3o.options import MAX_INTEGER, parse_options, read_value, show

ProgressFunction = Callable[[Any], Any]
"""From the share of training to a value."""

FORMS = "NUMBER:NUMBER, or NAME:OPTION=NUMBER,... as in cosine:start=5e-4,end=0"

_SHARE = (lambda x: 0 < x <= 1, "above 0 and at most 1")
_INNER_SHARE = (lambda x: 0 < x < 1, "between 0 and 1")
_OPTION_RANGES = {"until": _SHARE, "fraction": _INNER_SHARE}


class ValueSchedule(float):
    """A number that changes over training; as a float, its first value.

    Example:
        lr = ValueSchedule("5e-4:0")
        lr.at(0.5)  # 2.5e-4
    """

    text: str
    """The schedule as it was given."""
    values: tuple[float, ...]
    """Values between which all others are: what is checked."""
    _kind: "ScheduleKind"
    _options: Mapping[str, Any]
    _function: ProgressFunction | None

    def __new__(cls, text: str) -> "ValueSchedule":
        """Parse the text of a schedule."""
        kind, options = _parse(text)
        self = super().__new__(cls, kind.values(options)[0])
        self.text, self.values = text, kind.values(options)
        self._kind, self._options, self._function = kind, options, None
        return self

    def at(self, progress: float) -> float:
        """The value after this share of training."""
        if self._function is None:  # optax takes a while to import
            self._function = self._kind.function(self._options)
        # Rounding must not leave the range that was checked.
        return min(max(float(self._function(progress)), min(self.values)), max(self.values))

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return ValueSchedule, (self.text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueSchedule) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"ValueSchedule({self.text!r})"

    __str__ = __repr__


def read_schedule(name: str, text: str) -> ValueSchedule:
    """The schedule of a setting from its text; errors name the setting."""
    if ":" not in text:
        raise SettingError(
            f"{name} must be a number, got {show(text)}; a schedule is written as {FORMS}"
        )
    try:
        return ValueSchedule(text)
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from None


class ScheduleKind(NamedTuple):
    """A family of schedules: its options, with defaults, and its function."""

    function: Callable[[Mapping[str, Any]], ProgressFunction]
    values: Callable[[Mapping[str, Any]], tuple[float, ...]]
    """The first value, then the others that bound all values."""
    required: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}


def _linear(options: Mapping[str, Any]) -> ProgressFunction:
    import optax

    return optax.linear_schedule(options["start"], options["end"], options["until"])


def _cosine(options: Mapping[str, Any]) -> ProgressFunction:
    import optax

    end = options["end"]
    fall = optax.cosine_decay_schedule(options["start"] - end, options["until"])
    return lambda progress: fall(progress) + end


def _warmup(options: Mapping[str, Any]) -> ProgressFunction:
    import optax

    share: Any = options["fraction"]
    peak = options["peak"]
    rise = _linear({"start": options["start"], "end": peak, "until": share})
    decay = SCHEDULE_KINDS[options["decay"]].function
    rest = decay({"start": peak, "end": options["end"], "until": 1 - share})
    return optax.join_schedules([rise, rest], (share,))


def _piecewise(options: Mapping[str, Any]) -> ProgressFunction:
    import optax

    boundaries: list[Any] = [float(place) for place in options][1:]
    return optax.join_schedules([*map(optax.constant_schedule, options.values())], boundaries)


def _constant(options: Mapping[str, Any]) -> ProgressFunction:
    import optax

    return optax.constant_schedule(options["value"])


def _numbers(*names: str) -> Callable[[Mapping[str, Any]], tuple[float, ...]]:
    return lambda options: tuple(options[name] for name in names)


SCHEDULE_KINDS: Mapping[str, ScheduleKind] = {
    "constant": ScheduleKind(_constant, _numbers("value"), ("value",)),
    "linear": ScheduleKind(_linear, _numbers("start", "end"), ("start", "end"), {"until": 1.0}),
    "cosine": ScheduleKind(_cosine, _numbers("start", "end"), ("start", "end"), {"until": 1.0}),
    "warmup": ScheduleKind(
        _warmup,
        _numbers("start", "peak", "end"),
        ("peak", "fraction"),
        {"start": 0.0, "end": None, "decay": "linear"},
    ),
    "piecewise": ScheduleKind(_piecewise, lambda options: tuple(options.values())),
}
"""Schedules by name."""

DECAYS = ("linear", "cosine")


def _parse(text: str) -> tuple[ScheduleKind, dict[str, Any]]:
    first, colon, second = text.partition(":")
    ends = read_value(first.strip()), read_value(second.strip())
    if colon and _is_number(ends[0]):
        if not _is_number(ends[1]):
            raise SettingError(f"{show(text)} is no schedule: write {FORMS}")
        return SCHEDULE_KINDS["linear"], {
            "start": float(ends[0]), "end": float(ends[1]), "until": 1.0
        }  # fmt: skip
    name, given = parse_options(text)
    if name not in SCHEDULE_KINDS or not given:
        name = name.partition(":")[0]
        if name in SCHEDULE_KINDS:
            raise SettingError(f"the schedule {show(text)} has no options: write {FORMS}")
        raise SettingError(f"unknown schedule {show(name)}: {nearest(name, SCHEDULE_KINDS)}")
    kind = SCHEDULE_KINDS[name]
    if name == "piecewise":
        _check_places(given, text)
    else:
        _check_options(name, kind, given)
    options = {**kind.defaults, **given}
    if name == "warmup":
        options["end"] = options["peak"] if options["end"] is None else options["end"]
        if options["decay"] not in DECAYS:
            decay = str(options["decay"])
            raise SettingError(f"unknown decay {show(decay)} of warmup: {nearest(decay, DECAYS)}")
    for option, value in options.items():
        if not _is_number(value) and option != "decay":
            raise SettingError(f"{option} in {show(text)} must be a number, got {show(value)}")
        allowed, wanted = _OPTION_RANGES.get(option, (lambda x: True, ""))
        if not allowed(value):
            raise SettingError(f"{option} in {show(text)} must be {wanted}, got {value}")
    return kind, {key: x if key == "decay" else float(x) for key, x in options.items()}


def _check_options(name: str, kind: ScheduleKind, given: Iterable[str]) -> None:
    """Raise unless all required options are given and no unknown ones."""
    known = (*kind.required, *kind.defaults)
    for option in given:
        if option not in known:
            near = nearest(option, known)
            raise SettingError(f"the schedule {name} has no option {show(option)}: {near}")
    for option in kind.required:
        if option not in given:
            raise SettingError(f"the schedule {name} needs the option {option}={option.upper()}")


def _check_places(given: Mapping[str, Any], text: str) -> None:
    """Raise unless the places are increasing shares of training that start with 0."""
    places = [read_value(place) for place in given]
    numbers = [place for place in places if _is_number(place)]
    rising = all(a < b for a, b in pairwise(numbers))
    if len(numbers) < len(places) or numbers[0] != 0 or numbers[-1] >= 1 or not rising:
        raise SettingError(
            f"{show(text)}: write shares of training and values, the shares from 0 on, increasing "
            "and below 1, as in piecewise:0=5e-4,0.5=1e-4"
        )


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and (isinstance(value, float) or abs(value) <= MAX_INTEGER)
