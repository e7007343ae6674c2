"""Environment objects and functions of the user's program."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp3o
from fp3o.envs.registry import REGISTERED, register_env
from fp3o.runs import run as runner

SMALL: dict[str, Any] = {
    "num_envs": 4, "rollout": 5, "sequence_length": 1, "gru_size": 0, "hidden": (8, 8), "epochs": 2,
    "seeds": 1, "eval_every": 1, "eval_episodes": 4, "final_episodes": 4, "steps": 40,
    "progress": "quiet", "loggers": (),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "report", lambda _, out: out)


def test_an_object_is_trained_as_it_is(tmp_path: Path) -> None:
    """A PettingZoo environment, a function that makes one; pictures where it has some."""
    pytest.importorskip("mpe2", reason="needs the extra mpe2")
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(max_cycles=5, render_mode="rgb_array")

    def make(**kwargs: Any) -> Any:
        return simple_spread_v3.parallel_env(max_cycles=5, **kwargs)

    for number, thing in enumerate((env, make)):
        out = tmp_path / str(number)
        run = fp3o.train(thing, out=out, **SMALL)
        assert run.config.task.startswith("own/")
        assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])
        assert fp3o.resume(out, steps=60, progress="quiet", loggers=()).finished
        film = fp3o.render(fp3o.Policy.load(out), tmp_path / f"{number}.gif", 1, seconds=1)
        assert film.exists()
    # Another process knows nothing of the object until it is given again.
    known = REGISTERED.pop(run.config.task)
    with pytest.raises(ValueError, match=r"fp3o\.adopt"):
        fp3o.evaluate(out, 4)
    assert register_env(make).name == known.name
    assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])


def test_objects_that_are_no_tasks() -> None:
    with pytest.raises(ValueError, match="nothing to train on"):
        fp3o.train(3, **SMALL)
