"""Tests of the grammar `name:key=value,...`."""

import math

import pytest

from fp3o.errors import SettingError
from fp3o.options import parse_options, read_value, write_options

VALUES = (
    True, False, None, 0, -3, 1, 1.0, 2.5e-4, math.inf, -math.inf, "sum", "true", "1", "1e3", "nan",
    "", "a b", "a,b=1", "it's", 'say "x"', "back\\slash'", "ends\\",
    "3m_vs_4m", "a+b", "(", "x:y=1", (3, 4),
    (1,), [1, [2, 3]], {"a": (1, "b,c=2")}, ("a,b=1", 2),
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_round_trip(value: object) -> None:
    """Alone, and between other options."""
    for options in ({"x": value}, {"first": 1, "env.x_2": value, "last": "text"}):
        name, found = parse_options(write_options("default", options))
        assert name == "default"
        assert repr(found) == repr(options)


def test_names_keep_their_colons() -> None:
    assert parse_options("paper") == ("paper", {})
    assert parse_options("my_module:careful:gated=false") == ("my_module:careful", {"gated": False})
    assert parse_options("a.b:parallel_env") == ("a.b:parallel_env", {})
    assert write_options("paper", {}) == "paper"


def test_a_comma_that_no_key_follows_belongs_to_the_value() -> None:
    assert parse_options("x:hidden=64,64,lr=0.1")[1] == {"hidden": (64, 64), "lr": 0.1}
    assert parse_options("x: a = 1 , b = two words")[1] == {"a": 1, "b": "two words"}


def test_constants_are_read_in_any_case() -> None:
    assert [read_value(text) for text in ("True", "FALSE", "none")] == [True, False, None]


def test_values_that_cannot_be_read_back_are_rejected() -> None:
    with pytest.raises(SettingError, match="given twice"):
        parse_options("x:a=1,a=2")
    with pytest.raises(SettingError, match="cannot be written"):
        write_options("x", {"a": object()})
