"""The two steps with partly shared parameters: ascent instead of an exact maximum (T6)."""

from functools import partial

import numpy as np
import pytest
from scipy import optimize
from tabular.bounds import lemma_slack, lower_bound, mu_gain
from tabular.games import (
    Array,
    Snapshot,
    TabularGame,
    random_games,
    snapshot,
)
from tabular.objectives import dependent_objectives, independent_objectives
from theory_games import SLACK, draw_split


def layered_policies(theta: Array) -> Array:
    """Two agents, two states: shared features tanh(theta_s), own softmax heads, `(2, 2, 2)`."""
    features, heads = np.tanh(theta[:4].reshape(2, 2)), theta[4:].reshape(2, 2, 2)
    logits = np.einsum("sf,nfa->nsa", features, heads)
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def climb(theta: Array, snap: Snapshot, split: Array, others: Array) -> Array:
    """Raise the agents' summed objectives over the common parameters, never going down."""

    def loss(candidate: Array) -> float:
        policies = layered_policies(candidate)
        return -float(dependent_objectives(snap, split, policies, others).sum())

    found = optimize.minimize(loss, theta, method="BFGS", options={"maxiter": 25})
    return found.x if found.fun <= loss(theta) else theta


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["average", "random"])
def test_partial_sharing_inherits_the_inequalities(kind: str, seed: int) -> None:
    """T6, partial sharing: numerical ascent instead of argmax is enough for every inequality.

    sum of objectives at half >= at pi_k gives T5; sum at new >= at half, given the others' final
    policies, gives Lemma 2; with the constraint, L(new) >= L(pi_k).
    """
    rng = np.random.default_rng(seed)
    game = random_games(rng, 1, 2, 2, 2, rng.uniform(0.05, 0.2, 1))
    game = TabularGame(*(field[0] for field in game))
    start = rng.normal(size=12)
    snap = snapshot(game, layered_policies(start))
    split = draw_split(rng, kind, snap.advantage, 2)
    middle = climb(start, snap, split, snap.policies)
    end = middle
    for _ in range(5):
        end = climb(end, snap, split, layered_policies(end))
    half, new = layered_policies(middle), layered_policies(end)
    first = independent_objectives(snap, split, half).sum()
    assert first > independent_objectives(snap, split, snap.policies).sum() + 1e-4
    dependent = partial(dependent_objectives, snap, split, others=new)
    assert dependent(new).sum() >= dependent(half).sum() + SLACK
    rise = [lower_bound(snap, q) - snap.objective for q in (half, new)]
    assert rise[0] >= mu_gain(snap, split, half, half) + SLACK
    assert lemma_slack(snap, split, half, new) >= SLACK
    assert rise[1] >= mu_gain(snap, split, half, new) + SLACK
