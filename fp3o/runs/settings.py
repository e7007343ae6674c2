"""Values of settings: the type of each field, conversion to that type, settings files."""

import dataclasses
import json
import tomllib
import typing
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError, printable
from fp3o.learning.value_schedules import ValueSchedule, read_schedule
from fp3o.networks.conv_layers import parse_conv
from fp3o.options import show, to_type
from fp3o.runs.agent_lists import read_agents, read_frozen, read_place
from fp3o.sharing.schemes import SharingSpec, parse_sharing
from fp3o.types import Scalar

SHARING_TYPES = (SharingSpec, SharingSpec | None)
"""Types of the fields that hold a sharing."""

READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "start_from": read_place,
    "start_agents": read_agents,
    "frozen": read_frozen,
}
"""Settings with several forms, and the functions that make one of them."""
SCALAR_TYPES = (Scalar, Scalar | None)
"""Types of the hyperparameters, which may be schedules."""

MAX_FILE_BYTES = 1_000_000
"""Largest settings file that is read."""


@cache
def setting_types(*owners: type) -> Mapping[str, Any]:
    """Name and type of every field of some dataclasses, nested dataclasses left out."""
    hints: dict[str, Any] = {}
    for owner in owners:
        types_of = typing.get_type_hints(owner)
        hints |= {field.name: types_of[field.name] for field in dataclasses.fields(owner)}
    return {name: hint for name, hint in hints.items() if not dataclasses.is_dataclass(hint)}


def coerce(name: str, hint: Any, value: Any) -> Any:
    """Convert a value from Python or a settings file to the type of its field, or raise."""
    if hint in SHARING_TYPES:
        optional = value is None and hint is not SharingSpec
        return None if optional else parse_sharing(value, name)
    if name in READERS:
        return READERS[name](name, value)
    if hint in SCALAR_TYPES and isinstance(value, str):
        return read_schedule(name, value)
    if isinstance(value, ValueSchedule) and hint in SCALAR_TYPES:
        return value
    if name == "conv":
        return parse_conv(value)
    if name == "algorithm" and isinstance(value, Algorithm):
        return value
    if name in ("network", "critic") and isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    return to_type(name, hint, value)


def read_settings(path: Any) -> dict[str, Any]:
    """Settings from a JSON, TOML or YAML file, or from a run's `config.json`."""
    if not isinstance(path, str | Path):
        raise SettingError(f"a settings file is given by its path, got {show(path)}")
    path = Path(path)
    kind, parse = FORMATS.get(path.suffix, ("JSON", _parse_json))
    try:
        content = parse(_read_text(path))
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not valid {kind}: {printable(str(error))}") from error
    settings = content.get("settings", content) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise SettingError(f"{path} must hold names and values, such as {{'algorithm': 'fp3o'}}")
    return settings


def _read_text(path: Path) -> str:
    """The text of a regular file of moderate size; reading a pipe would wait for ever."""
    size = path.stat().st_size
    if not path.is_file():
        raise SettingError(f"{path} is not a file: give a JSON, TOML or YAML file of settings")
    if size > MAX_FILE_BYTES:
        raise SettingError(f"{path} has {size} bytes, settings files at most {MAX_FILE_BYTES}")
    return path.read_text(encoding="utf-8")


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _parse_yaml(text: str) -> Any:
    from fp3o.runs.yaml_settings import parse_yaml

    return parse_yaml(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(names := dict(pairs)) < len(pairs):
        raise ValueError("an object has the same key twice")
    return names


FORMATS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    ".toml": ("TOML", tomllib.loads),
    ".yaml": ("YAML", _parse_yaml),
    ".yml": ("YAML", _parse_yaml),
}
"""Suffix of a settings file -> its format and parser; other files are JSON."""
