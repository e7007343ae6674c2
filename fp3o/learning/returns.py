"""Advantage estimation, and the running normalisation of value targets."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.learning.collectives import average, total
from fp3o.networks.backend import scan_unroll
from fp3o.types import Scalar

_NORM_RATE = 1e-5
"""Weight of a new batch in the running means: nearly a cumulative average for 1e5 updates."""


class ValueNorm(NamedTuple):
    """Running first and second moments of the targets, per critic.

    Both start at 0 and are divided by `weight`, the sum of the weights so far.
    """

    mean: Float[Array, " g"]
    square: Float[Array, " g"]
    weight: Float[Array, " g"]

    @classmethod
    def create(cls, num_groups: int) -> "ValueNorm":
        """Initial statistics, before any data."""
        return cls(*(jnp.zeros(num_groups) for _ in range(3)))

    def moments(self) -> tuple[Float[Array, " g"], Float[Array, " g"]]:
        """Mean and standard deviation (at least 0.1) of the targets so far."""
        weight = jnp.maximum(self.weight, 1e-5)
        mean = self.mean / weight
        return mean, jnp.sqrt(jnp.maximum(self.square / weight - jnp.square(mean), 1e-2))

    def normalise(self, x: Float[Array, " k *b"], group: Array) -> Float[Array, " k *b"]:
        """(x - mean) / std, with the statistics of each agent's critic."""
        mean, std = self._per_agent(group, x)
        return (x - mean) / std

    def denormalise(self, x: Float[Array, " k *b"], group: Array) -> Float[Array, " k *b"]:
        """Inverse of `normalise`: back to reward units."""
        mean, std = self._per_agent(group, x)
        return x * std + mean

    def update(
        self, x: Float[Array, " k *b"], group: Array, member: Float[Array, " k"]
    ) -> "ValueNorm":
        """Add a batch of targets; a critic none of whose agents is a member is unchanged."""
        return self.add(target_moments(x, group, member, self.mean.size))

    def add(self, batch: "TargetMoments") -> "ValueNorm":
        """Add a batch of targets by its moments."""
        keep, new = 1.0 - batch.rate, (batch.mean, batch.square, jnp.ones_like(self.weight))
        return ValueNorm(*(keep * x + batch.rate * y for x, y in zip(self, new, strict=True)))

    def _per_agent(self, group: Array, like: Array) -> tuple[Array, Array]:
        shape = (-1, *(1,) * (like.ndim - 1))
        mean, std = self.moments()
        return mean[group].reshape(shape), std[group].reshape(shape)


class TargetMoments(NamedTuple):
    """First and second moments of a batch of targets, per critic."""

    mean: Float[Array, "*m g"]
    square: Float[Array, "*m g"]
    rate: Float[Array, "*m g"]
    """Weight in the running means; 0 for a critic none of whose agents is a member."""


def target_moments(
    x: Float[Array, " k *b"], group: Array, member: Float[Array, " k"], num_critics: int
) -> TargetMoments:
    """Moments of targets, pooled over the members of each critic's group."""
    axes = tuple(range(1, x.ndim))
    belongs = (jnp.arange(num_critics)[:, None] == group) * member
    members = belongs.sum(1)
    pooled = lambda y: belongs @ y / jnp.maximum(members, 1.0)  # noqa: E731
    rate = jnp.where(members > 0, _NORM_RATE, 0.0)
    mean, square = average((x.mean(axes), jnp.square(x).mean(axes)))
    return TargetMoments(pooled(mean), pooled(square), rate)


def gae(delta: Float[Array, " t *b"], decay: Float[Array, " t *b"]) -> Float[Array, " t *b"]:
    """Generalised advantage estimation, A_t = δ_t + decay_t A_{t+1}.

    `decay` is γλ inside an episode and 0 at its end; A2PO multiplies it by the truncated ratio of
    the agents updated before (its preceding-agent correction).
    """

    def back(later: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        advantage = step[0] + step[1] * later
        return advantage, advantage

    start, unroll = jnp.zeros_like(delta[0]), scan_unroll()
    return jax.lax.scan(back, start, (delta, decay), reverse=True, unroll=unroll)[1]


def standardise(
    advantage: Float[Array, " n *b"], alive: Float[Array, " n *b"]
) -> Float[Array, " n *b"]:
    """(A - mean) / (std + 1e-5), per agent over the steps at which it is alive."""
    axes = tuple(range(1, advantage.ndim))
    over = lambda x: (x * alive).sum(axes, keepdims=True)  # noqa: E731
    count, sums = total((alive.sum(axes, keepdims=True), over(advantage)))
    count = jnp.maximum(count, 1.0)
    mean = sums / count
    variance = total(over(jnp.square(advantage - mean))) / count
    return (advantage - mean) / (jnp.sqrt(variance) + 1e-5)


def explained_variance(
    target: Float[Array, " n *b"], value: Float[Array, " n *b"]
) -> Float[Array, ""]:
    """1 - var(target - value) / var(target): 1 is a perfect critic, 0 a constant one."""
    return 1.0 - _variance(target - value) / jnp.maximum(_variance(target), 1e-8)


def _variance(x: Float[Array, "*b"]) -> Float[Array, ""]:
    return average(jnp.square(x - average(x.mean())).mean())


def huber(error: Float[Array, "*b"], delta: Scalar) -> Float[Array, "*b"]:
    """Huber loss: e²/2 up to |e| = delta, then linear."""
    size = jnp.abs(error)
    return jnp.where(size <= delta, 0.5 * jnp.square(error), delta * (size - 0.5 * delta))
