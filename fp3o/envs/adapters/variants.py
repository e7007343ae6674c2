"""Options of adapted tasks: the adapter's own, and `env.*` for the other library's constructor."""

from collections.abc import Iterable, Mapping
from typing import Any

from fp3o.errors import SettingError, nearest
from fp3o.options import parse_options, write_options

VARIANT = "default"
"""The only variant of an adapted task."""

ENV_PREFIX = "env."
"""Prefix of arguments of the environment's constructor."""

REWARDS = ("mean", "sum", "own")
"""Values of the option `reward`: each agent's reward is the mean or the sum over the team, or its
own."""

STATES = ("env", "observations")
"""Values of the option `state`."""

IMAGES = ("uint8", "all", "none")
"""Values of the option `images`: arrays of bytes are images; arrays of real numbers with three axes
are images, too; nothing is."""

DEFAULT_LIMIT = 1000
"""Maximum length of an episode where the environment declares none."""

EnvArguments = tuple[tuple[str, Any], ...]
"""Arguments of the environment's constructor, sorted by name."""


def read_variant(text: str, known: Iterable[str]) -> tuple[dict[str, Any], EnvArguments]:
    """The adapter's options, one of `known`, and the arguments of the environment."""
    name, options = parse_options(text)
    if name != VARIANT:
        raise SettingError(f"unknown variant {name!r}: {nearest(name, [VARIANT])}")
    ours, arguments, allowed = {}, {}, tuple(known)
    for key, value in options.items():
        if key.startswith(ENV_PREFIX):
            arguments[key.removeprefix(ENV_PREFIX)] = value
        elif key in allowed:
            ours[key] = value
        else:
            suggested = nearest(key, {*allowed, f"{ENV_PREFIX}{key}"})
            raise SettingError(f"unknown option {key!r}: {suggested}")
    return ours, tuple(sorted(arguments.items()))


def write_variant(ours: Mapping[str, Any], arguments: Iterable[tuple[str, Any]]) -> str:
    """The variant with these options, in the spelling of `EnvSpec.name`."""
    inside = {f"{ENV_PREFIX}{key}": value for key, value in sorted(arguments)}
    return write_options(VARIANT, {**ours, **inside})


def split_names(text: Any) -> tuple[str, ...]:
    """Names joined by plus signs, as in `episode_metrics=won+score`."""
    return tuple(filter(None, str(text).split("+")))
