"""The grammar `name:key=value,key=value` of task variants and algorithms.

A value is `true`, `false`, `none`, a number, a Python literal such as `(64, 64)` or `'a, b'`, or
plain text. `parse_options` reads what `write_options` writes as the same values.

    parse_options("default:reward=sum,env.size=(3, 4)")
    # ("default", {"reward": "sum", "env.size": (3, 4)})
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fp3o.errors import SettingError

CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "none": None}

_KEY = r"[A-Za-z_][\w.]*\s*="

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
        except (ValueError, SyntaxError):
            pass
    return text


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
