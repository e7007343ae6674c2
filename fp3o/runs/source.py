"""What evaluation, videos and exports take alike: a run, a policy, or the path of either."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from fp3o.errors import SettingError, nearest
from fp3o.options import show
from fp3o.policy import Policy
from fp3o.policy.files import find_policy, policies_of_run
from fp3o.reports.data.record import RunRecord

EXPORTS = ("folder", "onnx", "stablehlo")
"""Formats of exports; only a folder can be loaded again."""

_Run = TypeVar("_Run", bound="LoadedRun")


@dataclass(frozen=True)
class LoadedRun(RunRecord):
    """A run directory, and whether the code that it names may be imported."""

    trust: bool = False
    """Whether code that the run names may be imported; true for runs that this process started."""

    @classmethod
    def load(cls: type[_Run], path: str | os.PathLike[str], trust: bool = False) -> _Run:
        """Read a run directory, finished or not; a custom task or network in it needs `trust`."""
        return replace(cls.read(path), trust=trust)


PolicySource = LoadedRun | Policy | str | os.PathLike[str]
"""A run, a policy, a run directory or a policy folder."""


class PolicyChoice(TypedDict, total=False):
    """Which policy of a run is meant, and whether its code may be imported."""

    which: str
    """`best`: the best policy in the evaluations during training; `last`: the latest one."""
    policy_seed: int | None
    """Seed whose policy is taken."""
    trust: bool
    """Import the custom task or network that the policy names."""


def load_policy(
    source: PolicySource,
    which: str = "best",
    policy_seed: int | None = None,
    trust: bool = False,
) -> Policy:
    """The policy of a run, a policy folder, or a policy itself.

    Of a run, `which` and `policy_seed` choose one; without a seed, it is the one with the highest
    evaluated return. A policy, or its folder, is taken as it is.
    """
    if isinstance(source, Policy):
        known = source.trusted or not trust
        return source if known else Policy(source.card, source.weights, trusted=True)
    return Policy.load(_path(source), which, policy_seed, trust or is_trusted(source))


def load_policies(
    source: PolicySource,
    which: str = "last",
    policy_seed: int | None = None,
    trust: bool = False,
) -> dict[str, Policy]:
    """The policies of all seeds of a run by name, or of one seed; or the one policy given."""
    if isinstance(source, Policy):
        return {"policy": load_policy(source, trust=trust)}
    path = _path(source)
    found = find_policy(path, which, policy_seed)  # raises where there is none
    if found == path:
        return {path.name: load_policy(source, trust=trust)}
    trust = trust or is_trusted(source)
    known = {
        f"seed-{seed} {which}": folder
        for (seed, name), folder in sorted(policies_of_run(path / "policy").items())
        if name == which and policy_seed in (None, seed)
    }
    return {name: Policy.load(folder, trust=trust) for name, folder in known.items()}


def export(
    source: PolicySource,
    out: str | os.PathLike[str],
    to: str = "folder",
    **choice: Unpack[PolicyChoice],
) -> Path:
    """Export a policy for use elsewhere, and return the path.

    Args:
        source: a run, a policy, or the path of a run directory or a policy folder.
        out: the folder, or the file of another format.
        to: `folder`: a policy folder, `onnx` or `stablehlo`: one step of the team.
        **choice: of a run, `which` of its policies, `best` (default) or `last`, and
            `policy_seed`, by default the one with the best evaluation. `trust=True` allows the
            policy to name a network that has to be imported.
    """
    if to not in EXPORTS:
        raise SettingError(f"cannot export to {to!r}: {nearest(to, EXPORTS)}")
    policy = load_policy(source, **choice)
    return policy.save(out) if to == "folder" else policy.export(out, to)


def is_trusted(source: PolicySource) -> bool:
    """Whether a run or a policy was loaded or trained with trust in the code that it names."""
    if isinstance(source, Policy):
        return source.trusted
    return isinstance(source, LoadedRun) and source.trust


def _path(source: Any) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise SettingError(
            f"expected a run, a policy, or the path of a run directory or a policy folder, got "
            f"{show(source)}"
        )
    return Path(source)
