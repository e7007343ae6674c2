"""Rules of a battle that tasks have as options, written as `paper:leash=0,backswing=false`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fp3o.envs.smac.maps import LAYOUTS
from fp3o.errors import SettingError, nearest
from fp3o.options import parse_options, write_options


@dataclass(frozen=True)
class Rules:
    """How units behave that are not under a direct order, and a quirk of SMAC's reward.

    The defaults follow the game's data and SMAC.
    """

    leash: float = 21.0
    """Cells, edge to edge, within which a unit on attack-move keeps a living target while it has
    none in its weapon range. 0: it keeps targets only while it can hit them."""
    help: float = 4.0
    """Cells, edge to edge, within which a unit without a target answers the call of an ally that
    is hit, and attacks the attacker; it answers hits on itself too. 0: nobody reacts to hits."""
    backswing: bool = True
    """Whether a unit that has struck stands until its backswing is over or a new order comes."""
    paid_healing: bool = True
    """Whether a step in which enemies heal more than they lose is rewarded as if they lost it."""

    @staticmethod
    def parse(variant: str) -> "tuple[str, Rules]":
        """The layout of observations and the rules of a variant."""
        layout, options = parse_options(variant)
        if layout not in LAYOUTS:
            raise SettingError(f"unknown variant {layout!r}: {nearest(layout, LAYOUTS)}")
        for name, value in options.items():
            _check_option(variant, name, value)
        numbers = {name: float(options[name]) for name in ("leash", "help") if name in options}
        return layout, Rules(**{**options, **numbers})

    def variant(self, layout: str) -> str:
        """The variant that `parse` reads as a layout and these rules."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        default = vars(DEFAULT_RULES)
        changed = {name: value for name, value in values.items() if value != default[name]}
        return write_options(layout, {name: _shortest(x) for name, x in changed.items()})


DEFAULT_RULES = Rules()

_OPTIONS: Mapping[str, str] = {
    "leash": "a number of cells of at least 0",
    "help": "a number of cells of at least 0",
    "backswing": "true or false",
    "paid_healing": "true or false",
}
"""Allowed values of each option."""


def _shortest(value: Any) -> Any:
    """Whole numbers as integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_option(variant: str, name: str, value: Any) -> None:
    if name not in _OPTIONS:
        raise SettingError(f"unknown option {name!r} in {variant!r}: {nearest(name, _OPTIONS)}")
    if isinstance(getattr(DEFAULT_RULES, name), bool):
        valid = isinstance(value, bool)
    else:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        valid = number and value >= 0 and math.isfinite(value)
    if not valid:
        raise SettingError(f"{name} must be {_OPTIONS[name]}, got {value!r} in {variant!r}")
