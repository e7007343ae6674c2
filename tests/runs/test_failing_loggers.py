"""Loggers that cannot be opened, or fail in the middle of a run."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fp3o.errors import UserError
from fp3o.runs import loggers
from fp3o.runs.loggers import check_loggers, open_loggers

SETTINGS = {"seed": 0, "seeds": 1}
ROWS = [{"iteration": 1, "step": 8, "seed": 0, "kl": [0.5]}]


def fake_package(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """A package that is not installed here."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("api_key not configured (no-tty)\x1b[2J\nsecond line")


@pytest.mark.parametrize(
    ("name", "members", "words"),
    [
        ("wandb", {"init": fail}, "wandb login"),
        ("mlflow", {"set_experiment": fail}, "MLFLOW_TRACKING_URI"),
    ],
)
def test_a_logger_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, members: Any, words: str
) -> None:
    """The message says why, how to log in or reach it, and that there are others."""
    fake_package(monkeypatch, name, **members)
    check_loggers([name])
    with pytest.raises(UserError, match=rf"{name}.*api_key.*{words}.*--loggers") as error:
        open_loggers([name], tmp_path, SETTINGS, 0)
    assert str(error.value).isprintable() and "second line" not in str(error.value)


class Failing:
    """Fails when it writes, or when it closes."""

    calls: Sequence[str] = ()

    def __init__(self, *_: object) -> None:
        Failing.calls = []

    def write(self, rows: object) -> None:
        Failing.calls = [*Failing.calls, "write"]
        fail()

    def close(self) -> None:
        Failing.calls = [*Failing.calls, "close"]


def test_a_failure_is_reported_once_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run outlives its loggers."""
    monkeypatch.setattr(loggers, "LOGGERS", {**loggers.LOGGERS, "wandb": Failing})
    failing, tensorboard = open_loggers(["wandb", "none", "tensorboard"], tmp_path, SETTINGS, 0)
    with pytest.warns(RuntimeWarning, match=r"'wandb' failed .*metrics\.jsonl has all") as warned:
        for _ in range(3):
            failing.write(ROWS)
            tensorboard.write(ROWS)
    for logger in (failing, tensorboard):
        logger.close()
    assert len(warned) == 1 and Failing.calls == ["write"]
    assert [*(tmp_path / "tensorboard" / "seed-0").iterdir()]
