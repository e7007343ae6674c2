"""Settings and tasks that files name: what of it is code, which needs the caller's trust."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fp3o.algorithms.table import ALGORITHMS, REGISTERED_IN
from fp3o.envs.registry import imports_code, parse_task
from fp3o.envs.task import Task
from fp3o.networks.critics import CRITICS
from fp3o.networks.network import NETWORKS
from fp3o.options import parse_options
from fp3o.policy import Card, require_trust
from fp3o.policy.schema import quote
from fp3o.runs.directory import RunDirectory
from fp3o.sharing.schemes import SHARINGS


def require_trust_in_settings(
    settings: Mapping[str, Any], trusted: bool, path: str | Path, named: Mapping[str, Any] = {}
) -> None:
    """Raise unless settings from a file are trusted, or name no code to import.

    Code that the caller has registered in this process needs no trust, nor do names in `named`,
    the settings that the caller gave.
    """
    for name, value in _code_in(settings):
        owner = quote(str(path), 400)
        require_trust(trusted or named.get(name) == value, name.replace("_", " "), value, owner)


def require_trust_in_run(path: str | Path, trusted: bool) -> None:
    """Raise unless a run directory is trusted, or its settings name no code to import."""
    directory = RunDirectory(path)
    require_trust_in_settings(directory.read_settings(), trusted, directory.path / "config.json")


def trusted_task(card: Card, trusted: bool) -> tuple[Task, str | None]:
    """The task and variant of a policy's card; raises if it or the network is untrusted code."""
    name = card.spec.name
    if imports_code(name):
        require_trust(trusted, "task", name)
    if card.network_class is not None:
        require_trust(trusted, "network", card.network_class)
    return parse_task(name)


def _code_in(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings that name code which this process has not registered."""
    for name, names_code in _NAMES_CODE.items():
        value = settings.get(name)
        if isinstance(value, str) and names_code(value):
            yield name, value


def _algorithm(text: str) -> bool:
    """`my_module:my_row`, with or without changed fields, unless this module registered it."""
    name = parse_options(text.rstrip(":"))[0]
    module, _, row = name.rpartition(":")
    return bool(module) and module not in ALGORITHMS and REGISTERED_IN.get(row) != module


def _sharing(text: str) -> bool:
    """`my_module:my_groups`, unless this module registered it as a scheme."""
    module, _, scheme = text.rpartition(":")
    if not module or text[:1] in "[{":  # a name, or a map as JSON
        return False
    return scheme not in SHARINGS or SHARINGS[scheme].home != module


_NAMES_CODE: Mapping[str, Callable[[str], bool]] = {
    "task": imports_code,
    "network": lambda name: name not in NETWORKS,
    "critic": lambda name: name not in {**NETWORKS, **CRITICS},
    "algorithm": _algorithm,
    "sharing": _sharing,
    "critic_sharing": _sharing,
}
"""Setting -> whether its text names code to import."""
