"""Checks of JSON from untrusted files against a schema, and JSON that is safe to write.

A schema is a dict of schemas (`Optional` ones may be missing), a `ListOf`, a `NumberRange`, a
`Name`, an `OrNull`, a set of strings, or a type.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from fp3o.errors import UserError, nearest

MAX_VALUES, MAX_DEPTH = 2**17, 32
"""Limits of the values in a JSON text, and of their nesting."""
TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


class PolicyError(UserError, ValueError):
    """A policy folder is missing, damaged or needs trust; the message names file and problem."""


class NumberRange(NamedTuple):
    """A number between two bounds; an integer if they are."""

    low: float
    high: float


class Name(NamedTuple):
    """A text that is safe to print: without control characters, and not too long."""

    most: int


class ListOf(NamedTuple):
    """A list of `least` to `most` entries."""

    entry: Any
    most: int
    least: int = 1


class Optional(NamedTuple):
    """A key that later versions added: where it is missing, it has the default."""

    schema: Any
    default: Any


class OrNull(NamedTuple):
    """A value or null."""

    schema: Any


def check_value(value: Any, schema: Any, where: str) -> Any:
    """The value with its lists as tuples, if it fits the schema; else a `PolicyError`."""
    match schema:
        case NumberRange(low, high) if type(value) in {int, type(low)} and low <= value <= high:
            return value  # a bool is no int here
        case Name(most) if isinstance(value, str) and len(value) <= most and value.isprintable():
            return value
        case dict() if isinstance(value, dict):
            if extra := [name for name in value if name not in schema]:
                hint = nearest(extra[0][:40], schema)
                raise PolicyError(f"{where} has the unknown key {quote(extra[0])}: {hint}")
            optional = {name for name, entry in schema.items() if isinstance(entry, Optional)}
            if lacking := [name for name in schema if name not in {*value, *optional}]:
                raise PolicyError(f"{where} lacks {', '.join(lacking)}")
            return {
                name: check_value(value[name], entry, f"{where}.{name}")
                if name in value
                else entry.default
                for name, entry in schema.items()
            }
        case Optional(schema=inner):
            return check_value(value, inner, where)
        case OrNull(schema=inner):
            return None if value is None else check_value(value, inner, where)
        case ListOf(entry, most, least) if isinstance(value, list) and least <= len(value) <= most:
            if isinstance(entry, NumberRange) and {*map(type, value)} == {int}:  # long lists
                low, high = min(value), max(value)
                if entry.low <= low and high <= entry.high:
                    return tuple(value)
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
        case Name(most):
            return f"printable text of at most {most} characters"
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
    """Parse JSON; duplicate keys, numbers that are not finite and too many values are rejected."""
    # Before anything is built: every value but the first follows one of these characters.
    if sum(map(text.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise PolicyError(f"has more than the {MAX_VALUES} values allowed")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(names := dict(pairs)) < len(pairs):
            raise PolicyError("has an object with the same key twice")
        return names

    def refuse(text: str) -> NoReturn:
        raise PolicyError(f"holds {quote(text)}, which is not a finite JSON number")

    def finite(text: str) -> float:
        return number if math.isfinite(number := float(text)) else refuse(text)

    hooks = {"object_pairs_hook": unique, "parse_constant": refuse, "parse_float": finite}
    try:
        value = json.loads(text.decode(), **hooks)
    except RecursionError:
        raise PolicyError(TOO_DEEP) from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inside = (x.values() if isinstance(x, dict) else x for x in level)
        level = [y for x in inside if not isinstance(x, (str, int, float)) and x for y in x]
        if not level:
            return
    raise PolicyError(TOO_DEEP)


def dump_json(value: Any) -> bytes:
    """JSON of a plain value."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def to_plain(value: Any, depth: int = 0) -> Any:
    """A value that may contain arrays, as JSON's types; non-finite numbers become null."""
    if depth > MAX_DEPTH:
        raise PolicyError(f"cannot save a value that {TOO_DEEP}")
    if isinstance(value, Mapping):
        return {str(name): to_plain(entry, depth + 1) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry, depth + 1) for entry in value]
    if hasattr(value, "tolist"):  # arrays of any library, and their scalars
        return to_plain(value.tolist(), depth)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise PolicyError(f"cannot save {quote(value)}: only JSON's types and arrays can be saved")
