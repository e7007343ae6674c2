"""Runs with a critic that looks across agents: settings, checkpoints, policies."""

from pathlib import Path

import numpy as np
import pytest
from kill_and_resume import differences
from small_runs import SMALL, TASK

import fp3o


def test_an_interrupted_run_is_resumed_exactly(tmp_path: Path) -> None:
    """Two seeds with attention; policies hold actors only, so they load without the critic."""
    settings = {**SMALL, "critic": "attention"}
    whole = fp3o.train(TASK, out=tmp_path / "whole", **settings)
    fp3o.train(TASK, out=tmp_path / "parts", **{**settings, "steps": 24 * 4})
    parts = fp3o.resume(tmp_path / "parts", steps=SMALL["steps"], progress="quiet")
    assert parts.config.learner.critic == "attention"
    assert differences(whole.path, parts.path) == []
    assert np.isfinite(parts.evaluate(4)["policies"][0]["return"])


def test_settings_of_critics_are_refused(tmp_path: Path) -> None:
    """Before a file is written."""
    for settings, message in (
        ({"critic": "grahp"}, "did you mean 'graph'"),
        ({"critic": "graph"}, "probe/credit has none"),
        ({"network": "attention"}, "which an actor must not"),
    ):
        with pytest.raises(fp3o.SettingError, match=message):
            fp3o.train(TASK, out=tmp_path / "run", **{**SMALL, **settings})
        assert not (tmp_path / "run").exists()
