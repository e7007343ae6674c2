"""The state of training, and the random keys of an iteration."""

from typing import NamedTuple

import jax
from jaxtyping import Array, PRNGKeyArray

from fp3o.learning.setup import Learner, Setup
from fp3o.training.mesh import BY_ENV, BY_SEED
from fp3o.training.rollout import RolloutState


class TrainState(NamedTuple):
    """Complete state of training, sufficient to continue it."""

    learner: Learner
    rollout: RolloutState
    key: PRNGKeyArray


STATE = TrainState(BY_SEED, BY_ENV, BY_SEED)  # pyright: ignore[reportArgumentType]
"""How a `TrainState` is divided among devices."""


def split_keys(setup: Setup, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
    """Keys of later iterations, of every step of the rollout, and of the learner."""
    key, step_key, learn_key = jax.random.split(key, 3)
    return key, jax.random.split(step_key, setup.config.rollout), learn_key
