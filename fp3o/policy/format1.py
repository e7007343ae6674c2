"""Policies of format 1: their names of fields and arrays, translated to format 2.

Format 1 had other names, and neither `reward_sum_over` nor `episode_metrics`: a policy of
format 1 has their defaults, and code that needs them reads them from the task.
"""

from collections.abc import Mapping
from typing import Any

TASK_KEYS = {"kinds": "agent_types"}
NETWORK_KEYS = {"recurrent": "gru_size", "std": "std_param", "own": "network_class"}
"""Old key -> new key."""

ADDED: Mapping[str, Any] = {"reward_sum_over": 1, "episode_metrics": []}
"""Keys of `task` that format 1 did not have, with their defaults."""

OLD_GRU, NEW_GRU = "network.recurrent.", "network.gru."
"""Start of the names of the GRU's arrays."""


def upgrade_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """A `policy.json` of format 1 with the keys of format 2; nothing is checked here."""
    upgraded = {**document, "format": 2}
    if isinstance(task := document.get("task"), dict):
        upgraded["task"] = {**_renamed(task, TASK_KEYS), **ADDED}
    if isinstance(network := document.get("network"), dict):
        upgraded["network"] = _renamed(network, NETWORK_KEYS)
    return upgraded


def old_array_name(name: str) -> str:
    """The name in format 1 of an array of the built-in network."""
    return OLD_GRU + name.removeprefix(NEW_GRU) if name.startswith(NEW_GRU) else name


def _renamed(entries: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The entries under their new keys; unchanged, and so rejected later, if a new key is used."""
    if {*names.values()} & {*entries}:
        return dict(entries)
    return {names.get(key, key): value for key, value in entries.items()}
