"""An algorithm of one's own: a row of the table with a schedule and a surrogate of its own.

    fp3o train mpe/simple_spread --algorithm own_algorithm:gentle

CoPPO weighs an agent's gain by the product of all others' ratios, which grows wild in large teams.
Here it is their geometric mean. And instead of PPO's clip, a parabola pulls ratios back.
"""

import jax.numpy as jnp
import numpy as np

import fp3o


@fp3o.register_schedule
def mildly_coupled(key, score, epochs, row):
    """One stage of the whole team: W_i = (Π_j r_j)^(1 / (n - 1)) over the others j."""
    n = score.size
    coupling = (1.0 - np.eye(n)) / max(n - 1, 1)
    return fp3o.whole_team_stages(coupling[None], [epochs])


@fp3o.register_surrogate
def pulled_back(ratio, others, advantage, clip, inner):
    """W (r A - |A| (r - 1)² / 2ε), which is highest at r = 1 ± ε, where PPO's clip begins."""
    return others * (ratio * advantage - jnp.abs(advantage) * (ratio - 1) ** 2 / (2 * clip))


fp3o.register_algorithm(
    "gentle", fp3o.Algorithm("mildly_coupled", "pulled_back", refresh_ratios=True), __name__
)
