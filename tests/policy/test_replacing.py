"""A folder that is replaced: readers beside the writer, kills, leftovers, disks that refuse."""

import json
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_policies import make_actor

from fp3o.cli.main import main
from fp3o.errors import UserError
from fp3o.files import CHECKSUM
from fp3o.policy import Policy, PolicyError, replace
from fp3o.policy.card import CARD, WEIGHTS
from fp3o.policy.export import write_policy
from fp3o.policy.files import MAX_CARD_BYTES
from fp3o.policy.read_card import read_card
from fp3o.policy.replace import exchange_names, leftovers
from fp3o.runs.video import _require_writable

PROGRAM = """
import sys, time
from collections import Counter
from pathlib import Path
from fp3o.policy import Policy, replace

part, one, other, run, kind = sys.argv[1:]
policies = {5: Policy.load(one), 6: Policy.load(other)}
target, counts = Path(run) / "policy/seed-0/best", Counter()
if kind == "renamed":
    replace.exchange_names = lambda a, b: False
print("ready", flush=True)
if part == "write":
    while True:
        for policy in policies.values():
            policy.save(target)
end = time.monotonic() + float(part)
while time.monotonic() < end:
    found = Policy.load(run if counts.total() % 2 else target)
    known = policies[found.card.provenance["step"]]
    assert found.card == known.card
    assert all((known.weights[name] == found.weights[name]).all() for name in known.weights)
    counts[found.card.provenance["step"]] += 1
print(counts[5], counts[6])
"""
"""Replaces a policy as fast as it can, or loads it and compares, in a process of its own."""


@pytest.mark.parametrize("kind", ["exchanged", "renamed"])
def test_readers_beside_a_writer_see_whole_policies(kind: str, folder: Path) -> None:
    """A policy of a run is replaced as fast as possible: a reader finds the one or the other."""
    run, other = folder.parent / "run", folder.parent / "other"
    target = run / "policy/seed-0/best"
    setup, rows = make_actor("partial", 4, "discrete")
    write_policy(other, setup, tuple(2.0 * row for row in rows), {"step": 6})
    Policy.load(folder).save(target)
    words = [*map(str, (folder, other, run)), kind]
    start = [sys.executable, "-c", PROGRAM]
    writer = subprocess.Popen([*start, "write", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        found = subprocess.run([*start, "2", *words], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        assert all(int(number) > 20 for number in found.stdout.split()[1:]), found.stdout
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()
    # However it was killed, the policy is there; the next write removes what it left.
    assert Policy.load(target).card.provenance["step"] in (5, 6)
    Policy.load(folder).save(target)
    assert os.listdir(target.parent) == ["best"] and Policy.load(run)


def test_names_are_exchanged(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"in-{name}").touch()
    if not exchange_names(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot exchange names")
    assert (tmp_path / "a/in-b").exists() and (tmp_path / "b/in-a").exists()
    with pytest.raises(FileNotFoundError):
        exchange_names(tmp_path / "a", tmp_path / "c")


def test_a_kill_between_two_renames_loses_nothing(folder: Path) -> None:
    """Without a folder under its name, readers use the one beside it; the next write cleans up."""
    run = folder.parent / "run"
    target = run / "policy/seed-0/best"
    policy = Policy.load(folder)
    policy.save(target)
    old, part = target.with_name(".best.0123abcd"), target.with_name(".best.ffffffff")
    target.rename(old)
    part.mkdir()
    (part / WEIGHTS).write_bytes(b"the first of two files")
    assert Policy.load(target).card == Policy.load(run).card == policy.card
    policy.save(target)
    assert os.listdir(target.parent) == ["best"] and Policy.load(run).card == policy.card


def test_only_our_leftovers_are_removed(folder: Path) -> None:
    """Names of our pattern that hold nothing but a policy's files, and that nobody is writing."""
    policy, parent = Policy.load(folder), folder.parent
    ours, busy = parent / ".best.01234567", parent / ".best.abcdef01"
    foreign = (".best.0123", ".last.01234567", ".best.0123456g", "best.1", "elsewhere")
    strange = parent / ".best.11111111"
    for place in (ours, busy, strange, *(parent / name for name in foreign)):
        shutil.copytree(folder, place)
    (strange / "notes.txt").touch()
    (parent / ".best.22222222").symlink_to(parent / "elsewhere")
    (parent / ".best.33333333").touch()
    kept = {*os.listdir(parent)} - {ours.name}
    assert leftovers(folder) == [ours, busy] or leftovers(folder) == [busy, ours]
    with replace._held(busy):  # as by another process
        policy.save(folder)
    assert {*os.listdir(parent)} == kept and {*os.listdir(parent / "elsewhere")} == {CARD, WEIGHTS}


def test_a_card_without_checksum_still_loads(folder: Path) -> None:
    """As the first versions of format 2 wrote it; saving it again adds the checksum."""
    document = json.loads((folder / CARD).read_text())
    assert document.pop(CHECKSUM)
    (folder / CARD).write_text(json.dumps(document))
    policy = Policy.load(folder)
    saved = policy.save(folder.parent / "again")
    assert (
        json.loads((saved / CARD).read_text())[CHECKSUM] and Policy.load(saved).card == policy.card
    )


def test_places_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the place and the reason; the policy that was there stays."""
    (folder.parent / "file").touch()
    assert main(["export", str(folder), "--out", str(folder.parent / "file" / "policy")]) == 2
    said = capsys.readouterr().err
    assert "cannot write the policy to" in said and "Choose a folder that you can" in said

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PolicyError, match=r"cannot write the policy to .*: Read-only file system"):
        Policy.load(folder).save(folder)
    assert Policy.load(folder) and os.listdir(folder) != []


def test_videos_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is rendered: a folder of that name, a file as the parent, no permission."""
    (tmp_path / "a.gif").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "a.gif", tmp_path / "file" / "b.gif"):
        with pytest.raises(UserError, match=r"cannot write the video .*\.gif: .*with --out"):
            _require_writable(path)
    _require_writable(tmp_path / "new" / "c.gif")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="may not be written"):
        _require_writable(tmp_path / "new" / "c.gif")


def filled(make: Callable[[int], str], head: str, tail: str) -> bytes:
    """The largest card that is allowed, with as many entries as fit."""
    parts, size = [], len(head) + len(tail)
    for number in range(MAX_CARD_BYTES):
        size += len(part := make(number)) + 1
        if size > MAX_CARD_BYTES:
            break
        parts.append(part)
    return f"{head}{','.join(parts)}{tail}".encode()


def widest(agents: int, choices: int) -> bytes:
    """As many sub-actions as are allowed for every agent."""
    sizes = json.dumps([[1] * choices] * agents, separators=(",", ":"))
    actions = f'"actions":{{"kind":"discrete","sizes":{sizes}}}'
    return actions.encode()


HUGE: dict[str, Callable[[], bytes]] = {
    "empty lists": lambda: filled(lambda _: "[]", "[", "]"),
    "small objects": lambda: filled(lambda _: '{"a":1}', "[", "]"),
    "keys": lambda: filled(lambda k: f'"{k}":1', "{", "}"),
    "sub-actions": lambda: widest(100, 1024),
    "one text": lambda: ('{"format":2,"a":"' + "x" * (2**20 - 40) + '\U0001f600"}').encode(),
    "nested": lambda: b"[" * 2**16 + b"]" * 2**16,
}


@pytest.mark.parametrize("case", HUGE)
def test_huge_cards_are_refused_at_once(case: str, folder: Path) -> None:
    """A card of the largest size costs little time and memory, whatever is in it."""
    text = HUGE[case]()
    if case == "sub-actions":
        document = json.loads((folder / CARD).read_text())
        del document["task"]["actions"], document[CHECKSUM]
        document["task"]["agent_types"] = [0] * 100
        plain = json.dumps(document)
        text = plain.replace('"task": {', f'"task": {{{text.decode()},').encode()
    assert len(text) <= MAX_CARD_BYTES
    for measured in ("time", "memory"):
        if measured == "memory":
            tracemalloc.start()
        started = time.process_time()
        try:
            with pytest.raises(UserError):
                read_card(text)
            seconds = time.process_time() - started
            peak = tracemalloc.get_traced_memory()[1] if measured == "memory" else 0
        finally:
            tracemalloc.stop()
        assert peak < 40e6
        assert measured == "memory" or seconds < 3.0
