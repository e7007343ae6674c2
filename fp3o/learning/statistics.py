"""TODO."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Which quantiles of the ratios are reported."""


def living_mean(x: Float[Array, "n *b"], alive: Float[Array, "n *b"]) -> Float[Array, " n"]:
    """Each agent's mean over the steps at which it is alive."""
    axes = tuple(range(1, x.ndim))
    return (x * alive).sum(axes) / jnp.maximum(alive.sum(axes), 1.0)


def living_variance(x: Float[Array, "*b"], alive: Float[Array, "*b"]) -> Float[Array, ""]:
    """Variance over the living samples of all agents together."""
    number = jnp.maximum(alive.sum(), 1.0)
    mean = (x * alive).sum() / number
    return (jnp.square(x - mean) * alive).sum() / number


def quantiles(x: Float[Array, "*b"], alive: Float[Array, "*b"]) -> Float[Array, " q"]:
    """Quantiles of positive numbers over the living samples (nearest rank), by one sort; 0: none.

    Positive floats are ordered like their bits, and integers sort five times faster.
    """
    bits = jax.lax.bitcast_convert_type(jnp.where(alive > 0, x, jnp.inf), BITS[x.dtype.itemsize])
    ranked = jax.lax.bitcast_convert_type(jnp.sort(bits, axis=None), x.dtype)
    last = jnp.maximum(alive.sum() - 1.0, 0.0)
    found = ranked[jnp.round(jnp.asarray(QUANTILES) * last).astype(int)]
    return jnp.where(alive.sum() > 0, found, 0.0)


BITS = {4: jnp.int32, 8: jnp.int64}
"""The integer type as wide as a float."""


def effective_sample_size(log_weight: Float[Array, "*b"]) -> Float[Array, ""]:
    """(Σw)² / (N Σw²): the share of the samples that still counts under these weights."""
    weight = jnp.exp(log_weight - log_weight.max())
    return jnp.square(weight.sum()) / (weight.size * jnp.square(weight).sum())
