"""The practical iteration has no guarantee: frozen others, policies kept without the condition."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from tabular.bounds import lemma_slack, lower_bound
from tabular.games import (
    Array,
    Snapshot,
    TabularGame,
    advantages,
    binary_policies,
    objective,
    one_state_games,
    snapshot,
)
from tabular.objectives import average_split
from tabular.updates import (
    FailedCondition,
    Iteration,
    dependent_step,
    frozen_step,
    independent_step,
    policy_iteration,
)
from theory_games import SEPARATE, SLACK, draw, draw_split, log_uniform


class MatrixGame(NamedTuple):
    """One state, two agents, two actions: rewards of 00, 01, 10, 11 and chances of action 1."""

    reward: tuple[float, ...]
    chance: tuple[float, float]
    discount: float


FROZEN_FAILS = MatrixGame((-0.132, 0.640, 0.105, -2.143), (0.896, 0.602), 0.029175)
KEEPING_FAILS = MatrixGame((-1.600, 0.553, 0.710, -3.503), (0.168, 0.185), 0.00156)


def miscoordination(discount: float) -> MatrixGame:
    """Each agent alone should switch to action 1; both at once is a disaster."""
    return MatrixGame((0.0, 1.0, 1.0, -10.0), (0.02, 0.02), discount)


class Result(NamedTuple):
    """An iteration on a matrix game, with the changes of L and J against pi_k."""

    snap: Snapshot
    split: Array
    step: Iteration
    bound: dict[str, float]
    gain: dict[str, float]


def run_iteration(matrix: MatrixGame, on_failed_condition: FailedCondition = "keep") -> Result:
    """Run one iteration with the true C and the average split."""
    game = one_state_games(np.array(matrix.reward), np.array(matrix.discount))
    policies = binary_policies(np.array(matrix.chance))
    snap = snapshot(game, policies)
    split = average_split(snap.advantage, 2)
    step = policy_iteration(game, policies, average_split, on_failed_condition)
    exact, regret = dependent_step(snap, split, step.half, (0, 1))
    assert regret < 1e-10
    named = {"half": step.half, "frozen": step.new, "exact": exact, "final": step.final}
    bound = {k: float(lower_bound(snap, q) - snap.objective) for k, q in named.items()}
    gain = {k: float(objective(game, q) - snap.objective) for k, q in named.items()}
    return Result(snap, split, step, bound, gain)


def test_frozen_dependent_step_may_lower_the_return() -> None:
    """Flaw 4: true C, condition and constraint true, yet L falls by .037 and J by .035.

    The intermediate policies would have gained 1.05, and the exact fixed point gains as well.
    """
    result = run_iteration(FROZEN_FAILS)
    assert result.step.condition
    assert result.step.constraint
    assert result.gain["final"] == pytest.approx(-0.035, abs=5e-4)
    assert result.bound["final"] == pytest.approx(-0.037, abs=5e-4)
    assert result.gain["half"] == pytest.approx(1.05, abs=5e-3)
    assert result.bound["exact"] > 0.8
    # What breaks is Lemma 2, and that is what "certify" checks; "revert" does not.
    slack = lemma_slack(result.snap, result.split, result.step.half, result.step.new)
    assert slack < -0.01
    assert run_iteration(FROZEN_FAILS, "certify").gain["final"] == result.gain["half"]
    assert run_iteration(FROZEN_FAILS, "revert").gain["final"] == result.gain["frozen"]


def test_frozen_dependent_step_breaks_lemma_2() -> None:
    """Flaw 4: with frozen others and a small C, Lemma 2 fails by more than .18."""
    _, game, policies, _ = draw(seed=15, count=200)
    snap = snapshot(game, policies, np.full(200, 0.05))
    split = average_split(snap.advantage, 3)
    half = independent_step(snap, split, SEPARATE)
    frozen = frozen_step(snap, split, half, SEPARATE)
    assert lemma_slack(snap, split, half, frozen).min() < -0.18


def test_keeping_policies_without_the_condition_may_lower_the_return() -> None:
    """Flaw 5: true C, condition false, and the kept intermediate policies lose 2.31."""
    result = run_iteration(KEEPING_FAILS)
    assert not result.step.condition
    assert result.gain["final"] == pytest.approx(-2.31, abs=5e-3)
    assert result.gain["final"] == result.gain["half"]
    assert run_iteration(KEEPING_FAILS, "revert").gain["final"] == 0.0


def test_miscoordination_with_a_weak_penalty() -> None:
    """Discount .01, true C: the condition is false, and L falls by .019 at half."""
    result = run_iteration(miscoordination(0.01))
    assert not result.step.condition
    assert result.bound["half"] == pytest.approx(-0.019, abs=5e-4)
    assert run_iteration(miscoordination(0.01), "revert").gain["final"] == 0.0


def test_miscoordination_with_a_strong_penalty() -> None:
    """Discount .05, true C: the condition is true, and every policy is better than pi_k."""
    result = run_iteration(miscoordination(0.05))
    assert result.step.condition
    assert result.step.constraint
    assert min(result.bound.values()) > 0.004
    assert min(result.gain.values()) > 0.006
    assert run_iteration(miscoordination(0.05), "revert").gain["final"] == result.gain["frozen"]


def two_by_two_games(seed: int, count: int) -> tuple[np.random.Generator, TabularGame, Array]:
    """Draw one-state games of two agents with two actions, gamma from .001 to .2."""
    rng = np.random.default_rng(seed)
    discount = log_uniform(rng, 1e-3, 0.2, count)
    game = one_state_games(2 * rng.normal(size=(count, 4)), discount)
    return rng, game, binary_policies(rng.uniform(0.02, 0.98, (count, 2)))


@pytest.mark.parametrize("kind", ["average", "random"])
def test_reverting_is_safe_and_keeping_is_not(kind: str) -> None:
    """Flaws 4, 5 and T5 on 3000 2x2 games, true C: where the condition fails, "keep" lowers J.

    "revert" never does there; the independent step alone with "revert" never does anywhere (T5),
    nor does "certify" with both steps.
    """
    rng, game, policies = two_by_two_games(seed=16, count=3000)
    before = objective(game, policies)
    fixed = draw_split(rng, kind, advantages(game, policies), 2)
    modes: tuple[FailedCondition, ...] = ("keep", "revert", "certify")
    keep, revert, certify = (
        policy_iteration(game, policies, lambda *_: fixed, mode) for mode in modes
    )
    kept, reverted, certified = (
        objective(game, step.final) - before for step in (keep, revert, certify)
    )
    assert (kept[~keep.condition] < -1e-3).sum() >= 10
    assert kept.min() < -1.0
    assert reverted[~keep.condition].min() >= SLACK
    assert np.array_equal(reverted[keep.condition], kept[keep.condition])
    half = objective(game, keep.half) - before
    assert half[keep.condition].min() >= SLACK
    assert certified.min() >= SLACK
    assert (certified > 1e-6).mean() > 0.8  # safe, but not by standing still


def test_keeping_fails_even_when_condition_and_constraint_hold() -> None:
    """Flaw 4 on 5000 2x2 games, true C: the frozen step lowers J in a few certified games."""
    _, game, policies = two_by_two_games(seed=17, count=5000)
    step = policy_iteration(game, policies, average_split, "keep")
    change = objective(game, step.final) - objective(game, policies)
    fell = step.condition & step.constraint & (change < -1e-6)
    assert 1 <= fell.sum() <= 50


def test_certified_iterations_are_monotone() -> None:
    """T4 and T5 repeated: J never falls along six "certify" iterations with the true C."""
    _, game, policies = two_by_two_games(seed=18, count=300)
    returns = [objective(game, policies)]
    for _ in range(6):
        step = policy_iteration(game, policies, average_split, "certify")
        policies = step.final
        returns.append(objective(game, policies))
    assert min((after - before).min() for before, after in pairwise(returns)) >= SLACK
    assert (returns[-1] > returns[1] + 1e-6).mean() > 0.5
