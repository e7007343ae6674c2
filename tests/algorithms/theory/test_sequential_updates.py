"""Sequential updates: safe with separate policies, not with a shared one."""

import numpy as np
import pytest
from tabular.bounds import lower_bound, max_kl
from tabular.games import objective, random_games, random_policies, snapshot
from tabular.objectives import average_split
from tabular.updates import policy_iteration, sequential_step
from theory_games import SEPARATE, SHARED, SLACK


@pytest.mark.parametrize("states", [1, 2])
def test_sequential_updates_need_separate_policies(states: int) -> None:
    """One agent after the other, true C: L and J rise with separate policies only.

    When the agents play one policy, every turn moves all of them: L and J may fall. From the
    same start both steps of FP3O, where certified, do not lower either.
    """
    rng = np.random.default_rng(13)
    game = random_games(rng, 300, 3, states, 2, rng.uniform(0.05, 0.4, 300))
    start = np.repeat(random_policies(rng, (300, 1, states, 2)), 3, axis=1)
    snap = snapshot(game, start)
    order = rng.permutation(3).tolist()
    separate, shared = (sequential_step(snap, order, kind) for kind in (SEPARATE, SHARED))
    rises = [lower_bound(snap, q) - snap.objective for q in (separate, shared)]
    gains = [objective(game, q) - snap.objective for q in (separate, shared)]
    assert min(rises[0].min(), gains[0].min()) >= SLACK
    assert rises[1].min() < -0.069
    assert gains[1].min() < -0.028
    assert (gains[1] < -1e-6).mean() > 0.1
    pipeline = policy_iteration(game, start, average_split, "certify", SHARED)
    assert (objective(game, pipeline.final) - snap.objective).min() >= SLACK
    assert (lower_bound(snap, pipeline.final) - snap.objective).min() >= SLACK


def test_sequential_turns_overspend_the_divergence_of_a_shared_policy() -> None:
    """The divergence summed over agents is larger than what the turns were charged for."""
    rng = np.random.default_rng(14)
    game = random_games(rng, 200, 3, 2, 2, rng.uniform(0.05, 0.4, 200))
    start = np.repeat(random_policies(rng, (200, 1, 2, 2)), 3, axis=1)
    snap = snapshot(game, start)
    one_turn = sequential_step(snap, [0], SEPARATE)
    one_turn_shared = sequential_step(snap, [0], SHARED)
    charged = max_kl(start, one_turn).sum(-1)
    spent = max_kl(start, one_turn_shared).sum(-1)
    np.testing.assert_allclose(spent, 3 * charged, rtol=1e-9)
