"""Damaged and hostile policy folders are rejected with one message."""

import json
import math
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from fp3o.files import CHECKSUM, document_checksum
from fp3o.policy import Policy, PolicyError
from fp3o.policy.card import CARD, WEIGHTS, weights_digest


def card_with(*keys: str | int, value: Any, seal: bool = True) -> Callable[[Path], None]:
    """Set one entry of the JSON; an attacker writes the checksum that belongs to it."""

    def change(folder: Path) -> None:
        document = entry = json.loads((folder / CARD).read_text())
        for key in keys[:-1]:
            entry = entry[key]
        entry[keys[-1]] = value
        if seal:
            document[CHECKSUM] = document_checksum(document)
        (folder / CARD).write_text(json.dumps(document))

    return change


def card_text(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / CARD).write_text(text)

    return write


def sealed(folder: Path, data: bytes) -> None:
    """Other weights, with the size and checksum in the card that belong to them."""
    (folder / WEIGHTS).write_bytes(data)
    for key, value in weights_digest(data).items():
        card_with("weights", key, value=value)(folder)


def arrays_with(change: Callable[[dict[str, np.ndarray]], Any]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        arrays = {k: v.copy() for k, v in safetensors.numpy.load_file(folder / WEIGHTS).items()}
        change(arrays)
        sealed(folder, safetensors.numpy.save(arrays))

    return write


def header_with(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A changed header before the same data."""

    def write(folder: Path) -> None:
        data = (folder / WEIGHTS).read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + length])
        text = change(header) or json.dumps(header)
        sealed(folder, struct.pack("<Q", len(text)) + text.encode() + data[8 + length :])

    return write


def linked(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).rename(folder.parent / name)
        (folder / name).symlink_to(folder.parent / name)

    return write


def nested(depth: int) -> Any:
    """Lists in lists."""
    return [nested(depth - 1)] if depth else []


def piped(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return write


def longer(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, size)


FIRST, SECOND = "network.hidden.0.bias", "network.hidden.1.bias"


def overlap(header: dict[str, Any]) -> None:
    begin = header[FIRST]["data_offsets"][0]
    header[SECOND]["data_offsets"] = [begin, begin + 4 * math.prod(header[SECOND]["shape"])]


def with_nan(arrays: dict[str, np.ndarray]) -> None:
    arrays[FIRST][0, 0] = np.nan


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no card": (lambda f: (f / CARD).unlink(), "policy.json: is missing"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "weights.safetensors: is missing"),
    "empty card": (card_text(""), "policy.json: Expecting value"),
    "list for a card": (card_text("[]"), "policy must be an object, got a list of 0"),
    "binary card": (lambda f: (f / CARD).write_bytes(b"\xff\xfe\x80"), "policy.json: "),
    "deep card": (card_text("[" * 100_000), "policy.json: is nested more than 32 levels"),
    "long number": (card_text('{"format": ' + "9" * 5000 + "}"), "policy.json: .*digits"),
    "same key twice": (card_text('{"format": 1, "format": 1}'), "same key twice"),
    "NaN in the card": (card_with("provenance", "x", value=math.nan), "holds 'NaN'"),
    "infinity in the card": (card_text('{"format": 1e999}'), "holds '1e999', which is not a fin"),
    "deep provenance": (card_with("provenance", "x", value=nested(99)), "nested more than 32"),
    "many values": (card_with("provenance", "x", value=[0] * 2**17), "more than the 131072 values"),
    "escapes": (card_with("task", "name", value="a\x1b[2J"), r"name must be printable.*got 'a.x1b"),
    "long name": (card_with("task", "name", value="x" * 1001), "text of at most 1000 characters"),
    "changed epsilon": (
        card_with("normalisers", "input", "epsilon", value=0.5, seal=False),
        "policy.json: was changed after it was written: its checksum differs",
    ),
    "no checksum": (card_with(CHECKSUM, value=None, seal=False), "its checksum differs"),
    "checksum of format 1": (card_with("format", value=1, seal=False), "unknown key"),
    "large card": (longer(CARD, 2**33), "8589934592 bytes, at most 1048576"),
    "format": (card_with("format", value=3), "has the format 3, this version of fp3o reads"),
    "format true": (card_with("format", value=True), "has the format True"),
    "unknown key": (card_with("tsk", value=1), "unknown key 'tsk': did you mean 'task'"),
    "missing key": (card_with("network", value={"hidden": [3]}), "policy.network lacks gru_size"),
    "name": (card_with("task", "name", value=3), "task.name must be printable text of .*, got 3"),
    "wide layer": (card_with("network", "hidden", value=[10**9, 4]), r"hidden\[0\] must be an int"),
    "wide layers": (card_with("network", "hidden", value=[2**20] * 2), "parameters, at most 6710"),
    "wide team": (
        lambda f: [
            card_with("network", "hidden", value=[1, 1])(f),
            card_with("task", "obs_size", value=2**24)(f),
        ],
        "parameters, at most 6710",
    ),
    "negative": (card_with("network", "hidden", value=[-1, 4]), r"hidden\[0\].*got -1"),
    "no layers": (card_with("network", "hidden", value=[]), "list of 1 to 64 entries, got"),
    "many layers": (card_with("network", "hidden", value=[1] * 10**5), "list of 1 to 64 entries"),
    "float size": (card_with("network", "gru_size", value=4.0), "gru_size must be an integer"),
    "bool size": (card_with("task", "obs_size", value=True), "obs_size must be an integer"),
    "many agents": (card_with("task", "agent_types", value=[0] * 10**5), "agent_types must be a"),
    "agents differ": (card_with("task", "agent_types", value=[0]), "for 4 agents, agent_types"),
    "activation": (card_with("network", "activation", value="os.system"), "'relu' or 'tanh'"),
    "actions": (card_with("task", "actions", "kind", value="Box"), "'discrete' or 'mixed', got "),
    "uneven": (card_with("task", "actions", "sizes", 0, value=[3]), "same number of sub-actions"),
    "choices": (card_with("task", "actions", "sizes", 0, value=[3, 2**23]), "1048576 outputs"),
    "sharing depth": (card_with("sharing", value=[[0] * 4]), "has 1 layers, the network has 4"),
    "sharing agents": (card_with("sharing", 0, value=[0] * 3), "is for 3 agents, the task has 4"),
    "sharing order": (card_with("sharing", 0, value=[1, 0, 0, 0]), "in order of appearance"),
    "epsilon": (card_with("normalisers", "input", "epsilon", value=-1), "epsilon must be a number"),
    "value": (card_with("normalisers", "value", value=[]), "value must be an object"),
    "value sizes": (
        card_with("normalisers", "value", value={"mean": [0], "std": [1, 2]}), "as many means",
    ),
    "provenance": (card_with("provenance", value=[1]), "provenance must be a JSON dict"),
    "parent path": (card_with("weights", "file", value="../x"), "file must be 'weights.safe"),
    "absolute path": (card_with("weights", "file", value="/etc/passwd"), "weights.file must be"),
    "long words": (card_with("weights", "file", value="x" * 10**6), "got 'x{60}'$"),
    "size": (card_with("weights", "bytes", value=7), "bytes, policy.json says 7"),
    "checksum": (card_with("weights", "sha256", value="0" * 64), "checksums differ"),
    "link to the card": (linked(CARD), "policy.json: is a symbolic link"),
    "link to weights": (linked(WEIGHTS), "weights.safetensors: is a symbolic link"),
    "pipe": (piped(WEIGHTS), "is not a regular file"),
    "pipe for a card": (piped(CARD), "policy.json: is not a regular file"),
    "large weights": (longer(WEIGHTS, 2**33), "8589934592 bytes, at most"),
    "cut weights": (longer(WEIGHTS, 1000), "has 1000 bytes"),
    "cut and sealed": (lambda f: sealed(f, (f / WEIGHTS).read_bytes()[:-4]), "a header of"),
    "tiny": (lambda f: sealed(f, b"ab"), "in a file of 2;"),
    "long header": (
        lambda f: sealed(f, struct.pack("<Q", 2**62) + (f / WEIGHTS).read_bytes()[8:]),
        "a header of 4611686018427387904 bytes",
    ),
    "header is no JSON": (header_with(lambda h: "}" * 9), "weights.safetensors: Expecting"),
    "header is a list": (header_with(lambda h: "[1]"), "must be a JSON dict, got a list of 1"),
    "entry": (header_with(lambda h: h.update({FIRST: 3})), "0.bias must be a JSON dict, got 3"),
    "dtype": (header_with(lambda h: h[FIRST].update(dtype="I32")), "must be 'F32' .*got 'I32'"),
    "shape": (header_with(lambda h: h[FIRST].update(shape=[6, 1])), r"got 'F32' '\[6, 1\]'"),
    "offsets": (header_with(lambda h: h[FIRST].update(data_offsets=[0, 2**40])), "weights.safet"),
    "overlap": (header_with(overlap), "weights.safetensors: .*offset"),
    "missing array": (arrays_with(lambda a: a.pop(FIRST)), "a header of"),
    "other name": (arrays_with(lambda a: a.update(x=a.pop(FIRST))), "lacks the array 'network.hid"),
    "extra array": (
        header_with(lambda h: h.update(x={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})),
        "has the array 'x' the network does not have",
    ),
    "NaN": (arrays_with(with_nan), "0.bias holds values that are not finite"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_folders(case: str, folder: Path) -> None:
    """One exception that names the file and the fault, before anything large is read."""
    change, message = HOSTILE[case]
    Policy.load(folder)
    change(folder)
    tracemalloc.start()
    try:
        with pytest.raises(PolicyError, match=message) as caught:
            Policy.load(folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(folder) in str(caught.value) and len(str(caught.value)) < 400 + len(str(folder))
    assert peak < 2**26
