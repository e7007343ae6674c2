"""Surrogate objectives: what the update of a stage maximises per sample."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.algorithms.registry import SURROGATES as SURROGATES
from fp3o.algorithms.registry import register_surrogate
from fp3o.types import Scalar

LARGEST_LOG_RATIO = 20.0
"""Logarithm of the largest ratio that is exact; e^20 is far outside every useful clip range."""


def ratio_of(log_ratio: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """exp(x) up to x = 20, then its tangent: finite, with a finite gradient that never vanishes.

    In 32-bit floats exp(89) is infinite, and one such sample would make the gradients of all agents
    NaN. Its gradient still pushes the ratio back, as that of exp would.
    """
    bound = LARGEST_LOG_RATIO
    tangent = math.exp(bound) * (1.0 + log_ratio - bound)
    return jnp.where(log_ratio > bound, tangent, jnp.exp(jnp.minimum(log_ratio, bound)))


def clip_around_one(x: Float[Array, "*b"], width: Array | Scalar | None) -> Float[Array, "*b"]:
    """Clip to 1 ± width; None: unchanged."""
    return x if width is None else jnp.clip(x, 1.0 - width, 1.0 + width)


@register_surrogate
def clip_own(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """W min(r A, clip(r) A) with the weight W = clip(Π_j r_j) outside the clip (HAPPO, FP3O)."""
    weighted = clip_around_one(others, inner) * advantage
    return jnp.minimum(ratio * weighted, clip_around_one(ratio, clip) * weighted)


@register_surrogate
def clip_product(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """min(r W A, clip(r W) A): the product itself is clipped (A2PO, CoPPO)."""
    product = ratio * clip_around_one(others, inner)
    return jnp.minimum(product * advantage, clip_around_one(product, clip) * advantage)


@register_surrogate(differentiates_others=True)
def joint(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """min(r Π r_j A, clip(r clip(Π r_j)) A), differentiated through all agents (CoPPO's code)."""
    clipped = clip_around_one(ratio * clip_around_one(others, inner), clip)
    return jnp.minimum(ratio * others * advantage, clipped * advantage)
