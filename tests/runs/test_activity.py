"""Lines while something takes long; rates and forecasts without compiling."""

import io
import time

import pytest
from rich.console import Console

from fp3o.runs import activity as activity_module
from fp3o.runs import progress
from fp3o.runs.activity import activity
from fp3o.runs.progress import TrainingStatus


def lines_of(monkeypatch: pytest.MonkeyPatch, seconds: float, terminal: bool = False) -> str:
    """What is printed while something takes some seconds."""
    monkeypatch.setattr(activity_module, "FIRST_AFTER", 0.2)
    monkeypatch.setattr(activity_module, "LINE_SECONDS", 0.15)
    stream = io.StringIO()
    with activity("reading [/x]", Console(file=stream, force_terminal=terminal, width=80)):
        time.sleep(seconds)
    return stream.getvalue()


def test_lines_outside_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing at first, then the text, then the text with the time."""
    assert lines_of(monkeypatch, 0.0) == ""
    first, second, *_ = lines_of(monkeypatch, 0.9).splitlines()
    assert first == "reading [/x] ..." and second.startswith("reading [/x] ... (")


def test_a_spinner_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the text, markup shown as it is."""
    assert "reading [/x]" in lines_of(monkeypatch, 0.2, terminal=True)


def test_lines_end_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread goes on printing."""
    monkeypatch.setattr(activity_module, "FIRST_AFTER", 0.05)
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), activity("x", Console(file=stream)):
        raise ZeroDivisionError
    time.sleep(0.2)
    assert stream.getvalue() == ""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as a list of one number."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_the_rate_leaves_out_the_first_iteration(clock: list[float]) -> None:
    """It may compile; until there is another one, it is all that is known."""
    status = TrainingStatus("title", 1000, 0, 2)
    clock[0] += 50
    status.advance(100, [])
    assert status.rate == 2 * 100 / 50
    for _ in range(3):
        clock[0] += 1
        status.advance(status.done + 100, [])
        assert status.rate == 200
    assert status.left == 2 * 600 / 200


def test_the_duration_of_a_long_training_is_said_once(clock: list[float]) -> None:
    """After some seconds; a short one needs no line."""
    long, short = TrainingStatus("a", 1_000_000, 0, 5), TrainingStatus("b", 1000, 0, 1)
    for status in (long, short):
        status.advance(10, [])
    assert long.forecast() == ""
    clock[0] += 10
    for status in (long, short):
        status.advance(110, [])
    text = long.forecast()
    assert "training will take about 27:46:" in text and "1M steps of 5 seeds" in text
    assert "fp3o resume" in text
    assert long.forecast() == short.forecast() == ""
