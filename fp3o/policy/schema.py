"""Values of a JSON text that nobody vouches for: read, checked against a schema, shown, written.

A schema is an object of schemas, a `Many`, a `Span`, a set of words, or a type.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from fp3o.errors import nearest


class PolicyError(ValueError):
    """A policy folder is missing, damaged or not to be trusted: which file, and what is wrong."""


class Span(NamedTuple):
    """A number between two bounds: whole if they are."""

    low: float
    high: float


class Many(NamedTuple):
    """A list of 1 to `most` entries."""

    entry: Any
    most: int


def check(value: Any, schema: Any, where: str) -> Any:
    """A value that fits, its lists as tuples; where it does not, an error that says what would."""
    match schema:
        case Span(low, high) if type(value) in {int, type(low)} and low <= value <= high:
            return value  # a bool is no int here
        case dict() if isinstance(value, dict):
            if extra := [name for name in value if name not in schema]:
                hint = nearest(extra[0][:40], schema)
                raise PolicyError(f"{where} has the unknown key {show(extra[0])}: {hint}")
            if lacking := [name for name in schema if name not in value]:
                raise PolicyError(f"{where} lacks {', '.join(lacking)}")
            return {name: check(value[name], schema[name], f"{where}.{name}") for name in schema}
        case Many(entry, most) if isinstance(value, list) and 1 <= len(value) <= most:
            return tuple(check(v, entry, f"{where}[{j}]") for j, v in enumerate(value))
        case set() if isinstance(value, str) and value in schema:
            return value
        case type() if isinstance(value, schema):
            return value
    raise PolicyError(f"{where} must be {_wanted(schema)}, got {show(value)}")


def _wanted(schema: Any) -> str:
    match schema:
        case Many():
            return f"a list of 1 to {schema.most} entries"
        case Span(low, high):
            return f"{'an integer' if isinstance(low, int) else 'a number'} from {low} to {high}"
        case set():
            return " or ".join(map(repr, sorted(schema)))
        case type():
            return f"a JSON {schema.__name__}"
    return "an object"


def show(value: Any) -> str:
    """A value of a file for a message: short, and quoted so that it cannot steer a terminal."""
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return ascii(value[:40] if isinstance(value, str) else value)[:60]


def read_json(text: bytes) -> Any:
    """The value of a text; refuses an object with a key twice and numbers that are not finite."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(names := dict(pairs)) < len(pairs):
            raise PolicyError("has an object with the same key twice")
        return names

    def refuse(word: str) -> None:
        raise PolicyError(f"holds {word}, which is no JSON number")

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse)


def write_json(value: Any) -> bytes:
    """The text of a value that may hold arrays; a number that is not finite becomes null."""
    return (json.dumps(_plain(value), indent=1, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # arrays and their scalars, whoever made them
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise PolicyError(f"cannot save {show(value)}: only JSON's types and arrays can be saved")
