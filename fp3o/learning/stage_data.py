"""TODO."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.learning.setup import Learner
from fp3o.types import Batch

Metrics = dict[str, Array]


class StageCarry(NamedTuple):
    """What one stage hands to the next."""

    learner: Learner
    log_ratio: Float[Array, "n r"]
    """log π - log π_rollout of the actions taken, 0 for dead agents."""


def others_log_ratio(log_ratio: Float[Array, "n r"]) -> Float[Array, "n r"]:
    """Σ_{j≠i} log r_j."""
    return log_ratio.sum(0) - log_ratio


class StageData(NamedTuple):
    """What a stage learns from: the batch of its agents, and what the others have become."""

    batch: Batch
    others: Float[Array, "k r"]
    """W before any clip: the product of the coupled agents' ratios at the start of the stage."""


def coupling_weights(
    coupling: Float[Array, "k n"], log_ratio: Float[Array, "n r"]
) -> Float[Array, "k r"]:
    """W_i = exp(Σ_j C_ij log r_j): products of ratios are sums of logarithms."""
    return jnp.exp(coupling @ log_ratio)
