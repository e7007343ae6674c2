"""The policy folder: finding it in a run, reading it with checks, writing it."""

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from fp3o.errors import escaped, nearest
from fp3o.files import read_regular
from fp3o.policy.card import CARD, WEIGHTS, Card, weights_digest
from fp3o.policy.format1 import old_array_name
from fp3o.policy.read_card import read_card
from fp3o.policy.replace import TRIES, current_folder, replace_folder
from fp3o.policy.schema import PolicyError, check_value, parse_json, quote

WHICH = ("best", "last")
"""The policies a run keeps per seed."""
MAX_CARD_BYTES = 2**20
"""Largest `policy.json`, in bytes."""
MAX_HEADER_BYTES = 2**20
"""Largest header of the weights, in bytes."""
PATIENCE = 5.0
"""Seconds for which a folder that is being replaced is read again."""

_Content = TypeVar("_Content")


@contextmanager
def errors_naming(path: Path) -> Iterator[None]:
    """Turn every error about a file into a PolicyError that names it."""
    try:
        yield
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError, SafetensorError) as error:  # they may quote the file
        raise PolicyError(f"{path}: {escaped(str(error)[:200])}") from None


def load_folder(folder: Path) -> tuple[Card, dict[str, np.ndarray]]:
    """The card and the arrays of a folder, which belong together even while it is replaced."""

    def read(place: Path) -> tuple[Card, dict[str, np.ndarray]]:
        card, expected = _load_card(place)
        return card, _load_weights(place, card, expected)

    return _read_whole(folder, read)


def _read_whole(folder: Path, read: Callable[[Path], _Content]) -> _Content:
    """Read a folder; again if it was replaced meanwhile and what was read did not fit."""
    end = time.monotonic() + PATIENCE
    while True:
        place = current_folder(folder) or folder
        before = _identity(place)
        try:
            return read(place)
        except PolicyError:
            replaced = _identity(current_folder(folder) or folder) != before
            if not replaced or time.monotonic() > end:
                raise


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What distinguishes a folder from one that has taken its place; None: there is none."""
    try:
        info = os.stat(folder)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns


def _load_card(folder: Path) -> tuple[Card, dict[str, Any]]:
    """The card of a folder; and format, checksum and size of its weights."""
    with errors_naming(folder / CARD):
        return read_card(_read(folder / CARD, MAX_CARD_BYTES))


def _load_weights(folder: Path, card: Card, expected: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a folder, which must be exactly those of its card."""
    size = 4 * card.num_parameters
    with errors_naming(folder / WEIGHTS):
        data = _read(folder / WEIGHTS, 8 + MAX_HEADER_BYTES + size)
        if len(data) != expected["bytes"]:
            raise PolicyError(f"has {len(data)} bytes, {CARD} says {expected['bytes']}")
        if weights_digest(data)["sha256"] != expected["sha256"]:
            raise PolicyError(f"is not the file {CARD} was written for: the checksums differ")
        length = int.from_bytes(data[:8], "little")
        if length > MAX_HEADER_BYTES or len(data) != 8 + length + size:
            sizes = f"a header of {length} bytes in a file of {len(data)}"
            raise PolicyError(f"has {sizes}; the arrays of {CARD} take {size}")
        names = _stored_names(card, expected["format"])
        _check_header(data[8 : 8 + length], card, names)
        stored = safetensors.numpy.load(data)  # checks that the offsets cover the data exactly
        return {name: stored[old] for name, old in names.items()}


def _stored_names(card: Card, version: int) -> dict[str, str]:
    """Name of every array -> its name in the file."""
    old = version == 1 and card.network_class is None
    return {name: old_array_name(name) if old else name for name in card.shapes()}


def _check_header(text: bytes, card: Card, names: Mapping[str, str]) -> None:
    header = check_value(parse_json(text), dict, "the header")
    header.pop("__metadata__", None)
    current: dict[str, str] = {old: name for name, old in names.items()}
    header = {current.get(str(old), str(old)): entry for old, entry in header.items()}
    card.check_names(header)
    for name, shape in card.shapes().items():
        entry = check_value(header[name], dict, name)
        if (entry.get("dtype"), entry.get("shape")) != ("F32", list(shape)):
            stored = f"{quote(entry.get('dtype'))} {quote(str(entry.get('shape')))}"
            raise PolicyError(f"{name} must be 'F32' '{list(shape)}', got {stored}")


def _read(path: Path, most: int) -> bytes:
    """The content of a regular file; links, pipes and larger files are rejected unread."""
    try:
        return read_regular(path, most)
    except FileNotFoundError:
        raise PolicyError("is missing") from None


def find_policy(path: Path, which: str, seed: int | None) -> Path:
    """The policy folder of a path: itself, or one of a run's; without a seed, the best one."""
    if _holds_policy(path):
        return path
    root = path / "policy"
    if not root.is_dir():
        raise PolicyError(_missing(path))
    if which not in WHICH:
        raise PolicyError(f"unknown policy {which!r}: {nearest(which, WHICH)}")
    known = policies_of_run(root)
    chosen = [key for key in sorted(known) if key[1] == which and seed in (None, key[0])]
    if not chosen:
        wanted = f"seed-{'*' if seed is None else seed}/{which}"
        names = [f"seed-{k}/{name}" for k, name in known]
        raise PolicyError(f"{root} has no {wanted}: {nearest(wanted, names)}")
    return max((known[key] for key in chosen), key=_score)


def _holds_policy(path: Path) -> bool:
    """Whether a path is a policy folder, whole or not."""
    places = (current_folder(path) or path for _ in range(TRIES))
    return any(os.path.lexists(place / name) for place in places for name in (CARD, WEIGHTS))


def policies_of_run(root: Path) -> dict[tuple[int, str], Path]:
    """The folders in a run's folder `policy`, by seed and name; empty if there is none."""
    return {
        (int(folder.name[5:]), name): folder / name
        for folder in (root.iterdir() if root.is_dir() else ())
        for name in WHICH
        if re.fullmatch("seed-[0-9]{1,18}", folder.name) and current_folder(folder / name)
    }


def _missing(path: Path) -> str:
    if path.is_dir():
        return f"{path} holds neither {CARD} nor a run's policy/seed-<k>/best"
    if path.exists():
        return f"{path} is a file: give the policy folder or the run directory"
    if not path.parent.is_dir():
        return f"{path} does not exist"
    folders = sorted(entry.name for entry in path.parent.iterdir() if entry.is_dir())
    return f"{path} does not exist: {nearest(path.name, folders[:50])}"


def _score(folder: Path) -> float:
    """The return of a policy's evaluation; -inf if unknown."""
    card, _ = _read_whole(folder, _load_card)
    evaluation = card.provenance.get("evaluation")
    value = evaluation.get("return") if isinstance(evaluation, dict) else None
    if isinstance(value, (int, float)) and abs(value) < 1e300:
        return float(value)
    return -math.inf


def write_folder(card: Card, weights: Mapping[str, np.ndarray], target: Path) -> None:
    """Write a policy folder; raise before writing anything that could not be read back."""
    data = safetensors.numpy.save(dict(weights))
    with errors_naming(target / CARD):
        text = card.to_json(data)
        if len(text) > MAX_CARD_BYTES:
            raise PolicyError(f"would have {len(text)} bytes, at most {MAX_CARD_BYTES} are allowed")
        read_card(text)
    replace_folder({WEIGHTS: data, CARD: text}, target)
