"""Components of FP3O: the condition, the advantage split and the non-overlapping selection."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

TOLERANCE = 1e-5
"""How far below zero the gap may be; guards against rounding only (D5)."""


def random_split(key: PRNGKeyArray, advantage: Float[Array, " n *b"]) -> Float[Array, " n *b"]:
    """A^i = n w_i A with w ~ Dirichlet(1) at every step: mean weight 1, the team's sum kept."""
    weights = jax.random.exponential(key, advantage.shape, advantage.dtype)
    return advantage.shape[0] * weights / weights.sum(0) * advantage


def condition_gap(
    own: Float[Array, " n *b"],
    others: Float[Array, " n *b"],
    advantage: Float[Array, " n *b"],
    alive: Float[Array, " n *b"],
) -> Float[Array, ""]:
    """Σ_i μ(others) - Σ_i μ(rollout): Σ_i Σ alive A^i h_i (Π_{j≠i} r_j - 1).

    `own` is log h_i and `others` is Σ_{j≠i} log r_j. Computed as one sum of small terms, because
    the difference of two large sums would be lost in rounding.
    """
    return (alive * advantage * jnp.exp(own) * jnp.expm1(others)).sum()


def non_overlapping(key: PRNGKeyArray, num_agents: int) -> Int[Array, " n"]:
    """f⁻¹ of the selection: the agent j whose pipeline updates agent i in the dependent step.

    Pipelines in random order, shifted by one place (Eq. 9): no agent is paired with itself (if
    n > 1).
    """
    order = jax.random.permutation(key, num_agents)
    return jnp.zeros(num_agents, int).at[jnp.roll(order, -1)].set(order)


def pipeline_objectives(
    now: Float[Array, " n *b"],
    before: Float[Array, " n *b"],
    advantage: Float[Array, " n *b"],
    partner: Int[Array, " n"],
) -> Float[Array, " n *b"]:
    """(r_i Π_{-{i,j}} h - 1) h_j A^i with j = f⁻¹(i), whose means are the objectives of Eq. 11."""
    others = before.sum(0) - before
    return (jnp.exp(now + others) - jnp.exp(before[partner])) * advantage
