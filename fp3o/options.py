"""Values that users give: the grammar of task variants and algorithms, types, and seeds.

The grammar is `name:key=value,key=value`. A key is a name, or a number such as 0.5.

A value is `true`, `false`, `none`, a number, a Python literal such as `(64, 64)` or `'a, b'`, or
plain text. `parse_options` reads what `write_options` writes as the same values.

    parse_options("default:reward=sum,env.size=(3, 4)")
    # ("default", {"reward": "sum", "env.size": (3, 4)})
"""

import ast
import re
import types
import typing
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, Literal

from fp3o.errors import SettingError, nearest, printable

CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "none": None}

MAX_INTEGER = 2**63 - 1
"""Largest integer of a setting or an option: counts are 64-bit integers."""

NUM_SEEDS = 2**32
"""Number of different seeds: random keys take the last 32 bits of a seed."""

TYPE_NAMES = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    tuple: "a list of integers",
}
"""How error messages name the type of a value."""

_KEY = r"(?:[A-Za-z_][\w.]*|\d[\d.]*)\s*="

_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[][(){},]""")
"""A quoted text, a bracket or a comma."""

_PLAIN_TEXT = re.compile(r"[\w.+/-]+")


def parse_options(text: str) -> tuple[str, dict[str, Any]]:
    """Split a text into its name and its options; the name itself may contain colons."""
    separator = re.search(rf":\s*(?={_KEY})", text)
    if separator is None:
        return text, {}
    options: dict[str, Any] = {}
    for part in _split(text[separator.end() :]):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key in options:
            raise SettingError(f"option {key!r} is given twice in {text!r}")
        options[key] = read_value(value)
    return text[: separator.start()], options


def write_options(name: str, options: Mapping[str, Any]) -> str:
    """Write a name and its options as text; without options, the name alone."""
    written = ",".join(f"{key}={_write_value(key, value)}" for key, value in options.items())
    return f"{name}:{written}" if written else name


def read_value(text: str) -> Any:
    """Read the value of an option; what is not a constant, number or literal is plain text."""
    if text.lower() in CONSTANTS:
        return CONSTANTS[text.lower()]
    for read in (ast.literal_eval, float):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass  # nested too deeply, or no literal at all
    return text


def to_type(name: str, hint: Any, value: Any) -> Any:
    """Convert a value to the type of its field, or raise an error that names the field.

    Numbers of NumPy and JAX are converted, and lists and arrays of integers to tuples.
    """
    kind, optional = _plain_type(hint)
    plain = value.tolist() if hasattr(value, "tolist") else value
    if value is None and optional:
        return None
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    if choices and isinstance(plain, str) and plain not in choices:
        raise SettingError(f"unknown {name} {show(value)}: {nearest(plain, choices)}")
    if kind in (bool, str) and isinstance(plain, kind):
        return plain
    try:
        if kind is tuple and isinstance(plain, list | tuple):
            return tuple(_number(int, x) for x in plain)
        if kind in (int, float):
            return _number(kind, plain)
    except (ValueError, OverflowError):
        pass
    allowed = TYPE_NAMES[kind] + " or none" * optional
    if kind is int and isinstance(plain, int) and abs(plain) > MAX_INTEGER:
        allowed = f"an integer of at most {MAX_INTEGER}"
    raise SettingError(f"{name} must be {allowed}, got {show(value)}")


def show(value: Any) -> str:
    """A value for a message, in one short line."""
    try:
        return printable(repr(value), 80)
    except Exception:  # such as an integer of many digits
        return f"a value of type {type(value).__name__}"


def check_seeds(seed: int, number: int = 1) -> None:
    """Reject seeds that random keys cannot tell apart: 2**32 would be the same seed as 0."""
    if not (seed >= 0 and seed + number <= NUM_SEEDS):
        last = f" to {seed + number - 1}" if number > 1 else ""
        raise SettingError(f"seeds must be integers from 0 to {NUM_SEEDS - 1}, got {seed}{last}")


def _number(kind: type, value: Any) -> Any:
    """A real number as an integer or a float, if nothing is lost."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(value)
    number = kind(value)
    if kind is int and (number != value or abs(number) > MAX_INTEGER):
        raise ValueError(value)
    return number


def _plain_type(hint: Any) -> tuple[type, bool]:
    """The first type of a union, and whether None is allowed too."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    first, *others = typing.get_args(hint) if union else (hint,)
    origin = typing.get_origin(first) or first
    return str if origin is Literal else origin, type(None) in others


def _split(text: str) -> Iterator[str]:
    """Split at commas that are followed by a key, except inside brackets and quotes."""
    start = depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if token[0] == "," and depth <= 0 and re.match(rf"\s*{_KEY}", text[token.end() :]):
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]


def _write_value(key: str, value: Any) -> str:
    names = {repr(constant): name for name, constant in CONSTANTS.items()}
    text = value if isinstance(value, str) else names.get(repr(value), repr(value))
    if isinstance(value, str) and not (_PLAIN_TEXT.fullmatch(text) and read_value(text) == value):
        text = repr(value)
    # The representations are compared: 1, 1.0 and True are equal.
    if repr(read_value(text)) != repr(value):
        raise SettingError(f"option {key} cannot be written as text: {value!r}")
    return text
