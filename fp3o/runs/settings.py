"""TODO."""

import ast
import dataclasses
import inspect
import json
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.table import algorithm_name
from fp3o.envs.registry import DEFAULT_PRESET, DEFAULT_TASK, get_task
from fp3o.errors import nearest
from fp3o.imports import load
from fp3o.learning.config import Config, Hyperparameters
from fp3o.runs.run_config import RunConfig


class Setting(NamedTuple):
    """One name of the flat form."""

    name: str
    kind: type
    """bool, int, float, str, or tuple (of whole numbers)."""
    optional: bool
    help: str


def _settings() -> dict[str, Setting]:
    found = {}
    for owner in (RunConfig, Config, Hyperparameters):
        words = field_words(owner)
        for item in dataclasses.fields(owner):
            if item.name not in ("learner", "hyperparameters"):
                kind, optional = _kind(item)
                found[item.name] = Setting(item.name, kind, optional, words[item.name])
    return found


def _kind(item: "dataclasses.Field[Any]") -> tuple[type, bool]:
    """The plain type of a field. Its default tells it; where that is None, the annotation does."""
    text = str(item.type)
    if isinstance(item.default, (bool, int, float, str, tuple)):
        return type(item.default), "None" in text
    return {"int": int, "str": str}.get(text.split(" | ")[0], float), True


def field_words(owner: type) -> dict[str, str]:
    """The docstrings under a dataclass's fields: they are the help of the command line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(tree, ast.ClassDef)
    words = {}
    for line, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(line, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(line.target, ast.Name) and isinstance(after.value, ast.Constant)
            words[line.target.id] = " ".join(str(after.value.value).split())
    return words


SETTINGS: Mapping[str, Setting] = _settings()
"""Every name of the flat form."""

GROUPS: Mapping[str, tuple[tuple[str, ...], str]] = {
    name: (tuple(item.name for item in dataclasses.fields(owner) if item.name in SETTINGS), title)
    for name, owner, title in (
        ("run", RunConfig, "The run: how long, how it is judged and kept."),
        ("learner", Config, "The learner: a new value compiles a new program."),
        (
            "hyperparameters",
            Hyperparameters,
            "Hyperparameters: scalars inside the compiled program.",
        ),
    )
}
"""The names by where they belong."""


def settings_of(plan: RunConfig) -> dict[str, Any]:
    """A plan as names and plain JSON values, complete."""
    values = {name: _owner(plan, name) for name in SETTINGS}
    values["algorithm"] = algorithm_name(plan.learner.row)
    values["variant"] = plan.variant or plan.task_info.variants[0]
    return json.loads(json.dumps(values, default=float))


def _owner(plan: RunConfig, name: str) -> Any:
    owners = plan, plan.learner, plan.learner.hyperparameters
    return getattr(next(owner for owner in owners if hasattr(owner, name)), name)


def with_settings(plan: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """A plan with some settings of the flat form replaced."""
    given = {name: coerce(name, value) for name, value in settings.items()}
    own = {item.name for item in dataclasses.fields(RunConfig)} & given.keys()
    config = plan.learner.replace(**{name: given[name] for name in given.keys() - own})
    return dataclasses.replace(plan, learner=config, **{name: given[name] for name in own})


def read_settings(path: str | Path) -> dict[str, Any]:
    """Settings from a JSON or TOML file, or from a run's `config.json`."""
    text = Path(path).read_text()
    try:
        content = tomllib.loads(text) if Path(path).suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is neither JSON nor TOML (by its name): {error}") from error
    settings = content.get("settings", content) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise ValueError(f"{path} must hold names and values, such as {{'algorithm': 'fp3o'}}")
    return settings


def coerce(name: str, value: Any) -> Any:
    """A value from Python, JSON or TOML as the setting wants it, or an error that says what."""
    if name not in SETTINGS:
        raise ValueError(f"unknown setting {name!r}: {nearest(name, SETTINGS)}")
    _, kind, optional, _ = SETTINGS[name]
    if value is None and optional:
        return None
    if name in ("sharing", "critic_sharing"):
        return _sharing(name, value)
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
    raise ValueError(f"{name} must be {WORDS[kind]}{' or none' * optional}, got {value!r}")


WORDS = {
    int: "a whole number", float: "a number", bool: "true or false", str: "a word",
    tuple: "a list of whole numbers",
}  # fmt: skip
"""How each kind is named in errors."""


def _sharing(name: str, value: Any) -> Any:
    """A kind, a map, one map a layer, a dict or a function.

    In words: `0,0,1`, `[[0,0],[0,1]]`, `{"legs": [0, 1], "arms": [2]}`, `my_module:my_groups`.
    """
    if isinstance(value, str):
        if value[:1] in "[{" or value.replace(",", "").isdigit():
            try:
                value = json.loads(value if value[:1] in "[{" else f"[{value}]")
            except ValueError:
                raise ValueError(f"{name}: cannot read {value!r}, write [0,0,1]") from None
        else:
            return load(value) if ":" in value else value
    if isinstance(value, Mapping):
        return {int(k) if str(k).isdigit() else k: v for k, v in value.items()}
    if callable(value):
        return value
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be a name or a map from agent to group, got {value!r}")
    return tuple(tuple(x) if isinstance(x, (list, tuple)) else x for x in value)


def from_preset(task: str | None = None, preset: str | None = None) -> RunConfig:
    """The plan a preset lays down; without a task the demo, without a preset the task's default."""
    if task is None:
        task, preset = DEFAULT_TASK, preset or DEFAULT_PRESET
    found = get_task(task)
    return with_settings(RunConfig(task=found.name), found.preset(preset))
