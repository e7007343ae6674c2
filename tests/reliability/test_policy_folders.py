"""Hostile policy folders: loaded as they were, loaded and used, or refused, at little cost."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from hostile_folders import Attack, attacks, read_content, write_attack
from hypothesis import given
from hypothesis import strategies as st
from small_policies import saved_policy

from fp3o.policy import Policy

SECONDS, BYTES = 1.0, 40e6
"""CPU time and memory that one folder may cost."""

Use = Callable[[Path, Path, Path], dict[str, Any]]
"""Use of a hostile folder, made of another one; the third is for a copy."""


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Policies of every kind: discrete, continuous, recurrent, of format 1, a custom network."""
    root = tmp_path_factory.mktemp("originals")
    saved_policy("partial", 4, "discrete", root / "recurrent")
    saved_policy("full", 0, "box", root / "continuous")
    plain = saved_policy("none", 0, "discrete", root / "plain")
    arrays = tuple((name, array.shape) for name, array in plain.weights.items())
    custom = replace(plain.card, network_class="os:system", arrays=arrays)
    Policy(custom, plain.weights).save(root / "custom")
    old = Path("tests/policy/fixtures/format-1/recurrent").absolute()
    return [old, *(root / name for name in ("recurrent", "continuous", "plain", "custom"))]


@pytest.fixture(scope="module")
def use() -> Iterator[Use]:
    """Hostile folders are used in another process, without the checks of shapes of the tests."""
    program = [sys.executable, "tests/support/policy_attempts.py"]
    process = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    questions, answers = process.stdin, process.stdout

    def ask(*folders: Path) -> dict[str, Any]:
        print(json.dumps([*map(str, folders)]), file=questions, flush=True)
        return json.loads(answers.readline())

    yield ask
    process.communicate()


def test_hostile_policy_folders(
    campaign: Campaign, originals: list[Path], use: Use, tmp_path: Path
) -> None:
    """Nothing is imported, nothing is lost, and no folder costs much time or memory."""
    folder, contents = tmp_path / "hostile", [*map(read_content, originals)]

    @given(st.integers(0, len(originals) - 1), attacks)
    def attack(number: int, attack: Attack) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        write_attack(folder, contents[number], attack)
        answer = use(folder, originals[number], tmp_path / "copy")
        assert not answer["ending"].startswith("error"), answer["ending"]
        assert answer["seconds"] < SECONDS and answer["bytes"] < BYTES, answer
        assert answer["imported"] == [], answer
        campaign.count(answer["ending"])

    campaign.attack(attack, small=200, medium=1_500, whole=20_000)
