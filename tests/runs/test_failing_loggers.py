"""Loggers that cannot be opened, or fail in the middle of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_trackers import fake_package

from fp3o.errors import UserError
from fp3o.runs import loggers
from fp3o.runs.directory import RunDirectory
from fp3o.runs.logger import LoggedRun, Logger
from fp3o.runs.loggers import LoggerKind, check_loggers, open_loggers

SETTINGS = {"seed": 0, "seeds": 1}
ROWS = [{"iteration": 1, "step": 8, "seed": 0, "kl": [0.5]}]


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("api_key not configured (no-tty)\x1b[2J\nsecond line")


def opened(names: Sequence[str], path: Path) -> list[Logger]:
    """The loggers of a run in this directory."""
    directory = RunDirectory(path)
    directory.lock()
    try:
        return open_loggers(names, directory, LoggedRun(path, SETTINGS))
    finally:
        directory.unlock()


@pytest.mark.parametrize(
    ("name", "members", "words"),
    [
        ("wandb", {"init": fail}, "Log in with `wandb login`"),
        ("mlflow", {"MlflowClient": fail, "entities": None}, "MLFLOW_TRACKING_URI"),
    ],
)
def test_a_logger_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, members: Any, words: str
) -> None:
    """The message says why, how to log in or reach it, and that there are others."""
    fake_package(monkeypatch, name, **members)
    check_loggers([name])
    with pytest.raises(UserError, match=rf"{name}.*api_key.*{words}.*--loggers") as error:
        opened([name], tmp_path)
    assert str(error.value).isprintable() and "second line" not in str(error.value)


class Failing:
    """Fails when it writes, or when it closes."""

    calls: Sequence[str] = ()

    def __init__(self, *_: object) -> None:
        Failing.calls = []

    def video(self, path: Path, seed: int, step: int) -> None:
        fail()

    def write(self, rows: object) -> None:
        Failing.calls = [*Failing.calls, "write"]
        fail()

    def close(self) -> None:
        Failing.calls = [*Failing.calls, "close"]


def test_a_failure_is_reported_once_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run outlives its loggers."""
    kinds = {**loggers.LOGGERS, "wandb": LoggerKind(Failing)}
    monkeypatch.setattr(loggers, "LOGGERS", kinds)
    failing, tensorboard = opened(["wandb", "none", "tensorboard"], tmp_path)
    with pytest.warns(RuntimeWarning, match=r"'wandb' failed .*metrics\.jsonl has all") as warned:
        for _ in range(3):
            failing.write(ROWS)
            tensorboard.write(ROWS)
    for logger in (failing, tensorboard):
        logger.close()
    assert len(warned) == 1 and Failing.calls == ["write"]
    assert [*(tmp_path / "tensorboard" / "seed-0").iterdir()]
