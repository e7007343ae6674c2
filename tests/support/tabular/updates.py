"""Update schemes: the two steps of FP3O, sequential updates, one practical iteration."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from tabular.bounds import lemma_slack, mu_gain
from tabular.games import Array, Mask, Sharing, Snapshot, TabularGame, expect, snapshot
from tabular.maximiser import penalised_argmax
from tabular.objectives import dependent_objectives

FailedCondition = Literal["keep", "revert", "certify"]
"""What an iteration returns where the condition fails."""


class Iteration(NamedTuple):
    """One policy iteration: its policies, and what certifies them."""

    half: Array
    new: Array
    final: Array  # what the iteration returns
    condition: Mask
    constraint: Mask


def nothing_shared(agents: int) -> Sharing:
    """Every agent has its own policy."""
    return tuple(range(agents))


def best_response(snap: Snapshot, split: Array, others: Array, members: Sequence[int]) -> Array:
    """Maximise the members' summed dependent objectives over the one policy they play.

    sum_{i in members} (E_{a^i ~ q, a^-i ~ others^-i}[A^i] - C KL(pi_k^i, q)): the weights of the
    members add up, and so do their penalties. Returns q, `(..., s, a)`.
    """
    weights = [expect(split[..., i, :, :], others, keep=i) for i in members]
    weight = snap.visitation[..., None] * np.sum(weights, axis=0)
    old = snap.policies[..., members[0], :, :]
    return penalised_argmax(old, weight, len(members) * snap.penalty)


def simultaneous_step(snap: Snapshot, split: Array, others: Array, sharing: Sharing) -> Array:
    """Let every group respond to the same fixed `others`."""
    answer = others.copy()
    for members in _groups(sharing):
        answer[..., members, :, :] = _spread(best_response(snap, split, others, members))
    return answer


def independent_step(snap: Snapshot, split: Array, sharing: Sharing) -> Array:
    """Independent step (Eq. 10): respond to pi_k; gives the intermediate policies."""
    return simultaneous_step(snap, split, snap.policies, sharing)


def frozen_step(snap: Snapshot, split: Array, half: Array, sharing: Sharing) -> Array:
    """Dependent step as it is done in practice: the others stay at their intermediate policies."""
    return simultaneous_step(snap, split, half, sharing)


def dependent_step(
    snap: Snapshot, split: Array, half: Array, sharing: Sharing, rounds: int = 60
) -> tuple[Array, Array]:
    """Dependent step (Eq. 11) taken literally: respond to the others' *final* policies.

    This is a fixed point, new^i = argmax given new^-i, found by Gauss-Seidel rounds. A game whose
    policies do not settle takes shorter steps: responses may cycle, and they jump where the weight
    of a state crosses zero. Returns the policies and the regret (what the groups could still gain
    by responding), per game: only where it is practically zero is the fixed point reached.
    """
    new, step = half.copy(), np.ones(snap.objective.shape)
    regret = np.full(snap.objective.shape, np.inf)
    for _ in range(rounds):
        previous, regret = regret, np.zeros_like(step)
        for members in _groups(sharing):
            best = new.copy()
            best[..., members, :, :] = _spread(best_response(snap, split, new, members))
            gain = [dependent_objectives(snap, split, q, new).sum(-1) for q in (best, new)]
            regret = regret + np.maximum(gain[0] - gain[1], 0)
            share = step[..., None, None, None]
            new = share * best + (1 - share) * new
        if regret.max() < 1e-12:
            break
        step = np.where(regret > previous, 0.7 * step, step)
    return new, regret


def sequential_step(snap: Snapshot, order: Sequence[int], sharing: Sharing) -> Array:
    """Update one agent after the other (HAPPO); a turn moves the whole group of its agent.

    Turn of agent i: max_q E_{a^i ~ q, a^j ~ result of j's turn if it came before, else pi_k}[A]
    - C KL(pi_k^i, q). The policy that remains for a group is that of its last turn.
    """
    whole = np.repeat(snap.advantage[..., None, :, :], len(sharing), axis=-3)
    after_turn, final = snap.policies.copy(), snap.policies.copy()
    for agent in order:
        response = best_response(snap, whole, after_turn, [agent])
        after_turn[..., agent, :, :] = response
        members = [i for i, group in enumerate(sharing) if group == sharing[agent]]
        final[..., members, :, :] = _spread(response)
    return final


def policy_iteration(
    game: TabularGame,
    policies: Array,
    split: Callable[[Array, int], Array],
    on_failed_condition: FailedCondition,
    sharing: Sharing | None = None,
    penalty: Array | None = None,
) -> Iteration:
    """One practical iteration: independent step, condition, frozen dependent step.

    "keep" is the published loop: without the condition it keeps the intermediate policies, with
    it the result of the dependent step. "revert" returns to pi_k without the condition, as the
    library does. "certify" returns the last policies with a certificate: new if Lemma 2 and the
    constraint hold for it (Theorem 2), else half if the condition holds, else pi_k.
    """
    agents = policies.shape[-3]
    sharing = nothing_shared(agents) if sharing is None else sharing
    snap = snapshot(game, policies, penalty)
    parts = split(snap.advantage, agents)
    half = independent_step(snap, parts, sharing)
    new = frozen_step(snap, parts, half, sharing)
    condition = mu_gain(snap, parts, half, half) >= 0
    constraint = mu_gain(snap, parts, half, new) >= 0
    if on_failed_condition == "keep":
        final = _choose(condition, new, half)
    elif on_failed_condition == "revert":
        final = _choose(condition, new, policies)
    else:
        certified = constraint & (lemma_slack(snap, parts, half, new) >= 0)
        final = _choose(certified, new, _choose(condition, half, policies))
    return Iteration(half, new, final, condition, constraint)


def _groups(sharing: Sharing) -> list[list[int]]:
    return [[i for i, g in enumerate(sharing) if g == group] for group in sorted(set(sharing))]


def _spread(policy: Array) -> Array:
    """Add an axis of agents, so that all members of a group receive the policy."""
    return policy[..., None, :, :]


def _choose(mask: Mask, if_true: Array, if_false: Array) -> Array:
    return np.where(mask[..., None, None, None], if_true, if_false)
