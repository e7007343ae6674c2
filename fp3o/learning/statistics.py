"""Statistics over the samples of living agents."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.learning.collectives import gather, maxima, num_shares, total

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Quantiles that the metrics report."""

_INTEGER_OF_SIZE = {4: jnp.int32, 8: jnp.int64}
"""Integer type with as many bytes as a float."""


def alive_mean(x: Float[Array, " n *b"], alive: Float[Array, " n *b"]) -> Float[Array, " n"]:
    """Mean per agent over the steps at which it is alive."""
    axes = tuple(range(1, x.ndim))
    sums, count = total(((x * alive).sum(axes), alive.sum(axes)))
    return sums / jnp.maximum(count, 1.0)


def alive_variance(x: Float[Array, "*b"], alive: Float[Array, "*b"]) -> Float[Array, ""]:
    """Variance over the samples of all living agents together."""
    sums, count = total(((x * alive).sum(), alive.sum()))
    number = jnp.maximum(count, 1.0)
    return total((jnp.square(x - sums / number) * alive).sum()) / number


def quantiles(x: Float[Array, "*b"], alive: Float[Array, "*b"]) -> Float[Array, " q"]:
    """Quantiles of positive numbers over living agents (nearest rank); 0 if there are none.

    Positive floats are ordered like their bit patterns, and integers sort five times faster.
    """
    integer = _INTEGER_OF_SIZE[x.dtype.itemsize]
    bits = jax.lax.bitcast_convert_type(jnp.where(alive > 0, x, jnp.inf), integer)
    ranked = jax.lax.bitcast_convert_type(jnp.sort(gather(bits.reshape(-1))), x.dtype)
    count = total(alive.sum())
    last = jnp.maximum(count - 1.0, 0.0)
    result = ranked[jnp.round(jnp.asarray(QUANTILES) * last).astype(int)]
    return jnp.where(count > 0, result, 0.0)


def effective_sample_size(log_weight: Float[Array, "*b"]) -> Float[Array, ""]:
    """(Σw)² / (N Σw²): effective fraction of the samples under these importance weights."""
    weight = jnp.exp(log_weight - maxima(log_weight.max()))
    sums, squares = total((weight.sum(), jnp.square(weight).sum()))
    return jnp.square(sums) / (weight.size * num_shares() * squares)
