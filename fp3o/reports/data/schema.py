"""What the JSON files of a run may contain; anything else is damage, and its place is named.

A check is a function of a value and its place. Keys that a check does not name may have any value:
later versions add some.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fp3o.errors import printable

ValueCheck = Callable[[Any, str], None]

MOST_ENTRIES, MOST_CHARACTERS = 10_000, 100_000

LARGEST_COUNT, LARGEST_VALUE = 2**62, 1e100
"""Beyond them, sums and squares are no numbers any more."""


class DamageError(ValueError):
    """A value that a file of a run cannot have; the message starts with its place."""

    def __init__(self, where: str, wanted: str, value: Any):
        kind = f"a {type(value).__name__}"
        got = kind if isinstance(value, list | dict) else printable(repr(value)[:60], 60)
        super().__init__(f"{where or 'its content'} must be {wanted}, got {got}")


def number(value: Any, where: str) -> None:
    """A number; one that is not finite counts as missing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DamageError(where, "a number", value)
    if LARGEST_VALUE < abs(value) < math.inf:
        raise DamageError(where, f"a number up to {LARGEST_VALUE:g}", value)


def count(value: Any, where: str) -> None:
    """An integer that is not negative."""
    if type(value) is not int or not 0 <= value <= LARGEST_COUNT:
        raise DamageError(where, "a count", value)


def text(value: Any, where: str) -> None:
    """A text of limited length."""
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
        raise DamageError(where, f"a text of at most {MOST_CHARACTERS} characters", value)


def flag(value: Any, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise DamageError(where, "true or false", value)


def maybe(check: ValueCheck) -> ValueCheck:
    """A value that may be null."""

    def checked(value: Any, where: str) -> None:
        if value is not None:
            check(value, where)

    return checked


def one_of(check: ValueCheck, kind: type) -> ValueCheck:
    """A value of a Python type, or one that passes a check."""

    def checked(value: Any, where: str) -> None:
        if not isinstance(value, kind):
            check(value, where)

    return checked


def list_of(check: ValueCheck) -> ValueCheck:
    """A list of such values."""

    def checked(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) > MOST_ENTRIES:
            raise DamageError(where, f"a list of at most {MOST_ENTRIES} entries", value)
        for k, entry in enumerate(value):
            check(entry, f"{where}[{k}]")

    return checked


def mapping_of(check: ValueCheck) -> ValueCheck:
    """An object with such values under any names."""

    def checked(value: Any, where: str) -> None:
        if not isinstance(value, dict) or len(value) > MOST_ENTRIES:
            raise DamageError(where, "an object", value)
        for name, entry in value.items():
            text(name, where)
            check(entry, f"{where}.{printable(name, 40)}".lstrip("."))

    return checked


def fields(checks: Mapping[str, ValueCheck], required: Collection[str] = ()) -> ValueCheck:
    """An object with these entries, as far as they are there; some have to be."""

    def checked(value: Any, where: str) -> None:
        if not isinstance(value, dict) or len(value) > MOST_ENTRIES:
            raise DamageError(where, "an object", value)
        for name in required:
            if name not in value:
                raise DamageError(f"{where}.{name}".lstrip("."), "there", None)
        for name, check in checks.items():
            if name in value:
                check(value[name], f"{where}.{name}".lstrip("."))

    return checked


_METRICS = maybe(mapping_of(maybe(number)))

_EVALUATION = {
    "return": maybe(number), "std": maybe(number), "stderr": maybe(number),
    "length": maybe(number),
    "episodes": maybe(count), "step": count, "seed": count, "unfinished": maybe(count),
    "episode_metrics": _METRICS, "title": maybe(text), "summary": maybe(text), "role": maybe(text),
}  # fmt: skip

RESULTS = fields(
    {
        "steps": maybe(count),
        "seconds": maybe(mapping_of(maybe(number))),
        "steps_per_second": maybe(number),
        "evaluation": maybe(fields({"episodes": count, "deterministic": flag}, ["episodes"])),
        "last": list_of(fields(_EVALUATION, ["seed"])),
        "best": list_of(fields(_EVALUATION, ["seed"])),
        "baselines": maybe(mapping_of(fields(_EVALUATION))),
    },
    ["last"],
)
"""Content of `results.json`."""

_MACHINE = {
    "versions": maybe(mapping_of(text)), "commit": maybe(text), "device": text, "created": text,
}  # fmt: skip

_SOURCE = {
    "path": text, "task": text, "seed": maybe(count), "step": maybe(count), "frozen": flag,
    "agents": list_of(list_of(count)), "sha256": text, "critic": maybe(fields({})),
}  # fmt: skip

CONFIG = fields(
    {
        **_MACHINE,
        "settings": fields(
            {
                "task": text,
                "variant": maybe(text),
                "algorithm": text,
                "sharing": one_of(text, list),
                "steps": number,
                "seeds": count,
                "seed": count,
            }
        ),
        "agents": count,
        "command": text,
        "sharing_title": maybe(text),
        "metrics": maybe(
            mapping_of(fields({"label": maybe(text), "unit": maybe(text), "better": maybe(text)}))
        ),
        "algorithm": maybe(
            fields(
                {
                    "name": maybe(text),
                    "title": maybe(text),
                    "changes": maybe(text),
                    "colour": maybe(list_of(text)),
                    "gated": maybe(flag),
                }
            )
        ),
        "resumed": list_of(fields(_MACHINE)),
        "sources": list_of(fields(_SOURCE, ["path", "agents"])),
    },
    ["settings"],
)
"""Content of `config.json`."""

_PLACE = {"seed": count, "iteration": count, "step": count}

METRICS_LINE = fields(_PLACE, _PLACE)
"""A line of `metrics.jsonl`; a metric that is no number counts as missing."""

_TIME = {"step": count, "seconds": number}

TIMING_LINE = fields(_TIME, _TIME)
"""A line of `timing.jsonl`."""
