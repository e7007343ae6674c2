"""Checks of JSON from untrusted files against a schema, and JSON that is safe to write.

A schema is a dict of schemas, a `ListOf`, a `NumberRange`, a set of strings, or a type.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from fp3o.errors import UserError, nearest


class PolicyError(UserError, ValueError):
    """A policy folder is missing, damaged or needs trust; the message names file and problem."""


class NumberRange(NamedTuple):
    """A number between two bounds; an integer if they are."""

    low: float
    high: float


class ListOf(NamedTuple):
    """A list of `least` to `most` entries."""

    entry: Any
    most: int
    least: int = 1


def check_value(value: Any, schema: Any, where: str) -> Any:
    """The value with its lists as tuples, if it fits the schema; else a `PolicyError`."""
    match schema:
        case NumberRange(low, high) if type(value) in {int, type(low)} and low <= value <= high:
            return value  # a bool is no int here
        case dict() if isinstance(value, dict):
            if extra := [name for name in value if name not in schema]:
                hint = nearest(extra[0][:40], schema)
                raise PolicyError(f"{where} has the unknown key {quote(extra[0])}: {hint}")
            if lacking := [name for name in schema if name not in value]:
                raise PolicyError(f"{where} lacks {', '.join(lacking)}")
            return {
                name: check_value(value[name], schema[name], f"{where}.{name}") for name in schema
            }
        case ListOf(entry, most, least) if isinstance(value, list) and least <= len(value) <= most:
            return tuple(check_value(v, entry, f"{where}[{j}]") for j, v in enumerate(value))
        case set() if isinstance(value, str) and value in schema:
            return value
        case type() if isinstance(value, schema):
            return value
    raise PolicyError(f"{where} must be {_wanted(schema)}, got {quote(value)}")


def _wanted(schema: Any) -> str:
    match schema:
        case ListOf():
            return f"a list of {schema.least} to {schema.most} entries"
        case NumberRange(low, high):
            return f"{'an integer' if isinstance(low, int) else 'a number'} from {low} to {high}"
        case set():
            return " or ".join(map(repr, sorted(schema)))
        case type():
            return f"a JSON {schema.__name__}"
    return "an object"


def quote(value: Any, most: int = 60) -> str:
    """A value for a message: short, and escaped so that it cannot control a terminal."""
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    text = ascii(value[:most] if isinstance(value, str) else value)
    return text if len(text) <= most + 2 else f"{text[:most]}..."


def parse_json(text: bytes) -> Any:
    """Parse JSON; duplicate keys and non-finite numbers are rejected."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(names := dict(pairs)) < len(pairs):
            raise PolicyError("has an object with the same key twice")
        return names

    def refuse(text: str) -> None:
        raise PolicyError(f"holds {text}, which is not a JSON number")

    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)


def dump_json(value: Any) -> bytes:
    """JSON of a value that may contain arrays; non-finite numbers become null."""
    return (json.dumps(_plain(value), indent=1, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # arrays of any library, and their scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise PolicyError(f"cannot save {quote(value)}: only JSON's types and arrays can be saved")
