"""A custom algorithm: a row of the table with its own schedule and surrogate.

    fp3o train mpe/simple_spread --algorithm custom_algorithm:gentle

CoPPO weights an agent's objective by the product of all other agents' ratios, whose variance grows
with the team. Here the weight is their geometric mean, and a parabola replaces PPO's clipping.
"""

import jax.numpy as jnp
import numpy as np

import fp3o


@fp3o.register_schedule
def mildly_coupled(key, score, epochs, row):
    """One stage for the whole team: W_i = (Π_j r_j)^(1 / (n - 1)) over the other agents j."""
    n = score.size
    coupling = (1.0 - np.eye(n)) / max(n - 1, 1)
    return fp3o.whole_team_stages(coupling[None], [epochs])


@fp3o.register_surrogate
def quadratic_penalty(ratio, others, advantage, clip, inner):
    """W (r A - |A| (r - 1)² / 2ε), which is maximal at r = 1 ± ε, where PPO starts to clip."""
    return others * (ratio * advantage - jnp.abs(advantage) * (ratio - 1) ** 2 / (2 * clip))


fp3o.register_algorithm(
    "gentle", fp3o.Algorithm("mildly_coupled", "quadratic_penalty", refresh_ratios=True), __name__
)
