"""Values of settings: the type of each field, conversion to that type, settings files."""

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError
from fp3o.sharing.schemes import SharingSpec, parse_sharing

SHARING_TYPES = (SharingSpec, SharingSpec | None)
"""Types of the fields that hold a sharing."""

TYPE_NAMES = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    tuple: "a list of integers",
}
"""How error messages name the type of a setting."""


@cache
def setting_types(*owners: type) -> Mapping[str, Any]:
    """Name and type of every field of some dataclasses, nested dataclasses left out."""
    hints: dict[str, Any] = {}
    for owner in owners:
        types_of = typing.get_type_hints(owner)
        hints |= {field.name: types_of[field.name] for field in dataclasses.fields(owner)}
    return {name: hint for name, hint in hints.items() if not dataclasses.is_dataclass(hint)}


def coerce(name: str, hint: Any, value: Any) -> Any:
    """Convert a value from Python, JSON or TOML to the type of its field, or raise an error."""
    kind, optional = _plain_type(hint)
    if value is None and optional:
        return None
    if hint in SHARING_TYPES:
        return parse_sharing(value, name)
    if name == "algorithm" and isinstance(value, Algorithm):
        return value
    if name == "network" and isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if kind is float:
            return float(value)
        if kind is int and float(value).is_integer():
            return int(value)
    if kind is tuple and isinstance(value, (list, tuple)) and all(type(x) is int for x in value):
        return tuple(value)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise SettingError(f"{name} must be {TYPE_NAMES[kind]}{' or none' * optional}, got {value!r}")


def _plain_type(hint: Any) -> tuple[type, bool]:
    """The first type of a union, and whether None is allowed too."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    first, *others = typing.get_args(hint) if union else (hint,)
    origin = typing.get_origin(first) or first
    return str if origin is Literal else origin, type(None) in others


def read_settings(path: str | Path) -> dict[str, Any]:
    """Settings from a JSON or TOML file, or from a run's `config.json`."""
    path = Path(path)
    text = path.read_text()
    try:
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise SettingError(f"{path} is not valid {kind}: {error}") from error
    settings = content.get("settings", content) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise SettingError(f"{path} must hold names and values, such as {{'algorithm': 'fp3o'}}")
    return settings
