"""The theory of FP3O, checked exactly on small tabular games.

Every quantity is computed in float64 without sampling, so an identity holds to 1e-12 and an
inequality to 1e-9. Besides what holds, the tests pin down what does not: wrong signs, missing
premises, and the steps for which no guarantee exists.
"""

from functools import cache, partial
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np
import pytest
import tabular.objectives as tab
from scipy import optimize
from tabular.objectives import Array, Mask, Sharing, Snapshot

EXACT = 1e-12
SLACK = -1e-9
SEPARATE, SHARED, BY_TYPE = (0, 1, 2), (0, 0, 0), (0, 0, 1)


def log_uniform(rng: np.random.Generator, low: float, high: float, count: int) -> Array:
    """Draw discounts whose logarithm is uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


def draw_split(rng: np.random.Generator, kind: str, advantage: Array, agents: int) -> Array:
    """Split the advantage by the named rule."""
    if kind == "average":
        return tab.average_split(advantage, agents)
    return tab.random_split(rng, advantage, agents)


def draw(
    seed: int, count: int, actions: int = 2
) -> tuple[np.random.Generator, tab.Game, Array, Snapshot]:
    """Draw games of three agents and two states, policies pi_k, the snapshot with the true C."""
    rng = np.random.default_rng(seed)
    game = tab.random_games(rng, count, 3, 2, actions, rng.uniform(0.05, 0.4, count))
    policies = tab.random_policies(rng, (count, 3, 2, actions))
    return rng, game, policies, tab.snapshot(game, policies)


# ---------------------------------------------------------------- the toolbox itself


def test_evaluation_obeys_the_performance_difference_identity() -> None:
    """V, rho and A are exact: J(q) - J(pi) = E_{s ~ rho_q, a ~ q}[A_pi(s, a)] for any q."""
    rng, game, policies, snap = draw(seed=0, count=50, actions=3)
    other = tab.random_policies(rng, policies.shape)
    visited = tab.visitation(game, other)
    gain = (visited * tab.expect(snap.advantage, other)).sum(-1)
    np.testing.assert_allclose(tab.objective(game, other) - snap.objective, gain, atol=EXACT)
    np.testing.assert_allclose(visited.sum(-1), 1 / (1 - game.discount), atol=EXACT)
    # On its own policy the advantage averages to zero, and each agent's marginal does, too.
    np.testing.assert_allclose(tab.expect(snap.advantage, policies), 0, atol=EXACT)


def test_expect_agrees_with_a_loop_over_joint_actions() -> None:
    """E over all agents but one, against the definition: sum over the others' actions."""
    rng = np.random.default_rng(1)
    policies, values = tab.random_policies(rng, (3, 1, 2)), rng.normal(size=(1, 8))
    wanted = np.zeros((3, 2))
    for index in range(8):
        actions = [(index >> 2) & 1, (index >> 1) & 1, index & 1]
        chances = [policies[i, 0, actions[i]] for i in range(3)]
        for keep in range(3):
            others = np.prod([c for i, c in enumerate(chances) if i != keep])
            wanted[keep, actions[keep]] += others * values[0, index]
    found = [tab.expect(values, policies, keep)[0] for keep in range(3)]
    np.testing.assert_allclose(found, wanted, atol=EXACT)


def penalised_value(policy: Array, old: Array, weight: Array, penalty: float) -> Array:
    """What `penalised_argmax` maximises."""
    return (policy * weight).sum((-1, -2)) - penalty * tab.max_kl(old, policy)


@pytest.mark.parametrize("penalty", [0.05, 0.5, 3.0])
def test_maximiser_beats_a_grid(penalty: float) -> None:
    """The exact maximiser is at least as good as 10^6 grid points, and the grid comes close."""
    rng = np.random.default_rng(2)
    old, weight = tab.random_policies(rng, (2, 2)), rng.normal(size=(2, 2))
    best = tab.penalised_argmax(old, weight, np.array(penalty))
    axis = np.linspace(0.0005, 0.9995, 1000)
    grid = tab.binary_policies(np.stack(np.meshgrid(axis, axis), axis=-1))[..., 0, :]
    gap = penalised_value(best, old, weight, penalty) - penalised_value(grid, old, weight, penalty)
    assert gap.min() >= -EXACT
    assert gap.min() < 3e-3


@pytest.mark.parametrize("seed", range(6))
def test_maximiser_agrees_with_a_general_solver(seed: int) -> None:
    """Same optimum as sequential quadratic programming on max w.q - C d, KL_s <= d."""
    rng = np.random.default_rng(seed)
    old, weight = tab.random_policies(rng, (2, 3)), rng.normal(size=(2, 3))
    penalty = float(np.exp(rng.uniform(-2, 2)))
    best = tab.penalised_argmax(old, weight, np.array(penalty))

    def room(x: Array) -> Array:
        return x[-1] - (old * np.log(old / x[:-1].reshape(2, 3))).sum(-1)

    result = optimize.minimize(
        lambda x: penalty * x[-1] - x[:-1] @ weight.ravel(),
        np.append(old.ravel(), 0.1),
        method="SLSQP",
        bounds=[(1e-9, 1)] * 6 + [(0, None)],
        constraints=[
            {"type": "ineq", "fun": room},
            {"type": "eq", "fun": lambda x: x[:-1].reshape(2, 3).sum(-1) - 1},
        ],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert room(result.x).min() > -1e-9  # the value of an infeasible point would prove nothing
    assert abs(penalised_value(best, old, weight, penalty) + result.fun) < 1e-8
    np.testing.assert_allclose(best.ravel(), result.x[:-1], atol=1e-4)


def test_maximiser_stays_where_nothing_is_to_be_gained() -> None:
    """A state with equal weights keeps its policy; the other state still moves."""
    old = np.array([[0.3, 0.7], [0.6, 0.4]])
    weight = np.array([[2.0, 2.0], [0.0, 1.0]])
    best = tab.penalised_argmax(old, weight, np.array(0.5))
    np.testing.assert_allclose(best[0], old[0], atol=EXACT)
    assert best[1, 1] > 0.5


def test_selection_never_pairs_an_agent_with_itself() -> None:
    """Non-overlapping selection: a permutation without fixed points; every cycle turns up."""
    rng = np.random.default_rng(3)
    drawn = [tuple(tab.non_overlapping_selection(rng, 4)) for _ in range(400)]
    assert all(sorted(f) == [0, 1, 2, 3] for f in drawn)
    assert all(f[i] != i for f in drawn for i in range(4))
    assert len(set(drawn)) == 6  # (4 - 1)! cycles through four agents


@pytest.mark.parametrize("kind", ["average", "random"])
def test_splits_add_up(kind: str) -> None:
    """Both splits obey sum_i A^i = A; only the random one gives the agents different parts."""
    rng, _, _, snap = draw(seed=4, count=5)
    split = draw_split(rng, kind, snap.advantage, 3)
    np.testing.assert_allclose(split.sum(-3), snap.advantage, atol=EXACT)
    assert (np.ptp(split, axis=-3).max() > 0.1) == (kind == "random")


# ---------------------------------------------------------------- the lower bound


def test_t1_return_exceeds_lower_bound() -> None:
    """T1 (Eq. 5): J(q) >= L(q) for every q; without the penalty the bound is false."""
    violations = 0
    for seed, distance in enumerate([1.0, 0.3, 0.03]):
        rng, game, policies, snap = draw(seed, count=400)
        new = (1 - distance) * policies + distance * tab.random_policies(rng, policies.shape)
        value = tab.objective(game, new)
        assert (value - tab.lower_bound(snap, new)).min() >= SLACK
        free = tab.lower_bound(snap._replace(penalty=np.zeros(400)), new)
        violations += int((value < free - 1e-6).sum())
    assert violations > 100


def test_t2_all_pipelines_share_one_lower_bound() -> None:
    """T2 (Lemma 1): the bounds of the n pipelines are equal, and equal to L."""
    rng, _, policies, snap = draw(seed=5, count=200, actions=3)
    new = tab.random_policies(rng, policies.shape)
    bounds = tab.pipeline_bounds(snap, new)
    assert np.ptp(bounds, axis=-1).max() < EXACT
    np.testing.assert_allclose(bounds[:, 0], tab.lower_bound(snap, new), atol=EXACT)
    # At pi_k itself the bound is tight.
    np.testing.assert_allclose(tab.lower_bound(snap, policies), snap.objective, atol=EXACT)


def test_advantage_decomposes_with_a_plus() -> None:
    """Flaw 1: A(s, a) = A^p(s, a^p) + A^-p(s, a^p, a^-p); with a minus it is not A."""
    _, _, policies, snap = draw(seed=6, count=50)
    by_agent = snap.advantage.reshape(50, 2, 2, 2, 2)
    for p in range(3):
        own = tab.expect(snap.advantage, policies, keep=p)
        shape = [50, 2, 1, 1, 1]
        shape[2 + p] = 2
        own = own.reshape(shape)
        rest = by_agent - own  # Q - Q^p: what the others add once a^p is known
        others_average = tab.expect(rest.reshape(50, 2, 8), policies, keep=p)
        np.testing.assert_allclose(others_average, 0, atol=EXACT)
        np.testing.assert_allclose(own + rest, by_agent, atol=EXACT)
        assert np.abs(own - rest - by_agent).max() > 0.1


def test_joint_divergence_is_at_most_the_sum() -> None:
    """Item 8: max_s KL(joint) <= sum_i max_s KL_i; per state the two are equal."""
    rng, _, policies, _ = draw(seed=7, count=200)
    new = tab.random_policies(rng, policies.shape)
    joint_old, joint_new = tab.joint_policy(policies), tab.joint_policy(new)
    by_state = (joint_old * np.log(joint_old / joint_new)).sum(-1)
    parts = (policies * np.log(policies / new)).sum(-1)
    np.testing.assert_allclose(by_state, parts.sum(-2), atol=EXACT)
    slack = tab.max_kl(policies, new).sum(-1) - tab.max_kl(joint_old, joint_new)
    assert slack.min() >= -EXACT
    assert slack.max() > 0.1  # agents may peak in different states: strict in general


# ---------------------------------------------------------------- the two steps, T3 to T6


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
    snap = tab.snapshot(game, policies, penalty)
    split = draw_split(rng, case.split, snap.advantage, 3)
    half = tab.independent_step(snap, split, case.sharing)
    new, regret = tab.dependent_step(snap, split, half, case.sharing, sweeps=30)
    gains = [tab.objective(game, q) - snap.objective for q in (half, new)]
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
    independent = partial(tab.independent_objectives, run.snap, run.split)
    first = independent(run.half) - independent(run.snap.policies)
    dependent = partial(tab.dependent_objectives, run.snap, run.split, others=run.new)
    second = (dependent(run.new) - dependent(run.half))[run.settled]
    for group in set(case.sharing):
        members = [i for i, g in enumerate(case.sharing) if g == group]
        assert first[:, members].sum(-1).min() > 0
        assert second[:, members].sum(-1).min() >= SLACK
    # Not vacuous. With a small C the fixed point may lie at a kink, where sweeps settle slowly.
    assert run.settled.mean() >= (0.9 if case.penalty is None else 0.3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_t3_lemma_2_at_the_fixed_point(case: Case) -> None:
    """T3, T6 (Lemma 2): C sum KL <= sum_i E[(r(new) - h_i r(new^-i) + h_i - 1) A^i]."""
    run = run_both_steps(case)
    slack = tab.lemma_slack(run.snap, run.split, run.half, run.new)
    assert slack[run.settled].min() >= SLACK


@pytest.mark.parametrize("case", CASES, ids=str)
def test_t4_constraint_makes_the_bound_rise(case: Case) -> None:
    """T4, T6 (Theorem 2): with the constraint L(new) >= L(pi_k), whatever C > 0.

    With the true C, and only then, this carries over to the return J.
    """
    run = run_both_steps(case)
    held = run.settled & (tab.mu_gain(run.snap, run.split, run.half, run.new) >= 0)
    assert held.sum() >= 10
    rise = tab.lower_bound(run.snap, run.new) - run.snap.objective
    assert rise[held].min() >= SLACK
    if case.penalty is None:
        assert run.new_gain[held].min() >= SLACK


@pytest.mark.parametrize("case", CASES, ids=str)
def test_t5_condition_certifies_the_intermediate_policies(case: Case) -> None:
    """T5, T6: L(half) - L(pi_k) >= sum_i mu(half^-i) - sum_i mu(pi_k^-i).

    So the condition alone makes L rise at the intermediate policies, and J with the true C.
    """
    run = run_both_steps(case)
    rise = tab.lower_bound(run.snap, run.half) - run.snap.objective
    condition = tab.mu_gain(run.snap, run.split, run.half, run.half)
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
    game = tab.random_games(rng, 500, 3, 1, 2, log_uniform(rng, 0.005, 0.2, 500))
    snap = tab.snapshot(game, tab.random_policies(rng, (500, 3, 1, 2)))
    split = tab.random_split(rng, snap.advantage, 3)
    half = tab.independent_step(snap, split, SEPARATE)
    new, regret = tab.dependent_step(snap, split, half, SEPARATE, sweeps=20)
    settled = regret < 1e-10
    violated = settled & (tab.mu_gain(snap, split, half, new) < 0)
    assert tab.lemma_slack(snap, split, half, new)[settled].min() >= SLACK
    assert (tab.lower_bound(snap, new) - snap.objective)[violated].min() < -1e-2
    fall = tab.objective(game, new) - snap.objective
    assert fall[violated].min() < -1e-4
    assert fall[settled & ~violated].min() >= SLACK


def test_theorem_2_for_any_policies_that_meet_its_premises() -> None:
    """Flaw 2, corrected: premises instead of argmax, and none of the three can be left out.

    (0) sum of independent objectives: half >= pi_k; (a) sum of dependent objectives, given the
    others' final policies: new >= half; (b) the constraint. Then L(new) >= L(pi_k).
    """
    rng, game, policies, _ = draw(seed=10, count=20_000)
    snap = tab.snapshot(game, policies, np.full(20_000, 0.05))
    split = tab.random_split(rng, snap.advantage, 3)
    half, new = (tab.random_policies(rng, policies.shape) for _ in range(2))
    independent = partial(tab.independent_objectives, snap, split)
    dependent = partial(tab.dependent_objectives, snap, split, others=new)
    premises = [
        (independent(half) - independent(policies)).sum(-1) >= 0,
        (dependent(new) - dependent(half)).sum(-1) >= 0,
        tab.mu_gain(snap, split, half, new) >= 0,
    ]
    rise = tab.lower_bound(snap, new) - snap.objective
    every = np.all(premises, axis=0)
    assert every.sum() > 1000
    assert rise[every].min() >= SLACK
    for missing in range(3):
        rest = np.all([p for i, p in enumerate(premises) if i != missing], axis=0)
        assert rise[rest & ~premises[missing]].min() < -0.1


def test_average_split_is_a_potential_game() -> None:
    """One agent's move changes its dependent objective and E_q[A]/n - C sum KL by the same."""
    rng, _, policies, snap = draw(seed=11, count=50)
    split = tab.average_split(snap.advantage, 3)
    before, other = (tab.random_policies(rng, policies.shape) for _ in range(2))

    def potential(q: Array) -> Array:
        divergence = tab.max_kl(policies, q).sum(-1)
        return tab.expected(snap, snap.advantage, q) / 3 - snap.penalty * divergence

    for i in range(3):
        after = tab.replace(before, i, other)
        own = tab.dependent_objectives(snap, split, after, before)[:, i]
        own = own - tab.dependent_objectives(snap, split, before, before)[:, i]
        np.testing.assert_allclose(potential(after) - potential(before), own, atol=EXACT)


def test_average_split_weighs_the_penalty_n_times() -> None:
    """Flaw 6: argmax of (A/n, C) = argmax of (A, nC), so steps are shorter than (A, C) allows.

    Someone who multiplies the reward by n must multiply C, too: with (A, C) the condition may
    hold while L falls at the intermediate policies, with (A, nC) it cannot.
    """
    rng = np.random.default_rng(12)
    game = tab.random_games(rng, 1000, 3, 1, 2, log_uniform(rng, 0.005, 0.2, 1000))
    snap = tab.snapshot(game, tab.random_policies(rng, (1000, 3, 1, 2)))
    split = tab.average_split(snap.advantage, 3)
    averaged = tab.independent_step(snap, split, SEPARATE)
    scaled = tab.independent_step(snap._replace(penalty=3 * snap.penalty), 3 * split, SEPARATE)
    unscaled = tab.independent_step(snap, 3 * split, SEPARATE)
    np.testing.assert_allclose(scaled, averaged, atol=1e-9)
    cautious, bold = (tab.max_kl(snap.policies, q) for q in (averaged, unscaled))
    assert (bold > cautious).all()
    lowest = [
        (tab.lower_bound(snap, q) - snap.objective)[tab.mu_gain(snap, split, q, q) >= 0].min()
        for q in (scaled, unscaled)
    ]
    assert lowest[0] >= SLACK
    assert lowest[1] < -0.01


# ---------------------------------------------------------------- sequential updates


@pytest.mark.parametrize("states", [1, 2])
def test_sequential_updates_need_separate_policies(states: int) -> None:
    """One agent after the other, true C: L and J rise with separate policies only.

    When the agents play one policy, every turn moves all of them: L and J may fall. From the
    same start both steps of FP3O, where certified, do not lower either.
    """
    rng = np.random.default_rng(13)
    game = tab.random_games(rng, 300, 3, states, 2, rng.uniform(0.05, 0.4, 300))
    start = np.repeat(tab.random_policies(rng, (300, 1, states, 2)), 3, axis=1)
    snap = tab.snapshot(game, start)
    order = rng.permutation(3)
    separate, shared = (tab.sequential_step(snap, order, kind) for kind in (SEPARATE, SHARED))
    rises = [tab.lower_bound(snap, q) - snap.objective for q in (separate, shared)]
    gains = [tab.objective(game, q) - snap.objective for q in (separate, shared)]
    assert min(rises[0].min(), gains[0].min()) >= SLACK
    assert rises[1].min() < -0.069
    assert gains[1].min() < -0.028
    assert (gains[1] < -1e-6).mean() > 0.1
    pipeline = tab.policy_iteration(game, start, tab.average_split, "certify", SHARED)
    assert (tab.objective(game, pipeline.final) - snap.objective).min() >= SLACK
    assert (tab.lower_bound(snap, pipeline.final) - snap.objective).min() >= SLACK


def test_sequential_turns_overspend_the_divergence_of_a_shared_policy() -> None:
    """The divergence summed over agents is larger than what the turns were charged for."""
    rng = np.random.default_rng(14)
    game = tab.random_games(rng, 200, 3, 2, 2, rng.uniform(0.05, 0.4, 200))
    start = np.repeat(tab.random_policies(rng, (200, 1, 2, 2)), 3, axis=1)
    snap = tab.snapshot(game, start)
    one_turn = tab.sequential_step(snap, [0], SEPARATE)
    one_turn_shared = tab.sequential_step(snap, [0], SHARED)
    charged = tab.max_kl(start, one_turn).sum(-1)
    spent = tab.max_kl(start, one_turn_shared).sum(-1)
    np.testing.assert_allclose(spent, 3 * charged, rtol=1e-9)


# ---------------------------------------------------------------- what the practical loop loses


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


class Outcome(NamedTuple):
    """An iteration on a matrix game, with the changes of L and J against pi_k."""

    snap: Snapshot
    split: Array
    step: tab.Iteration
    bound: dict[str, float]
    gain: dict[str, float]


def play(matrix: MatrixGame, on_failed_condition: str = "keep") -> Outcome:
    """Run one iteration with the true C and the average split."""
    game = tab.one_state_games(np.array(matrix.reward), np.array(matrix.discount))
    policies = tab.binary_policies(np.array(matrix.chance))
    snap = tab.snapshot(game, policies)
    split = tab.average_split(snap.advantage, 2)
    step = tab.policy_iteration(game, policies, tab.average_split, on_failed_condition)
    exact, regret = tab.dependent_step(snap, split, step.half, (0, 1))
    assert regret < 1e-10
    named = {"half": step.half, "frozen": step.new, "exact": exact, "final": step.final}
    bound = {k: float(tab.lower_bound(snap, q) - snap.objective) for k, q in named.items()}
    gain = {k: float(tab.objective(game, q) - snap.objective) for k, q in named.items()}
    return Outcome(snap, split, step, bound, gain)


def test_frozen_dependent_step_may_lower_the_return() -> None:
    """Flaw 4: true C, condition and constraint true, yet L falls by .037 and J by .035.

    The intermediate policies would have gained 1.05, and the exact fixed point gains as well.
    """
    outcome = play(FROZEN_FAILS)
    assert outcome.step.condition
    assert outcome.step.constraint
    assert outcome.gain["final"] == pytest.approx(-0.035, abs=5e-4)
    assert outcome.bound["final"] == pytest.approx(-0.037, abs=5e-4)
    assert outcome.gain["half"] == pytest.approx(1.05, abs=5e-3)
    assert outcome.bound["exact"] > 0.8
    # What breaks is Lemma 2, and that is what "certify" looks at; "revert" does not.
    slack = tab.lemma_slack(outcome.snap, outcome.split, outcome.step.half, outcome.step.new)
    assert slack < -0.01
    assert play(FROZEN_FAILS, "certify").gain["final"] == outcome.gain["half"]
    assert play(FROZEN_FAILS, "revert").gain["final"] == outcome.gain["frozen"]


def test_frozen_dependent_step_breaks_lemma_2() -> None:
    """Flaw 4: with frozen others and a small C, Lemma 2 fails by more than .18."""
    _, game, policies, _ = draw(seed=15, count=200)
    snap = tab.snapshot(game, policies, np.full(200, 0.05))
    split = tab.average_split(snap.advantage, 3)
    half = tab.independent_step(snap, split, SEPARATE)
    frozen = tab.frozen_step(snap, split, half, SEPARATE)
    assert tab.lemma_slack(snap, split, half, frozen).min() < -0.18


def test_keeping_uncertified_policies_may_lower_the_return() -> None:
    """Flaw 5: true C, condition false, and the kept intermediate policies lose 2.31."""
    outcome = play(KEEPING_FAILS)
    assert not outcome.step.condition
    assert outcome.gain["final"] == pytest.approx(-2.31, abs=5e-3)
    assert outcome.gain["final"] == outcome.gain["half"]
    assert play(KEEPING_FAILS, "revert").gain["final"] == 0.0


def test_miscoordination_with_a_weak_penalty() -> None:
    """Discount .01, true C: the condition is false, and L falls by .019 at half."""
    outcome = play(miscoordination(0.01))
    assert not outcome.step.condition
    assert outcome.bound["half"] == pytest.approx(-0.019, abs=5e-4)
    assert play(miscoordination(0.01), "revert").gain["final"] == 0.0


def test_miscoordination_with_a_strong_penalty() -> None:
    """Discount .05, true C: the condition is true, and every policy is better than pi_k."""
    outcome = play(miscoordination(0.05))
    assert outcome.step.condition
    assert outcome.step.constraint
    assert min(outcome.bound.values()) > 0.004
    assert min(outcome.gain.values()) > 0.006
    assert play(miscoordination(0.05), "revert").gain["final"] == outcome.gain["frozen"]


def two_by_two_games(seed: int, count: int) -> tuple[np.random.Generator, tab.Game, Array]:
    """Draw one-state games of two agents with two actions, gamma from .001 to .2."""
    rng = np.random.default_rng(seed)
    discount = log_uniform(rng, 1e-3, 0.2, count)
    game = tab.one_state_games(2 * rng.normal(size=(count, 4)), discount)
    return rng, game, tab.binary_policies(rng.uniform(0.02, 0.98, (count, 2)))


@pytest.mark.parametrize("kind", ["average", "random"])
def test_reverting_is_safe_and_keeping_is_not(kind: str) -> None:
    """Flaws 4, 5 and T5 on 3000 2x2 games, true C: where the condition fails, "keep" lowers J.

    "revert" never does there; the independent step alone with "revert" never does anywhere (T5),
    nor does "certify" with both steps.
    """
    rng, game, policies = two_by_two_games(seed=16, count=3000)
    before = tab.objective(game, policies)
    fixed = draw_split(rng, kind, tab.advantages(game, policies), 2)
    keep, revert, certify = (
        tab.policy_iteration(game, policies, lambda *_: fixed, mode)
        for mode in ("keep", "revert", "certify")
    )
    kept, reverted, certified = (
        tab.objective(game, step.final) - before for step in (keep, revert, certify)
    )
    assert (kept[~keep.condition] < -1e-3).sum() >= 10
    assert kept.min() < -1.0
    assert reverted[~keep.condition].min() >= SLACK
    assert np.array_equal(reverted[keep.condition], kept[keep.condition])
    half = tab.objective(game, keep.half) - before
    assert half[keep.condition].min() >= SLACK
    assert certified.min() >= SLACK
    assert (certified > 1e-6).mean() > 0.8  # safe, but not by standing still


def test_keeping_fails_even_when_condition_and_constraint_hold() -> None:
    """Flaw 4 on 5000 2x2 games, true C: the frozen step lowers J in a few certified games."""
    _, game, policies = two_by_two_games(seed=17, count=5000)
    step = tab.policy_iteration(game, policies, tab.average_split, "keep")
    change = tab.objective(game, step.final) - tab.objective(game, policies)
    fell = step.condition & step.constraint & (change < -1e-6)
    assert 1 <= fell.sum() <= 50


def test_certifying_is_monotone_over_iterations() -> None:
    """T4 and T5 repeated: J never falls along six "certify" iterations with the true C."""
    _, game, policies = two_by_two_games(seed=18, count=300)
    returns = [tab.objective(game, policies)]
    for _ in range(6):
        step = tab.policy_iteration(game, policies, tab.average_split, "certify")
        policies = step.final
        returns.append(tab.objective(game, policies))
    assert min((after - before).min() for before, after in pairwise(returns)) >= SLACK
    assert (returns[-1] > returns[1] + 1e-6).mean() > 0.5


# ---------------------------------------------------------------- non-overlapping selection


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
    others, here = (tab.random_policies(rng, policies.shape) for _ in range(2))
    pairings = [np.array(f) for f in permutations(range(3)) if all(f[i] != i for i in range(3))]
    assert len(pairings) == 2

    def reported(q: Array) -> Array:
        return np.stack(
            [tab.pipeline_objectives(snap, split, q, others, f, clip) for f in pairings]
        )

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
    split = tab.random_split(rng, snap.advantage, 3)
    others, q = (tab.random_policies(rng, policies.shape) for _ in range(2))
    pairing = tab.non_overlapping_selection(rng, 3)
    found = tab.pipeline_objectives(snap, split, q, others, pairing)
    plain = tab.dependent_objectives(snap._replace(penalty=np.zeros(20)), split, q, others)
    for i, j in enumerate(pairing):
        constant = tab.expected(snap, split[:, j], tab.replace(policies, i, others))
        np.testing.assert_allclose(found[:, j], plain[:, j] - constant, atol=EXACT)


# ---------------------------------------------------------------- partial sharing


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
        return -float(tab.dependent_objectives(snap, split, policies, others).sum())

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
    game = tab.random_games(rng, 1, 2, 2, 2, rng.uniform(0.05, 0.2, 1))
    game = tab.Game(*(field[0] for field in game))
    start = rng.normal(size=12)
    snap = tab.snapshot(game, layered_policies(start))
    split = draw_split(rng, kind, snap.advantage, 2)
    middle = climb(start, snap, split, snap.policies)
    end = middle
    for _ in range(5):
        end = climb(end, snap, split, layered_policies(end))
    half, new = layered_policies(middle), layered_policies(end)
    first = tab.independent_objectives(snap, split, half).sum()
    assert first > tab.independent_objectives(snap, split, snap.policies).sum() + 1e-4
    dependent = partial(tab.dependent_objectives, snap, split, others=new)
    assert dependent(new).sum() >= dependent(half).sum() + SLACK
    rise = [tab.lower_bound(snap, q) - snap.objective for q in (half, new)]
    assert rise[0] >= tab.mu_gain(snap, split, half, half) + SLACK
    assert tab.lemma_slack(snap, split, half, new) >= SLACK
    assert rise[1] >= tab.mu_gain(snap, split, half, new) + SLACK
