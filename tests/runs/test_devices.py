"""Runs on several devices: saved on any number of them, resumed on any other."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from small_runs import read_metrics

import fp3o
from fp3o.errors import SettingError
from fp3o.runs.placement import Placement
from fp3o.runs.run_config import RunConfig

SETTINGS: dict[str, Any] = {
    "algorithm": "mappo", "num_envs": 4, "rollout": 10, "hidden": [8], "epochs": 1, "blocks": 4,
    "steps": 240,
    "eval_every": 3, "eval_episodes": 4, "final_episodes": 4, "progress": "quiet", "loggers": (),
}  # fmt: skip
"""Six iterations."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on four devices from the beginning to the end."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    fp3o.train("probe/credit", out=path, devices=4, **SETTINGS)
    return path


def half(path: Path, devices: int) -> Path:
    """A run on some devices, stopped after three iterations."""
    fp3o.train("probe/credit", out=path, devices=devices, **{**SETTINGS, "steps": 120})
    return path


def assert_close(one: Path, other: Path) -> None:
    """All metrics of two runs are equal up to rounding."""
    pairs = [*zip(read_metrics(one), read_metrics(other), strict=True)]
    assert len(pairs) == 7
    for row, same in pairs:
        assert row.keys() == same.keys()
        for name, value in row.items():
            x, y = (np.array(each, float) for each in (value, same[name]))
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=name)


def test_resumed_on_as_many_devices_it_has_the_same_bits(whole: Path, tmp_path: Path) -> None:
    fp3o.resume(half(tmp_path / "run", 4), steps=240, devices=4, progress="quiet", loggers=())
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize("devices", [pytest.param(2, marks=pytest.mark.slow), None])
def test_resumed_on_other_devices(whole: Path, tmp_path: Path, devices: int | None) -> None:
    """Saved on four, resumed on fewer: the same run up to rounding, from the same state."""
    path = half(tmp_path / "run", 4)
    fp3o.resume(path, steps=240, devices=devices, progress="quiet", loggers=())
    assert_close(path, whole)
    policies = [fp3o.Policy.load(each, which="last").weights for each in (path, whole)]
    for name, weight in policies[0].items():
        np.testing.assert_allclose(weight, policies[1][name], atol=2e-6)


def test_devices_that_are_not_there() -> None:
    """The message says how many there are, and that it is too late for more of a CPU."""
    config = RunConfig.from_preset("probe/credit").with_settings({"seeds": 64})
    count = len(jax.devices())
    with pytest.raises(SettingError, match=rf"64 devices .* there are {count} \(cpu\)"):
        Placement(64).choose(config)
    with pytest.raises(SettingError, match="devices must be at least 1, got 0"):
        Placement(0).prepare()


def test_devices_that_do_not_fit_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="3 devices cannot share 1 seeds with 4 blocks"):
        fp3o.train("probe/credit", out=tmp_path / "run", devices=3, **SETTINGS)
    assert not (tmp_path / "run").exists()
