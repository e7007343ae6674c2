"""The lower bound of the return, its parts, and what the lemmas and the condition compare."""

import numpy as np

from tabular.games import Array, Snapshot, expect


def max_kl(old: Array, new: Array) -> Array:
    """Largest divergence over states, max_s sum_a old log(old/new); drops the axes s and a."""
    return (old * np.log(old / new)).sum(-1).max(-1)


def expected(snap: Snapshot, values: Array, policies: Array) -> Array:
    """E_{s ~ rho_k, a ~ policies}[values(s, a)]; states always follow pi_k."""
    return (snap.visitation * expect(values, policies)).sum(-1)


def lower_bound(snap: Snapshot, policies: Array) -> Array:
    """Shared lower bound, L = J + E_{rho_k, policies}[A] - C sum_i KL_i(pi_k^i, policies^i)."""
    divergence = max_kl(snap.policies, policies).sum(-1)
    return snap.objective + expected(snap, snap.advantage, policies) - snap.penalty * divergence


def replace(policies: Array, agent: int, other: Array) -> Array:
    """Let one agent play as it does in `other`, and the rest as in `policies`."""
    mixed = policies.copy()
    mixed[..., agent, :, :] = other[..., agent, :, :]
    return mixed


def pipeline_bounds(snap: Snapshot, policies: Array) -> Array:
    """Lower bound of each pipeline p, `(..., n)`: J + M^p(none, p) + M^-p(p, -p)  (Eq. 5).

    M^p  = E_{a^p new, a^-p old}[A] - C KL_p
    M^-p = E_{a new}[A] - E_{a^p new, a^-p old}[A] - C sum_{i != p} KL_i
    """
    cost = snap.penalty[..., None] * max_kl(snap.policies, policies)
    together = expected(snap, snap.advantage, policies)
    bounds = []
    for p in range(policies.shape[-3]):
        alone = expected(snap, snap.advantage, replace(snap.policies, p, policies))
        first = alone - cost[..., p]
        second = together - alone - np.delete(cost, p, axis=-1).sum(-1)
        bounds.append(snap.objective + first + second)
    return np.stack(bounds, axis=-1)


def mu_sum(snap: Snapshot, split: Array, half: Array, others: Array) -> Array:
    """sum_i mu(others^-i), with mu(others^-i) = E_{rho_k, a^i ~ half^i, a^-i ~ others^-i}[A^i]."""
    agents = half.shape[-3]
    parts = [expected(snap, split[..., i, :, :], replace(others, i, half)) for i in range(agents)]
    return np.sum(parts, axis=0)


def mu_gain(snap: Snapshot, split: Array, half: Array, others: Array) -> Array:
    """sum_i mu(others^-i) - sum_i mu(pi_k^-i).

    The condition asks for a gain >= 0 at others = half, the constraint (Eq. 11) at others = new.
    """
    return mu_sum(snap, split, half, others) - mu_sum(snap, split, half, snap.policies)


def lemma_slack(snap: Snapshot, split: Array, half: Array, new: Array) -> Array:
    """Right side minus left side of Lemma 2; the lemma says it is not negative.

    sum_i E_{pi_k}[(r(new) - r(half^i) r(new^-i) + r(half^i) - 1) A^i] - C sum_i KL_i(pi_k, new)
    """
    total = split.sum(-3)
    gain = expected(snap, total, new) - expected(snap, total, snap.policies)
    return (
        gain - mu_gain(snap, split, half, new) - snap.penalty * max_kl(snap.policies, new).sum(-1)
    )
