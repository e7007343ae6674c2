"""A custom algorithm: registered by a module and found by its name."""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import Stage, register_schedule
from fp3o.algorithms.table import ALGORITHMS, algorithm_name, parse_algorithm, register_algorithm
from fp3o.envs.toys.probe import PROBES
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup

GENTLE = "custom_algorithm:gentle"
SMALL: dict[str, Any] = {
    "num_envs": 4, "rollout": 5, "sequence_length": 1, "gru_size": 0, "hidden": (8, 8), "epochs": 2,
    "seeds": 1, "eval_every": 1, "eval_episodes": 4, "final_episodes": 4, "steps": 40,
    "progress": "quiet", "loggers": (),
}  # fmt: skip


def test_a_custom_row_is_named_with_its_module() -> None:
    row = parse_algorithm(GENTLE)
    assert ALGORITHMS["gentle"] == row and algorithm_name(row) == GENTLE
    changed = parse_algorithm(f"{GENTLE}:inner_clip=0.5")
    assert changed.inner_clip == 0.5 and algorithm_name(changed) == f"{GENTLE}:inner_clip=0.5"
    assert len(Path("examples/custom_algorithm.py").read_text().splitlines()) <= 35


@pytest.mark.parametrize(
    "sharing",
    ["none", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("full", "partial"))],
)
def test_it_is_trained_and_resumed(sharing: str, tmp_path: Path) -> None:
    """The run stores the module, so another process can import it."""
    out = tmp_path / "run"
    fp3o.train("probe/credit", algorithm=GENTLE, sharing=sharing, out=out, **SMALL)
    assert json.loads((out / "config.json").read_text())["settings"]["algorithm"] == GENTLE
    assert fp3o.resume(out, steps=60, progress="quiet", loggers=(), trust=True).finished


@pytest.mark.usefixtures("registries")
def test_rows_and_schedules_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="built-in algorithm"):
        register_algorithm("mappo", Algorithm(), __name__)
    with pytest.raises(ValueError, match="letters"):
        register_algorithm("my algorithm", Algorithm(), __name__)
    with pytest.raises(ValueError, match="does not register an algorithm 'gentlest'"):
        parse_algorithm("custom_algorithm:gentlest")
    with pytest.raises(ValueError, match="my_module:my_algorithm"):
        parse_algorithm("gentler")

    @register_schedule
    def crooked(key: Any, score: Any, epochs: int, row: Any) -> Stage:
        fine = fp3o.whole_team_stages(np.zeros((1, score.size, score.size)), [epochs])
        return fine._replace(coupling=jnp.zeros((1, 2, 2)))

    with pytest.raises(ValueError, match=r"`coupling` must have shape \(1, 3, 3\)"):
        Setup(PROBES["credit"].spec, Config(algorithm=Algorithm("crooked")))
    with pytest.raises(ValueError, match=r"fp3o\.register"):
        algorithm_name(Algorithm("crooked"))
    # An unknown schedule has a name; it is rejected where the settings are checked.
    assert algorithm_name(Algorithm("croked")) == "fp3o:schedule=croked"
    with pytest.raises(ValueError, match="already registered by"):

        @register_schedule
        def simultaneous(key: Any, score: Any, epochs: int, row: Any) -> Stage:
            raise AssertionError
