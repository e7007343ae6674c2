"""Arrays per seed, and the check that all numbers of a seed are usable."""

from typing import Any

import jax
import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.learning.setup import Learner
from fp3o.training.divergence import PARTS, describe, is_broken


def by_seed(x: Any, seeds: int) -> np.ndarray:
    """A NumPy array with a leading axis of seeds; programs of one seed have no such axis."""
    return np.asarray(x) if seeds > 1 else np.asarray(x)[None]


def require_finite(learner: Learner, best_actor: Any, seeds: range, path: str) -> None:
    """Reject an initial state, or one restored from a path, that could not be trained or saved."""
    broken = first_non_finite(learner, seeds)
    if broken := broken or first_non_finite(learner._replace(actor=best_actor), seeds):
        source = f"the newest checkpoint of {path} (to use the one before it, move it)"
        source = source if path else "the initial state"
        raise NonFiniteError(f"{broken} in {source}: it cannot be trained further")


def first_non_finite(learner: Learner, seed_numbers: range) -> str | None:
    """The first part of the learner with a NaN, an infinity or a huge number; None: there is none.

    Actor, critic, both optimiser states and the value normaliser are checked.
    """
    seeds = len(seed_numbers)
    arrays = {
        name: [by_seed(x, seeds) for x in jax.tree.leaves(getattr(learner, name))] for name in PARTS
    }
    for index, seed in enumerate(seed_numbers):
        for name, parts in arrays.items():
            size = float(np.max([np.abs(x[index]).max(initial=0) for x in parts]))
            if is_broken(name, size):
                return f"the {describe(name, size, seed)}"
    return None
