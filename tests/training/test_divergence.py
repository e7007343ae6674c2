"""Messages about diverged updates: what, how large, and why; and displays of what overflowed."""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tiny_programs import TINY, credit

from fp3o.errors import NonFiniteError
from fp3o.learning.setup import Setup
from fp3o.runs.metrics_log import finite_json
from fp3o.runs.progress import TrainingStatus
from fp3o.training.divergence import CHECKED, DATA, refuse_divergence

NAMES = [*{**CHECKED, **DATA}]
SETUP = Setup(credit().spec, TINY)


def refusal(sizes: dict[str, float], **settings: Any) -> str:
    """The message for these magnitudes, in the second of two seeds."""
    rows = np.ones((2, len(NAMES)))
    for name, size in sizes.items():
        rows[1, NAMES.index(name)] = size
    hparams = dataclasses.replace(SETUP.config.hyperparameters, **settings)
    with pytest.raises(NonFiniteError) as caught:
        refuse_divergence(rows, hparams, SETUP, 7)
    return str(caught.value)


def test_ordinary_updates_pass() -> None:
    """Up to the bound."""
    refuse_divergence(np.full(len(NAMES), 1e15), SETUP.config.hyperparameters, SETUP, 0)


@pytest.mark.parametrize(
    ("sizes", "settings", "words"),
    [
        ({"actor": math.nan}, {"entropy_coef": 1e38}, ["actor of seed 8 is not finite", "Likely "
         "cause: entropy_coef 1e+38, where at most 1 is usual"]),
        ({"critic": 1e30}, {"huber_delta": 1e30}, ["critic of seed 8 reaches 1e+30, beyond 1e+15",
         "Likely cause: huber_delta 1e+30"]),
        ({"critic": math.inf, "reward": 1e9}, {"actor_lr": 1e9},
         ["Likely cause: rewards of 1e+09"]),
        ({"value": math.inf, "target": 3e20}, {}, ["value target of seed 8 reaches 3e+20"]),
        ({"log_prob": math.nan}, {"actor_lr": 0.01}, ["policy's log-probability of seed 8 is not "
         "finite", "reward 1, advantage 1, value target 1", "extreme: try a lower actor_lr (now "
         "0.01)"]),
    ],
)  # fmt: skip
def test_the_cause_is_named(sizes: Any, settings: Any, words: list[str]) -> None:
    """Settings that cannot concern the part are not blamed, nor is a usual learning rate."""
    message = refusal(sizes, **settings)
    assert all(word in message for word in words), message
    assert ("actor_lr" in message) == ("actor_lr" in settings and "critic" not in sizes)


def test_settings_may_differ_between_seeds() -> None:
    """That of the diverged seed is named."""
    assert "entropy_coef 1e+38" in refusal(
        {"actor": math.inf}, entropy_coef=jnp.array([0.01, 1e38])
    )
    assert "extreme: try" in refusal({"actor": math.inf}, entropy_coef=jnp.array([1e38, 0.01]))


def test_numbers_that_overflowed_are_displayed() -> None:
    """A KL of null has no number; files have null in its place."""
    status = TrainingStatus("title", 10, 0, 1)
    status.advance(5, [{"kl": [[0.1, 0.2]]}])
    assert "KL 0.2000" in status.line()
    status.advance(6, [{"kl": [[0.1, None]], "episode_return": None}])
    assert "KL too large" in status.line()
    assert finite_json({"a": [1.0, math.nan, (math.inf,)], "b": "nan"}) == {
        "a": [1.0, None, [None]], "b": "nan",
    }  # fmt: skip
