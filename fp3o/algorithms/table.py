"""The table of algorithms, and algorithms as text: `fp3o:on_failed_condition=revert`.

Needs no JAX, so that reports can read titles and colours.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, get_type_hints

from fp3o.algorithms.registry import SCHEDULES, SURROGATES
from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError, nearest
from fp3o.imports import load
from fp3o.options import parse_options, to_type, write_options

ALGORITHMS: dict[str, Algorithm] = {
    "fp3o": Algorithm(
        "pipelines",
        title="FP3O",
        summary="two steps: every agent alone, then every agent coupled to all others if the "
        "condition holds",
        colour=("#d55e00", "#f0813a"),
    ),
    "mappo": Algorithm(
        title="MAPPO",
        summary="all agents at once, with a critic that uses the state",
        colour=("#0072b2", "#4aa3df"),
    ),
    "ippo": Algorithm(
        critic_input="obs",
        title="IPPO",
        summary="all agents at once, with a critic that uses the agent's observation",
        colour=("#56b4e9", "#9ad4f5"),
    ),
    "happo": Algorithm(
        "sequential",
        title="HAPPO",
        summary="one agent after another in random order, weighted by the agents updated before",
        colour=("#009e73", "#2fc79a"),
    ),
    "a2po": Algorithm(
        "sequential",
        "clip_product",
        inner_clip=0.5,
        order="semi_greedy",
        clip_slope=0.5,
        correct_advantages=True,
        critic_passes=2,
        title="A2PO",
        summary="one agent after another in semi-greedy order, with advantages corrected for the "
        "agents updated before",
        colour=("#cc79a7", "#e39ac3"),
    ),
    "coppo": Algorithm(
        "coupled",
        "clip_product",
        refresh_ratios=True,
        inner_clip=0.5,
        title="CoPPO",
        summary="all agents at once, coupled to all others, with the product of ratios clipped",
        colour=("#e69f00", "#f2bc45"),
    ),
}
"""All algorithms by name, in the order of tables and figures."""

REGISTERED_IN: dict[str, str] = {}
"""Custom algorithms: name -> the module that registers it."""

FIELDS = tuple(item.name for item in fields(Algorithm) if item.compare)
"""Fields that change an algorithm's behaviour."""

_TYPES = get_type_hints(Algorithm)


def register_algorithm(name: str, row: Algorithm, home: str) -> Algorithm:
    """Add a custom algorithm to the table.

    `home` is the module that calls this, its `__name__`: a run stores `my_module:careful` and
    imports that module to resume.
    """
    if not name.isidentifier():
        raise SettingError(f"the name of an algorithm has letters, digits and _, got {name!r}")
    if name in ALGORITHMS and name not in REGISTERED_IN:
        raise SettingError(f"{name!r} is a built-in algorithm: choose another name")
    REGISTERED_IN[name], ALGORITHMS[name] = home, row
    return row


def parse_algorithm(text: str) -> Algorithm:
    """Read an algorithm, `fp3o`, optionally with changed fields, `fp3o:gated=false,rounds=2`.

    `my_module:careful` is an algorithm that this module registers.
    """
    name, changes = parse_options(text.rstrip(":"))
    module, _, inner = name.rpartition(":")
    if module in ALGORITHMS:
        raise SettingError(f"cannot read {inner!r} in {text!r}: write field=value")
    if module and name not in ALGORITHMS:
        load(module)
        name = inner
        if name not in ALGORITHMS:
            raise SettingError(f"{module} does not register an algorithm {name!r}")
    if name not in ALGORITHMS:
        raise SettingError(
            f"unknown algorithm {name!r}: {nearest(name, ALGORITHMS)}; a custom one is named with "
            "the module that registers it, my_module:my_algorithm"
        )
    for key in changes:
        if key not in FIELDS:
            raise SettingError(f"an algorithm has no field {key!r}: {nearest(key, FIELDS)}")
    # `null` is how JSON writes `none`.
    values = {key: None if value == "null" else value for key, value in changes.items()}
    return replace(ALGORITHMS[name], **{key: read_field(key, values[key]) for key in values})


def read_field(name: str, value: Any) -> Any:
    """A value of a field of an algorithm, converted to the type of the field."""
    return to_type(name, _TYPES[name], value)


def algorithm_name(row: Algorithm) -> str:
    """Shortest text that `parse_algorithm` reads as this row, in any process."""
    ways = sorted(_spellings(row))
    if not ways:
        raise SettingError(
            f"a row with the schedule {row.schedule!r} and the surrogate {row.surrogate!r} has no "
            "name by which a run could load it again: call "
            '`fp3o.register_algorithm("my_name", row, __name__)`'
        )
    return ways[0][1]


def _spellings(row: Algorithm) -> Iterator[tuple[int, str]]:
    """All ways to write a row as a variant of another, with the number of changed fields."""
    for name, base in ALGORITHMS.items():
        pairs = ((key, getattr(row, key), getattr(base, key)) for key in FIELDS)
        changes: dict[str, Any] = {key: value for key, value, old in pairs if value != old}
        # Custom functions are only found by importing the module that registers them.
        entries = (
            SCHEDULES.get(changes.get("schedule", "")),
            SURROGATES.get(changes.get("surrogate", "")),
        )
        if any(entry and not _built_in(entry.function.__module__) for entry in entries):
            continue
        home = f"{REGISTERED_IN[name]}:" if name in REGISTERED_IN else ""
        yield len(changes), write_options(home + name, changes)


def _built_in(module: str) -> bool:
    return module.startswith("fp3o.")
