"""The lower bound of the return, one for all pipelines, and the identities behind it."""

import numpy as np
from tabular.bounds import lower_bound, max_kl, pipeline_bounds
from tabular.games import expect, joint_policy, objective, random_policies
from theory_games import EXACT, SLACK, draw


def test_t1_return_exceeds_lower_bound() -> None:
    """T1 (Eq. 5): J(q) >= L(q) for every q; without the penalty the bound is false."""
    violations = 0
    for seed, distance in enumerate([1.0, 0.3, 0.03]):
        rng, game, policies, snap = draw(seed, count=400)
        new = (1 - distance) * policies + distance * random_policies(rng, policies.shape)
        value = objective(game, new)
        assert (value - lower_bound(snap, new)).min() >= SLACK
        free = lower_bound(snap._replace(penalty=np.zeros(400)), new)
        violations += int((value < free - 1e-6).sum())
    assert violations > 100


def test_t2_all_pipelines_share_one_lower_bound() -> None:
    """T2 (Lemma 1): the bounds of the n pipelines are equal, and equal to L."""
    rng, _, policies, snap = draw(seed=5, count=200, actions=3)
    new = random_policies(rng, policies.shape)
    bounds = pipeline_bounds(snap, new)
    assert np.ptp(bounds, axis=-1).max() < EXACT
    np.testing.assert_allclose(bounds[:, 0], lower_bound(snap, new), atol=EXACT)
    # At pi_k itself the bound is tight.
    np.testing.assert_allclose(lower_bound(snap, policies), snap.objective, atol=EXACT)


def test_advantage_decomposes_with_a_plus() -> None:
    """Flaw 1: A(s, a) = A^p(s, a^p) + A^-p(s, a^p, a^-p); with a minus it is not A."""
    _, _, policies, snap = draw(seed=6, count=50)
    by_agent = snap.advantage.reshape(50, 2, 2, 2, 2)
    for p in range(3):
        own = expect(snap.advantage, policies, keep=p)
        shape = [50, 2, 1, 1, 1]
        shape[2 + p] = 2
        own = own.reshape(shape)
        rest = by_agent - own  # Q - Q^p: what the others add once a^p is known
        others_average = expect(rest.reshape(50, 2, 8), policies, keep=p)
        np.testing.assert_allclose(others_average, 0, atol=EXACT)
        np.testing.assert_allclose(own + rest, by_agent, atol=EXACT)
        assert np.abs(own - rest - by_agent).max() > 0.1


def test_joint_divergence_is_at_most_the_sum() -> None:
    """Item 8: max_s KL(joint) <= sum_i max_s KL_i; per state the two are equal."""
    rng, _, policies, _ = draw(seed=7, count=200)
    new = random_policies(rng, policies.shape)
    joint_old, joint_new = joint_policy(policies), joint_policy(new)
    by_state = (joint_old * np.log(joint_old / joint_new)).sum(-1)
    parts = (policies * np.log(policies / new)).sum(-1)
    np.testing.assert_allclose(by_state, parts.sum(-2), atol=EXACT)
    slack = max_kl(policies, new).sum(-1) - max_kl(joint_old, joint_new)
    assert slack.min() >= -EXACT
    assert slack.max() > 0.1  # agents may peak in different states: strict in general
