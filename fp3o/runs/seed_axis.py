"""Arrays per seed, and the check that all numbers of a seed are finite."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.learning.setup import Learner


def by_seed(x: Any, seeds: int) -> np.ndarray:
    """A NumPy array with a leading axis of seeds; programs of one seed have no such axis."""
    return np.asarray(x) if seeds > 1 else np.asarray(x)[None]


def first_non_finite(learner: Learner, seed_numbers: range) -> str | None:
    """The first part of the learner with a NaN or infinity, and its seed; None: all finite.

    Actor, critic, both optimiser states and the value normaliser are checked.
    """
    finite = jax.device_get(_finite_parts(learner, len(seed_numbers)))
    for index, seed in enumerate(seed_numbers):
        for part, ok in finite.items():
            if not ok[index]:
                return f"the {PART_NAMES[part]} of seed {seed}"
    return None


PART_NAMES = {
    "actor": "actor",
    "actor_adam": "actor's optimiser state",
    "critic": "critic",
    "critic_adam": "critic's optimiser state",
    "value_norm": "value normaliser",
}
"""How messages name the parts of a `Learner`."""


@partial(jax.jit, static_argnames="seeds")
def _finite_parts(learner: Learner, seeds: int) -> dict[str, Any]:
    """Whether each part is finite, per seed."""

    def finite(part: Any) -> Any:
        leaves = [jnp.isfinite(x).reshape(seeds, -1).all(1) for x in jax.tree.leaves(part)]
        return jnp.stack(leaves).all(0)

    return {name: finite(part) for name, part in learner._asdict().items()}
