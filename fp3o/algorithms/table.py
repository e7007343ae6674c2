"""TODO."""

import json
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from typing import Any

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.surrogates import SURROGATES
from fp3o.errors import nearest
from fp3o.imports import load

ALGORITHMS: dict[str, Algorithm] = {
    "ippo": Algorithm(critic_input="obs"),
    "mappo": Algorithm(),
    "coppo": Algorithm("coupled", "clip_product", refresh_ratios=True, inner_clip=0.5),
    "happo": Algorithm("sequential"),
    "a2po": Algorithm(
        "sequential", "clip_product", inner_clip=0.5, order="semi_greedy", clip_slope=0.5,
        correct_advantages=True, critic_passes=2,
    ),
    "fp3o": Algorithm("pipelines"),
}  # fmt: skip
"""The table."""

REGISTERED_IN: dict[str, str] = {}
"""Where rows of one's own come from: name -> the module that registers it."""


def register_algorithm(name: str, row: Algorithm, home: str) -> Algorithm:
    """Add a row of one's own to the table: from then on it has a name like the others.

    `home` is the module that does so, its `__name__`: a run keeps `my_module:careful`, and imports
    the module to go on.
    """
    if not name.isidentifier():
        raise ValueError(f"an algorithm's name is a word of letters, digits and _, got {name!r}")
    if name in ALGORITHMS and name not in REGISTERED_IN:
        raise ValueError(f"{name!r} is one of fp3o's own algorithms: choose another name")
    REGISTERED_IN[name], ALGORITHMS[name] = home, row
    return row


def parse_algorithm(text: str) -> Algorithm:
    """A row by its name, with fields changed if asked: `fp3o` or `fp3o:on_failed_condition=revert`.

    `my_module:careful` is a row that this module registers.
    """
    name, _, changes = text.partition(":")
    if name not in ALGORITHMS and changes:
        home = load(name)
        name, _, changes = changes.partition(":")
        if name not in ALGORITHMS:
            raise ValueError(f"{home.__name__} does not register an algorithm {name!r}")
    if name not in ALGORITHMS:
        raise ValueError(
            f"unknown algorithm {name!r}: {nearest(name, ALGORITHMS)}; one of your own is named "
            "with the module that registers it, my_module:my_algorithm"
        )
    return replace(ALGORITHMS[name], **dict(map(_change, filter(None, changes.split(",")))))


def _change(text: str) -> tuple[str, Any]:
    """`gated=false` as a field and its value."""
    name, _, value = text.partition("=")
    known = {item.name: item.default for item in fields(Algorithm)}
    if name not in known:
        raise ValueError(f"an algorithm has no field {name!r}: {nearest(name, known)}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def algorithm_name(row: Algorithm) -> str:
    """The shortest text from which `algorithm` makes this row, in any process."""
    ways = sorted(_spellings(row))
    if not ways:
        raise ValueError(
            f"a row with the schedule {row.schedule!r} and the surrogate {row.surrogate!r} has no "
            'name by which a run could find it again: `fp3o.register("my_name", row, __name__)`'
        )
    return ways[0][1]


def _spellings(row: Algorithm) -> Iterator[tuple[int, str]]:
    """Ways to write a row as a change of another one, and how many changes each takes."""
    own = asdict(row)
    for name, base in ALGORITHMS.items():
        changed = {key: own[key] for key, value in asdict(base).items() if own[key] != value}
        # A function of one's own is only known where the module that has it is named, too.
        parts = (
            SCHEDULES.get(changed.get("schedule", "")),
            SURROGATES.get(changed.get("surrogate", "")),
        )
        if any(part and part.__module__ != __name__ for part in parts):
            continue
        words = (v if isinstance(v, str) else json.dumps(v) for v in changed.values())
        pairs = map("=".join, zip(changed, words, strict=True))
        home = f"{REGISTERED_IN[name]}:" if name in REGISTERED_IN else ""
        yield len(changed), home + name + ":" * bool(changed) + ",".join(pairs)
