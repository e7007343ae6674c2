"""Random games for the tests of the theory of FP3O.

Every quantity is computed in float64 without sampling, so an identity holds to 1e-12 and an
inequality to 1e-9. Besides what holds, the tests pin down what does not: wrong signs, missing
premises, and the steps for which no guarantee exists.
"""

import numpy as np
from tabular.games import Array, Snapshot, TabularGame, random_games, random_policies, snapshot
from tabular.objectives import average_split, random_split

EXACT = 1e-12
SLACK = -1e-9
SEPARATE, SHARED, BY_TYPE = (0, 1, 2), (0, 0, 0), (0, 0, 1)


def log_uniform(rng: np.random.Generator, low: float, high: float, count: int) -> Array:
    """Draw discounts whose logarithm is uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


def draw_split(rng: np.random.Generator, kind: str, advantage: Array, agents: int) -> Array:
    """Split the advantage by the named rule."""
    if kind == "average":
        return average_split(advantage, agents)
    return random_split(rng, advantage, agents)


def draw(
    seed: int, count: int, actions: int = 2
) -> tuple[np.random.Generator, TabularGame, Array, Snapshot]:
    """Draw games of three agents and two states, policies pi_k, the snapshot with the true C."""
    rng = np.random.default_rng(seed)
    game = random_games(rng, count, 3, 2, actions, rng.uniform(0.05, 0.4, count))
    policies = random_policies(rng, (count, 3, 2, actions))
    return rng, game, policies, snapshot(game, policies)
