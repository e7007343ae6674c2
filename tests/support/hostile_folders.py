"""Hostile policy folders: random changes of the card, the weights and the files of a policy."""

import json
import math
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fp3o.files import CHECKSUM, document_checksum
from fp3o.policy.card import CARD, WEIGHTS, weights_digest

NAMES = (
    "", "x", "\x1b[2J\x1b]0;owned\x07", "a\nb", "\u202egnp", "\ud800", "[red]", "[/]", "\0",
    "../../x", "/etc/passwd", "python:os:system", "pettingzoo/os.system", "os:system", "x" * 2000,
    "network.hidden.0.weight", "__metadata__", "F32", "box", "discrete", "layer_norm", "none",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 4, 5, 7, 64, 1023, 1024, 1025, 2**20, 2**24, 2**24 + 1, 2**31, 2**63, 10**30,
    10**400, 1e-12, 1e-300, 0.5, 1.0, 1e300, -0.0, 5e-324, math.inf, math.nan, True, False, None,
)  # fmt: skip

leaves = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(NAMES), st.integers(-3, 70), st.text(max_size=8)
)
values = st.one_of(
    leaves,
    st.lists(leaves, max_size=5),
    st.lists(st.lists(st.integers(-1, 4), max_size=5), max_size=5),
    st.dictionaries(st.sampled_from(("mean", "std", "kind", "a")), leaves, max_size=3),
    st.builds(lambda value, many: [value] * many, leaves, st.sampled_from((9, 99, 1024, 9_999))),
    st.integers(1, 200).map(lambda depth: json.loads("[" * depth + "]" * depth)),
)
"""JSON values of every type, size and depth; also numbers that JSON does not have."""


class Content(NamedTuple):
    """A policy folder in memory."""

    document: dict[str, Any]
    header: dict[str, Any]
    data: bytes


def read_content(folder: Path) -> Content:
    raw = (folder / WEIGHTS).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    document = json.loads((folder / CARD).read_text())
    return Content(document, json.loads(raw[8 : 8 + length]), raw[8 + length :])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys."""
    keys = range(len(value)) if isinstance(value, list) else [*value]
    for key in keys:
        yield value, key
        if isinstance(value[key], (list, dict)):
            yield from places(value[key])


def change_value(root: Any, where: int, value: Any) -> None:
    """Replace a value anywhere."""
    found = [*places(root)]
    if found:
        container, key = found[where % len(found)]
        container[key] = value


def add_entry(root: Any, where: int, value: Any) -> None:
    """Add an entry to an object or a list, or remove one."""
    found = [*places(root)]
    if not found:
        return
    container, key = found[where % len(found)]
    if where % 3 == 0:
        del container[key]
    elif isinstance(container, list):
        container.insert(where % 5, value)
    else:
        container[NAMES[where % len(NAMES)]] = value


def swap_values(root: Any, where: int, value: Any) -> None:
    """Exchange two values, or give one the other's."""
    found = [*places(root)]
    if found:
        (one, a), (other, b) = found[where % len(found)], found[where // 7 % len(found)]
        copied = json.loads(json.dumps(other[b]))
        one[a] = copied


JSON_CHANGES: tuple[Callable[[Any, int, Any], None], ...] = (change_value, add_entry, swap_values)


def changed_bytes(raw: bytes, where: int, value: Any) -> bytes:
    """Flip a bit, cut, lengthen, repeat a part, or insert a text."""
    place = where % max(len(raw), 1)
    kinds = (
        lambda: raw[:place] + bytes([raw[place] ^ (1 << where % 8)]) + raw[place + 1 :],
        lambda: raw[:place],
        lambda: raw + b"\0" * (where % 64),
        lambda: raw[:place] + raw[place // 2 :],
        lambda: raw[:place] + ascii(value).encode() + raw[place:],
    )
    return kinds[where // 11 % len(kinds)]() if raw else ascii(value).encode()


def repeat_key(text: bytes, where: int) -> bytes:
    """The same key twice."""
    cut = text.find(b",", where % max(len(text), 1))
    return text if cut < 0 else text[:cut] + b', "format": 2' + text[cut:]


def replace_file(folder: Path, where: int) -> None:
    """Something else in the place of a file, or beside it."""
    name = (CARD, WEIGHTS)[where % 2]
    path, kept = folder / name, folder.parent / "outside"
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: [shutil.copy(path, kept), path.unlink(), path.symlink_to(kept)],
        lambda: [path.unlink(), path.symlink_to(path.name)],
        lambda: [path.unlink(), os.mkfifo(path)],
        lambda: [path.unlink(), path.mkdir()],
        lambda: path.rename(folder / NAMES[1]),
        lambda: [path.unlink(), path.touch()],
        lambda: os.truncate(path, 2**33),
        lambda: (folder / "config.json").write_text("{}"),
        lambda: (folder / "policy").mkdir(),
        lambda: (folder / "__init__.py").write_text("raise SystemExit"),
    )
    kinds[where // 2 % len(kinds)]()


class Attack(NamedTuple):
    """What is changed, where and to what; and which checksums the attacker computes again."""

    changes: list[tuple[str, int, Any]]
    seal: str


KINDS = (
    "card", "card", "card", "header", "header", "data", "card bytes", "key", "length", "file",
    *["provenance", "number"] * 4,
)  # fmt: skip
FLOATS = (math.nan, math.inf, 3e38, -3e38, -1e30, 0.0, 1e-45, 1.0, 100.0)

attacks = st.builds(
    Attack,
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), values), min_size=1, max_size=3
    ),
    st.sampled_from(("nothing", "weights", *["all"] * 8)),
)


def write_attack(folder: Path, original: Content, attack: Attack) -> None:
    """Write a changed copy of a policy."""
    document, header, data = *json.loads(json.dumps(original[:2])), original.data
    length = None
    for kind, where, value in attack.changes:
        if kind in ("card", "header"):
            root = document if kind == "card" else header
            JSON_CHANGES[where % len(JSON_CHANGES)](root, where // 3, value)
        elif kind == "provenance" and isinstance(document.get("provenance"), dict):
            document["provenance"][NAMES[where % len(NAMES)]] = value
        elif kind == "number":
            place, number = where % max(len(data) // 4, 1) * 4, FLOATS[where % len(FLOATS)]
            data = data[:place] + struct.pack("<f", number) + data[place + 4 :]
        elif kind == "data":
            data = changed_bytes(data, where, value)
        elif kind == "length":
            length = (0, 1, where, 2**62, 2**64 - 1)[where % 5]
    text = json.dumps(header).encode()
    raw = struct.pack("<Q", len(text) if length is None else length) + text + data
    if attack.seal != "nothing" and isinstance(document.get("weights"), dict):
        document["weights"] |= weights_digest(raw)
    if attack.seal == "all" and CHECKSUM in document:
        document[CHECKSUM] = document_checksum(document)
    card = json.dumps(document).encode()
    for kind, where, value in attack.changes:
        if kind == "card bytes":
            card = changed_bytes(card, where, value)
        elif kind == "key":
            card = repeat_key(card, where)
    folder.mkdir()
    (folder / CARD).write_bytes(card)
    (folder / WEIGHTS).write_bytes(raw)
    for kind, where, _ in attack.changes:
        if kind == "file":
            with suppress(OSError):  # two changes of one file
                replace_file(folder, where)
