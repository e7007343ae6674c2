"""Settings in YAML: numbers with exponents, no surprises of YAML 1.1, nothing but plain values."""

from pathlib import Path

import pytest

from fp3o.errors import SettingError
from fp3o.runs.run_config import RunConfig
from fp3o.runs.settings import read_settings
from fp3o.runs.yaml_settings import parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3), ("1E6", 1e6), ("-.5e3", -500.0), ("1.", 1.0), ("+2.5", 2.5),
        ("1_000_000", 1_000_000), ("-7", -7), ("007", 7), ("-.inf", float("-inf")),
        ("true", True), ("False", False), ("no", "no"), ("on", "on"), ("none", "none"),
        ("null", None), ("~", None), ("", None), ("'1'", "1"), ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"), ("0,0,1", "0,0,1"), ("[64, 64]", [64, 64]),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    """By the rules of YAML 1.2; `sharing: none` and `no` are texts."""
    found = parse_yaml(f"name: {text}")["name"]
    assert found == value and type(found) is type(value)


def test_settings_of_a_run(tmp_path: Path) -> None:
    """The same settings as from Python."""
    path = tmp_path / "settings.yaml"
    path.write_text(
        "# a comment\nactor_lr: 1e-3\nsteps: 2e6\nhidden:\n  - 32\n  - 32\nsharing: none\n"
    )
    config = RunConfig.from_preset("mpe/simple_spread").with_settings(read_settings(path))
    assert config.settings["actor_lr"] == 1e-3 and config.steps == 2_000_000
    assert config.learner.hidden == (32, 32) and config.learner.sharing == "none"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: &x 1\nb: *x", "aliases"),
        ("a: 1\na: 2", "same key twice"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: [1", "line 1"),
        ("a: b: c", "mapping values"),
        ("{a: 1}: 2", "unhashable"),
        ("[" * 5000, "not valid YAML"),
        ("a: !!int x", "not valid YAML"),
    ],
)
def test_refused(tmp_path: Path, text: str, reason: str) -> None:
    """One line with the file and the reason; no object of Python is made."""
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(SettingError, match=reason) as caught:
        read_settings(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
