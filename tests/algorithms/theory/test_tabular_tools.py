"""The exact evaluation of tabular games and the exact maximiser themselves."""

import numpy as np
import pytest
from scipy import optimize
from tabular.bounds import max_kl
from tabular.games import Array, binary_policies, expect, objective, random_policies, visitation
from tabular.maximiser import penalised_argmax
from theory_games import EXACT, draw


def test_evaluation_obeys_the_performance_difference_identity() -> None:
    """V, rho and A are exact: J(q) - J(pi) = E_{s ~ rho_q, a ~ q}[A_pi(s, a)] for any q."""
    rng, game, policies, snap = draw(seed=0, count=50, actions=3)
    other = random_policies(rng, policies.shape)
    visited = visitation(game, other)
    gain = (visited * expect(snap.advantage, other)).sum(-1)
    np.testing.assert_allclose(objective(game, other) - snap.objective, gain, atol=EXACT)
    np.testing.assert_allclose(visited.sum(-1), 1 / (1 - game.discount), atol=EXACT)
    # On its own policy the advantage averages to zero, and each agent's marginal does, too.
    np.testing.assert_allclose(expect(snap.advantage, policies), 0, atol=EXACT)


def test_expect_agrees_with_a_loop_over_joint_actions() -> None:
    """E over all agents but one, against the definition: sum over the others' actions."""
    rng = np.random.default_rng(1)
    policies, values = random_policies(rng, (3, 1, 2)), rng.normal(size=(1, 8))
    wanted = np.zeros((3, 2))
    for index in range(8):
        actions = [(index >> 2) & 1, (index >> 1) & 1, index & 1]
        chances = [policies[i, 0, actions[i]] for i in range(3)]
        for keep in range(3):
            others = np.prod([c for i, c in enumerate(chances) if i != keep])
            wanted[keep, actions[keep]] += others * values[0, index]
    found = [expect(values, policies, keep)[0] for keep in range(3)]
    np.testing.assert_allclose(found, wanted, atol=EXACT)


def penalised_value(policy: Array, old: Array, weight: Array, penalty: float) -> Array:
    """What `penalised_argmax` maximises."""
    return (policy * weight).sum((-1, -2)) - penalty * max_kl(old, policy)


@pytest.mark.parametrize("penalty", [0.05, 0.5, 3.0])
def test_maximiser_beats_a_grid(penalty: float) -> None:
    """The exact maximiser is at least as good as 10^6 grid points, and the grid comes close."""
    rng = np.random.default_rng(2)
    old, weight = random_policies(rng, (2, 2)), rng.normal(size=(2, 2))
    best = penalised_argmax(old, weight, np.array(penalty))
    axis = np.linspace(0.0005, 0.9995, 1000)
    grid = binary_policies(np.stack(np.meshgrid(axis, axis), axis=-1))[..., 0, :]
    gap = penalised_value(best, old, weight, penalty) - penalised_value(grid, old, weight, penalty)
    assert gap.min() >= -EXACT
    assert gap.min() < 3e-3


@pytest.mark.parametrize("seed", range(6))
def test_maximiser_agrees_with_a_general_solver(seed: int) -> None:
    """Same optimum as sequential quadratic programming on max w.q - C d, KL_s <= d."""
    rng = np.random.default_rng(seed)
    old, weight = random_policies(rng, (2, 3)), rng.normal(size=(2, 3))
    penalty = float(np.exp(rng.uniform(-2, 2)))
    best = penalised_argmax(old, weight, np.array(penalty))

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
    best = penalised_argmax(old, weight, np.array(0.5))
    np.testing.assert_allclose(best[0], old[0], atol=EXACT)
    assert best[1, 1] > 0.5
