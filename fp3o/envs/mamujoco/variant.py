"""Variants of a task: profile and options, written as `paper:obsk=2,routing=joint`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from fp3o.envs.mamujoco.catalogue import PROFILES
from fp3o.errors import SettingError, nearest
from fp3o.options import parse_options, write_options


@dataclass(frozen=True)
class Variant:
    """A version of the rules of a task."""

    profile: str
    """`paper`: as in the paper's runs; `farama`: as in gymnasium-robotics."""
    obsk: int
    """Distance in the joint graph up to which an agent observes joints of others."""
    routing: str
    """`order`: the concatenated actions go to the actuators in their order (the paper); `joint`:
    every agent controls the joints it owns (farama)."""
    backend: str
    """`native`: MuJoCo; `fused`: the same steps in one kernel; `mjx`: MJX, approximate."""

    @staticmethod
    def parse(text: str) -> "Variant":
        """Read a variant; missing options have the defaults of the profile."""
        profile, options = parse_options(text)
        if profile not in PROFILES:
            raise SettingError(f"unknown variant {profile!r}: {nearest(profile, PROFILES)}")
        for name, value in options.items():
            _check_option(text, name, value)
        return Variant(profile, **{**_DEFAULTS[profile], **options})

    def __str__(self) -> str:
        values = {item.name: getattr(self, item.name) for item in fields(self)[1:]}
        default = _DEFAULTS[self.profile]
        changed = {name: value for name, value in values.items() if value != default[name]}
        return write_options(self.profile, changed)

    @property
    def canonical(self) -> "Variant":
        """The variant on MuJoCo itself, if its simulator computes the same."""
        return replace(self, backend="native") if self.backend == "fused" else self


def canonical_variant(text: str) -> str:
    """The shortest text of a variant; simulators that compute the same have the same."""
    return str(Variant.parse(text).canonical)


def _check_option(text: str, name: str, value: Any) -> None:
    if name not in _CHOICES:
        raise SettingError(f"unknown option {name!r} in {text!r}: {nearest(name, _CHOICES)}")
    choices = _CHOICES[name]
    if choices is None:
        if type(value) is not int or value < 0:
            raise SettingError(
                f"{name} must be an integer of at least 0, got {value!r} in {text!r}"
            )
    elif value not in choices:
        raise SettingError(
            f"{name} cannot be {value!r} in {text!r}: {nearest(str(value), choices)}"
        )


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"obsk": 5, "routing": "order", "backend": "native"},
    "farama": {"obsk": 1, "routing": "joint", "backend": "native"},
}

_CHOICES: Mapping[str, tuple[str, ...] | None] = {
    "obsk": None, "routing": ("order", "joint"), "backend": ("native", "fused", "mjx"),
}  # fmt: skip
"""Allowed values of each option; None: a non-negative integer."""
