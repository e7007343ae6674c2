"""The independent and the dependent step (T3 to T6): lemma 2, theorem 2 and the condition."""

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pytest
from tabular.bounds import lemma_slack, lower_bound, mu_gain
from tabular.games import (
    Array,
    Mask,
    Sharing,
    Snapshot,
    objective,
    random_games,
    random_policies,
    snapshot,
)
from tabular.objectives import dependent_objectives, independent_objectives, random_split
from tabular.updates import dependent_step, independent_step
from theory_games import BY_TYPE, EXACT, SEPARATE, SHARED, SLACK, draw, draw_split, log_uniform


class Case(NamedTuple):
    """Which games the two steps are run on."""

    sharing: Sharing
    split: str
    penalty: float | None  # None: the true C
    actions: int = 2


class Run(NamedTuple):
    """Outcome of both steps, and which games have reached the fixed point."""

    snap: Snapshot
    split: Array
    half: Array
    new: Array
    settled: Mask
    half_gain: Array  # J(half) - J(pi_k)
    new_gain: Array  # J(new) - J(pi_k)


CASES = [
    *[
        Case(sharing, split, penalty)
        for sharing in (SEPARATE, SHARED, BY_TYPE)
        for split in ("average", "random")
        for penalty in (None, 0.3)
    ],
    Case(SEPARATE, "random", None, actions=3),
    Case(SEPARATE, "average", 0.05),
    Case(SHARED, "average", 0.05),
]


@cache
def run_both_steps(case: Case) -> Run:
    """Run the independent step and the exact dependent step on random games."""
    count = 40
    rng, game, policies, _ = draw(seed=8, count=count, actions=case.actions)
    policies = policies[:, list(case.sharing)]
    penalty = None if case.penalty is None else np.full(count, case.penalty)
    snap = snapshot(game, policies, penalty)
    split = draw_split(rng, case.split, snap.advantage, 3)
    half = independent_step(snap, split, case.sharing)
    new, regret = dependent_step(snap, split, half, case.sharing, rounds=30)
    gains = [objective(game, q) - snap.objective for q in (half, new)]
    return Run(snap, split, half, new, regret < 1e-10, *gains)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps_keep_the_sharing_and_improve_their_own_objectives(case: Case) -> None:
    """T6 and the premises: groups play one policy; each step gains where it maximises.

    The objectives of a group's members count together, as sharing couples them.
    """
    run = run_both_steps(case)
    leaders = [case.sharing.index(group) for group in case.sharing]
    for policies in (run.half, run.new):
        np.testing.assert_array_equal(policies, policies[:, leaders])
        np.testing.assert_allclose(policies.sum(-1), 1, atol=EXACT)
    independent = partial(independent_objectives, run.snap, run.split)
    first = independent(run.half) - independent(run.snap.policies)
    dependent = partial(dependent_objectives, run.snap, run.split, others=run.new)
    second = (dependent(run.new) - dependent(run.half))[run.settled]
    for group in set(case.sharing):
        members = [i for i, g in enumerate(case.sharing) if g == group]
        assert first[:, members].sum(-1).min() > 0
        assert second[:, members].sum(-1).min() >= SLACK
    # Not vacuous. With a small C the fixed point may lie at a kink, where rounds settle slowly.
    assert run.settled.mean() >= (0.9 if case.penalty is None else 0.3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_t3_lemma_2_at_the_fixed_point(case: Case) -> None:
    """T3, T6 (Lemma 2): C sum KL <= sum_i E[(r(new) - h_i r(new^-i) + h_i - 1) A^i]."""
    run = run_both_steps(case)
    slack = lemma_slack(run.snap, run.split, run.half, run.new)
    assert slack[run.settled].min() >= SLACK


@pytest.mark.parametrize("case", CASES, ids=str)
def test_t4_constraint_makes_the_bound_rise(case: Case) -> None:
    """T4, T6 (Theorem 2): with the constraint L(new) >= L(pi_k), whatever C > 0.

    With the true C, and only then, this carries over to the return J.
    """
    run = run_both_steps(case)
    held = run.settled & (mu_gain(run.snap, run.split, run.half, run.new) >= 0)
    assert held.sum() >= 10
    rise = lower_bound(run.snap, run.new) - run.snap.objective
    assert rise[held].min() >= SLACK
    if case.penalty is None:
        assert run.new_gain[held].min() >= SLACK


@pytest.mark.parametrize("case", CASES, ids=str)
def test_t5_condition_certifies_the_intermediate_policies(case: Case) -> None:
    """T5, T6: L(half) - L(pi_k) >= sum_i mu(half^-i) - sum_i mu(pi_k^-i).

    So the condition alone makes L rise at the intermediate policies, and J with the true C.
    """
    run = run_both_steps(case)
    rise = lower_bound(run.snap, run.half) - run.snap.objective
    condition = mu_gain(run.snap, run.split, run.half, run.half)
    assert (rise - condition).min() >= SLACK
    assert (condition >= 0).sum() >= 10
    assert rise[condition >= 0].min() >= SLACK
    if case.penalty is None:
        assert run.half_gain[condition >= 0].min() >= SLACK


def test_without_the_constraint_the_fixed_point_may_lower_bound_and_return() -> None:
    """T4, converse: random split, true C, fixed point reached, constraint violated: L, J fall.

    This is also flaw 2: the unconstrained argmax need not satisfy the constraint.
    """
    rng = np.random.default_rng(9)
    game = random_games(rng, 500, 3, 1, 2, log_uniform(rng, 0.005, 0.2, 500))
    snap = snapshot(game, random_policies(rng, (500, 3, 1, 2)))
    split = random_split(rng, snap.advantage, 3)
    half = independent_step(snap, split, SEPARATE)
    new, regret = dependent_step(snap, split, half, SEPARATE, rounds=20)
    settled = regret < 1e-10
    violated = settled & (mu_gain(snap, split, half, new) < 0)
    assert lemma_slack(snap, split, half, new)[settled].min() >= SLACK
    assert (lower_bound(snap, new) - snap.objective)[violated].min() < -1e-2
    fall = objective(game, new) - snap.objective
    assert fall[violated].min() < -1e-4
    assert fall[settled & ~violated].min() >= SLACK


def test_theorem_2_for_any_policies_that_meet_its_premises() -> None:
    """Flaw 2, corrected: premises instead of argmax, and none of the three can be left out.

    (0) sum of independent objectives: half >= pi_k; (a) sum of dependent objectives, given the
    others' final policies: new >= half; (b) the constraint. Then L(new) >= L(pi_k).
    """
    rng, game, policies, _ = draw(seed=10, count=20_000)
    snap = snapshot(game, policies, np.full(20_000, 0.05))
    split = random_split(rng, snap.advantage, 3)
    half, new = (random_policies(rng, policies.shape) for _ in range(2))
    independent = partial(independent_objectives, snap, split)
    dependent = partial(dependent_objectives, snap, split, others=new)
    premises = [
        (independent(half) - independent(policies)).sum(-1) >= 0,
        (dependent(new) - dependent(half)).sum(-1) >= 0,
        mu_gain(snap, split, half, new) >= 0,
    ]
    rise = lower_bound(snap, new) - snap.objective
    every = np.all(premises, axis=0)
    assert every.sum() > 1000
    assert rise[every].min() >= SLACK
    for missing in range(3):
        rest = np.all([p for i, p in enumerate(premises) if i != missing], axis=0)
        assert rise[rest & ~premises[missing]].min() < -0.1
