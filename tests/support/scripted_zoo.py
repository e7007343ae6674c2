"""Tasks of scripted PettingZoo environments, and their time steps."""

from typing import Any

import jax
import numpy as np
from gymnasium import spaces
from tiny_zoo import Scripted

from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.types import TimeStep

KEY = jax.random.key(0)
SPREAD = "mpe2.simple_spread_v3:parallel_env"


def vector(size: int, bound: float = np.inf) -> spaces.Box:
    return spaces.Box(-bound, bound, (size,), np.float32)


def scripted(team: Any, frames: Any, **options: Any) -> tuple[PettingZoo, list[Scripted]]:
    """A task of one script, and the environments that were made of it."""
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted(team, frames))
        return made[-1]

    return PettingZoo(make, **options), made


def play(task: PettingZoo, *actions: Any) -> list[TimeStep]:
    """Time steps of one environment, starting with its reset; an action is `(n, d)`."""
    env = task.vectorise(1)
    state, now = env.reset(KEY)
    shown = [now]
    for action in actions:
        state, now = env.step(state, np.array(action)[None])
        shown.append(now)
    return shown


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


TWO = {"a_0": (vector(1), spaces.Discrete(2)), "a_1": (vector(1), spaces.Discrete(2))}
"""A team of two for scripts."""
IDLE = [[0], [0]]


def seen(first: float, second: float) -> dict[str, np.ndarray]:
    return {"a_0": np.array([first]), "a_1": np.array([second])}


def both(value: Any) -> dict[str, Any]:
    return dict.fromkeys(TWO, value)
