"""Splits of the advantage, the pairing of pipelines, and the objectives of the two steps."""

import numpy as np
from numpy.typing import NDArray

from tabular.bounds import expected, max_kl, replace
from tabular.games import Array, Snapshot, joint_policy


def average_split(advantage: Array, agents: int) -> Array:
    """Give every agent the same part, A^i = A / n."""
    return np.repeat(advantage[..., None, :, :] / agents, agents, axis=-3)


def random_split(rng: np.random.Generator, advantage: Array, agents: int) -> Array:
    """Cut A(s, a) at random, A^i = w_i A with w ~ Dirichlet(1) drawn for every (s, a)."""
    weight = rng.dirichlet(np.ones(agents), size=advantage.shape)
    return np.moveaxis(weight * advantage[..., None], -1, -3)


def non_overlapping_selection(rng: np.random.Generator, agents: int) -> NDArray[np.int_]:
    """Pair each pipeline's first agent i with another one, f(i): a random cycle through all.

    out[i] = f(i), where i_1..i_n is a random permutation and f(i_p) = i_{p+1}.
    """
    order = rng.permutation(agents)
    pairing = np.empty(agents, dtype=int)
    pairing[order] = np.roll(order, -1)
    return pairing


def independent_objectives(snap: Snapshot, split: Array, policies: Array) -> Array:
    """E_{pi_k}[r(policies^i) A^i] - C KL_i for every agent, `(..., n)`  (Eq. 10)."""
    return dependent_objectives(snap, split, policies, others=snap.policies)


def dependent_objectives(snap: Snapshot, split: Array, policies: Array, others: Array) -> Array:
    """E_{pi_k}[r(policies^i) r(others^-i) A^i] - C KL_i for every agent, `(..., n)`.

    This is Eq. 11 without its constant term -E_{pi_k}[r(others^j) A^i].
    """
    cost = snap.penalty[..., None] * max_kl(snap.policies, policies)
    gains = [
        expected(snap, split[..., i, :, :], replace(others, i, policies))
        for i in range(policies.shape[-3])
    ]
    return np.stack(gains, axis=-1) - cost


def pipeline_objectives(
    snap: Snapshot,
    split: Array,
    policies: Array,
    others: Array,
    pairing: NDArray[np.int_],
    clip: float = np.inf,
) -> Array:
    """Surrogate of each pipeline as it is reported, `(..., n)`; entry j is agent j's pipeline.

    E_{pi_k}[min((r_j R - 1) h_i A^j, (clip(r_j) R - 1) h_i A^j)] with f(i) = j, h = others/pi_k,
    R the product of h over all agents but i and j. No penalty: the clip takes its place.
    """
    agents = policies.shape[-3]
    pi_k = joint_policy(snap.policies)
    ratio = _agent_ratios(policies, snap.policies)
    fixed = _agent_ratios(others, snap.policies)
    out = []
    for j in range(agents):
        i = int(np.flatnonzero(pairing == j)[0])
        rest = np.prod([fixed[h] for h in range(agents) if h not in (i, j)], axis=0)
        clipped = np.clip(ratio[j], 1 - clip, 1 + clip)
        part = split[..., j, :, :]
        plain, bounded = ((r * rest - 1) * fixed[i] * part for r in (ratio[j], clipped))
        mean = (pi_k * np.minimum(plain, bounded)).sum(-1)
        out.append((snap.visitation * mean).sum(-1))
    return np.stack(out, axis=-1)


def _agent_ratios(policies: Array, old: Array) -> list[Array]:
    """Ratio of every single agent on the joint actions, a list of `(..., s, m)`."""
    joint = joint_policy(old)
    return [joint_policy(replace(old, i, policies)) / joint for i in range(old.shape[-3])]
