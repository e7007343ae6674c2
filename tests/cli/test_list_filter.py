"""`fp3o list --filter`: by part of a name or summary, by pattern, and the nearest names."""

import json

import pytest

from fp3o.cli.listing import listing
from fp3o.cli.main import main
from fp3o.errors import SettingError


def test_parts_of_names_and_summaries() -> None:
    """Tasks, families, algorithms and experiments alike; capitals do not matter."""
    assert [*listing("simple_spread")["tasks"]] == ["mpe/simple_spread"]
    assert "mpe/simple_spread" in listing("LANDMARKS")["tasks"]
    assert [*listing("pettingzoo")["families"]] == ["pettingzoo"]
    assert "fp3o" in listing("fp3o")["algorithms"]
    assert listing("tensorboard")["loggers"] == ["tensorboard"]


def test_patterns_match_whole_names() -> None:
    """As in a shell."""
    assert {*listing("matrix/*")["tasks"]} == {"matrix/climbing", "matrix/penalty"}
    assert not listing("*spread*")["algorithms"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("sprad", "nearest: mpe/simple_spread"), ("climbin?g", "nearest: matrix/climbing"),
     ("qqqq", "`fp3o list` shows all")],
)  # fmt: skip
def test_nothing_matches(pattern: str, words: str) -> None:
    """The message names the pattern and what is near."""
    with pytest.raises(SettingError, match="nothing in the list matches") as caught:
        listing(pattern)
    assert pattern in str(caught.value) and words in str(caught.value)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Tables without empty ones, or JSON; the exit status is 2 if nothing matches."""
    assert main(["list", "--filter", "matrix/climbing"]) == 0
    text = capsys.readouterr().out
    assert "matrix/climbing" in text and "algorithms" not in text
    assert main(["list", "--filter", "matrix/climbing", "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)["tasks"]] == ["matrix/climbing"]
    assert main(["list", "--filter", "climbng"]) == 2
    assert "nearest: matrix/climbing" in capsys.readouterr().err
