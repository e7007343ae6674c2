"""Splits of the advantage, and the non-overlapping selection of pipelines."""

from itertools import permutations

import numpy as np
import pytest
from tabular.bounds import expected, lower_bound, max_kl, mu_gain, replace
from tabular.games import Array, random_games, random_policies, snapshot
from tabular.objectives import (
    average_split,
    dependent_objectives,
    non_overlapping_selection,
    pipeline_objectives,
    random_split,
)
from tabular.updates import independent_step
from theory_games import EXACT, SEPARATE, SLACK, draw, draw_split, log_uniform


def test_selection_never_pairs_an_agent_with_itself() -> None:
    """Non-overlapping selection: a permutation without fixed points; every cycle turns up."""
    rng = np.random.default_rng(3)
    drawn = [tuple(non_overlapping_selection(rng, 4)) for _ in range(400)]
    assert all(sorted(f) == [0, 1, 2, 3] for f in drawn)
    assert all(f[i] != i for f in drawn for i in range(4))
    assert len(set(drawn)) == 6  # (4 - 1)! cycles through four agents


@pytest.mark.parametrize("kind", ["average", "random"])
def test_splits_add_up(kind: str) -> None:
    """Both splits satisfy sum_i A^i = A; only the random one gives the agents different parts."""
    rng, _, _, snap = draw(seed=4, count=5)
    split = draw_split(rng, kind, snap.advantage, 3)
    np.testing.assert_allclose(split.sum(-3), snap.advantage, atol=EXACT)
    assert (np.ptp(split, axis=-3).max() > 0.1) == (kind == "random")


def test_average_split_is_a_potential_game() -> None:
    """One agent's move changes its dependent objective and E_q[A]/n - C sum KL by the same."""
    rng, _, policies, snap = draw(seed=11, count=50)
    split = average_split(snap.advantage, 3)
    before, other = (random_policies(rng, policies.shape) for _ in range(2))

    def potential(q: Array) -> Array:
        divergence = max_kl(policies, q).sum(-1)
        return expected(snap, snap.advantage, q) / 3 - snap.penalty * divergence

    for i in range(3):
        after = replace(before, i, other)
        own = dependent_objectives(snap, split, after, before)[:, i]
        own = own - dependent_objectives(snap, split, before, before)[:, i]
        np.testing.assert_allclose(potential(after) - potential(before), own, atol=EXACT)


def test_average_split_weighs_the_penalty_n_times() -> None:
    """Flaw 6: argmax of (A/n, C) = argmax of (A, nC), so steps are shorter than (A, C) allows.

    Someone who multiplies the reward by n must multiply C, too: with (A, C) the condition may
    hold while L falls at the intermediate policies, with (A, nC) it cannot.
    """
    rng = np.random.default_rng(12)
    game = random_games(rng, 1000, 3, 1, 2, log_uniform(rng, 0.005, 0.2, 1000))
    snap = snapshot(game, random_policies(rng, (1000, 3, 1, 2)))
    split = average_split(snap.advantage, 3)
    averaged = independent_step(snap, split, SEPARATE)
    scaled = independent_step(snap._replace(penalty=3 * snap.penalty), 3 * split, SEPARATE)
    unscaled = independent_step(snap, 3 * split, SEPARATE)
    np.testing.assert_allclose(scaled, averaged, atol=1e-9)
    cautious, bold = (max_kl(snap.policies, q) for q in (averaged, unscaled))
    assert (bold > cautious).all()
    lowest = [
        (lower_bound(snap, q) - snap.objective)[mu_gain(snap, split, q, q) >= 0].min()
        for q in (scaled, unscaled)
    ]
    assert lowest[0] >= SLACK
    assert lowest[1] < -0.01


@pytest.mark.parametrize("clip", [np.inf, 0.2])
@pytest.mark.parametrize("kind", ["average", "random"])
def test_pairing_changes_reports_but_no_gradient(kind: str, clip: float) -> None:
    """The choice of f shifts each pipeline's objective by a constant, -E[h_i A^j].

    Hence a change of any probability has the same effect for every f, clipped or not. Per
    pipeline the reported values differ; their sum differs with a random split only, since
    with the average split the constants are merely handed round.
    """
    rng, _, policies, snap = draw(seed=19, count=4)
    split = draw_split(rng, kind, snap.advantage, 3)
    others, here = (random_policies(rng, policies.shape) for _ in range(2))
    pairings = [np.array(f) for f in permutations(range(3)) if all(f[i] != i for i in range(3))]
    assert len(pairings) == 2

    def reported(q: Array) -> Array:
        return np.stack([pipeline_objectives(snap, split, q, others, f, clip) for f in pairings])

    for state, action in np.ndindex(2, 2):
        moved = here.copy()
        moved[:, :, state, action] += 1e-3  # a partial derivative: need not stay a distribution
        slope = (reported(moved) - reported(here)) / 1e-3
        assert np.abs(slope).max() > 1e-3
        assert np.ptp(slope, axis=0).max() < 1e-10  # 1e-13 in the difference
    values = reported(here)
    assert np.ptp(values, axis=0).min() > 1e-4
    assert (np.ptp(values.sum(-1), axis=0).max() < EXACT) == (kind == "average")


def test_reported_objective_is_the_dependent_objective_up_to_a_constant() -> None:
    """Eq. 11 literally, with ratios, = E_{q^j, others^-j}[A^j] - E_{others^i, pi_k^-i}[A^j]."""
    rng, _, policies, snap = draw(seed=20, count=20)
    split = random_split(rng, snap.advantage, 3)
    others, q = (random_policies(rng, policies.shape) for _ in range(2))
    pairing = non_overlapping_selection(rng, 3)
    found = pipeline_objectives(snap, split, q, others, pairing)
    plain = dependent_objectives(snap._replace(penalty=np.zeros(20)), split, q, others)
    for i, j in enumerate(pairing):
        constant = expected(snap, split[:, j], replace(policies, i, others))
        np.testing.assert_allclose(found[:, j], plain[:, j] - constant, atol=EXACT)
