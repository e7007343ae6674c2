"""Tabular cooperative games, and the exact evaluation of policies in them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sharing = tuple[int, ...]


class TabularGame(NamedTuple):
    """A cooperative game, or a batch of games along the leading axes."""

    transition: Array  # (..., s, m, s)
    reward: Array  # (..., s, m)
    start: Array  # (..., s), the distribution of the first state
    discount: Array  # (...)


class Snapshot(NamedTuple):
    """What one policy iteration knows about pi_k."""

    policies: Array  # (..., n, s, a)
    visitation: Array  # (..., s), discounted and not normalised
    advantage: Array  # (..., s, m)
    objective: Array  # (...), J(pi_k)
    penalty: Array  # (...), C


def random_games(
    rng: np.random.Generator, count: int, agents: int, states: int, actions: int, discount: Array
) -> TabularGame:
    """Draw games: Dirichlet transitions and starts, normal rewards."""
    joint = actions**agents
    return TabularGame(
        transition=rng.dirichlet(np.ones(states), size=(count, states, joint)),
        reward=rng.normal(size=(count, states, joint)),
        start=rng.dirichlet(np.ones(states), size=count),
        discount=discount,
    )


def one_state_games(reward: Array, discount: Array) -> TabularGame:
    """Repeat matrix games for ever; `reward` is `(..., m)`, so J = E[reward] / (1 - gamma)."""
    return TabularGame(
        transition=np.ones((*reward.shape[:-1], 1, reward.shape[-1], 1)),
        reward=reward[..., None, :],
        start=np.ones((*reward.shape[:-1], 1)),
        discount=np.asarray(discount, dtype=float),
    )


def random_policies(
    rng: np.random.Generator, shape: tuple[int, ...], concentration: float = 1.0
) -> Array:
    """Draw policies of a shape `(..., n, s, a)` that give every action some probability."""
    drawn = rng.dirichlet(np.full(shape[-1], concentration), size=shape[:-1])
    return 0.98 * drawn + 0.02 / shape[-1]


def binary_policies(second_action: Array) -> Array:
    """Turn probabilities of action 1, `(..., n)`, into one-state policies `(..., n, 1, 2)`."""
    chance = np.asarray(second_action, dtype=float)
    return np.stack([1 - chance, chance], axis=-1)[..., None, :]


def joint_policy(policies: Array) -> Array:
    """Multiply the agents' policies out: pi(a|s) = prod_i pi^i(a^i|s), `(..., s, m)`."""
    joint = np.ones((*policies.shape[:-3], policies.shape[-2], 1))
    for agent in range(policies.shape[-3]):
        own = policies[..., agent, :, None, :]
        joint = (joint[..., None] * own).reshape(*joint.shape[:-1], -1)
    return joint


def expect(values: Array, policies: Array, keep: int | None = None) -> Array:
    """Average over the joint action, except over the action of agent `keep`.

    out(s, a^keep) = E_{a^j ~ policies^j, j != keep}[values(s, a)], `(..., s, a)`;
    without `keep`, E_{a ~ policies}[values(s, a)], `(..., s)`.
    """
    agents, _, actions = policies.shape[-3:]
    lead = values.shape[:-1]
    out = values
    for agent in reversed(range(agents)):
        if agent != keep:
            right = actions if keep is not None and keep > agent else 1
            blocks = out.reshape(*lead, -1, actions, right)
            out = np.einsum("...slar,...sa->...slr", blocks, policies[..., agent, :, :])
    return out.reshape(*lead, -1) if keep is not None else out.reshape(lead)


def state_values(game: TabularGame, policies: Array) -> Array:
    """Solve V = (I - gamma P_pi)^-1 r_pi."""
    kernel, reward = _chain(game, policies)
    return _solve(_resolvent(game, kernel), reward)


def objective(game: TabularGame, policies: Array) -> Array:
    """Expected discounted return, J = start . V."""
    return (game.start * state_values(game, policies)).sum(-1)


def advantages(game: TabularGame, policies: Array) -> Array:
    """Joint advantage, A(s, a) = R(s, a) + gamma E[V(s')] - V(s)."""
    value = state_values(game, policies)
    following = np.einsum("...smt,...t->...sm", game.transition, value)
    return game.reward + game.discount[..., None, None] * following - value[..., None]


def visitation(game: TabularGame, policies: Array) -> Array:
    """Discounted state visitation, rho = (I - gamma P_pi^T)^-1 start; it sums to 1/(1-gamma)."""
    kernel, _ = _chain(game, policies)
    transposed = np.swapaxes(_resolvent(game, kernel), -1, -2)
    return _solve(transposed, game.start)


def true_penalty(game: TabularGame, policies: Array) -> Array:
    """The constant that makes the lower bound valid, C = 4 gamma max|A| / (1 - gamma)^2."""
    largest = np.abs(advantages(game, policies)).max((-1, -2))
    return 4 * game.discount * largest / (1 - game.discount) ** 2


def snapshot(game: TabularGame, policies: Array, penalty: Array | None = None) -> Snapshot:
    """Evaluate pi_k once for a whole iteration; the penalty is the true C unless given."""
    return Snapshot(
        policies=policies,
        visitation=visitation(game, policies),
        advantage=advantages(game, policies),
        objective=objective(game, policies),
        penalty=true_penalty(game, policies) if penalty is None else penalty,
    )


def _chain(game: TabularGame, policies: Array) -> tuple[Array, Array]:
    joint = joint_policy(policies)
    kernel = np.einsum("...sm,...smt->...st", joint, game.transition)
    return kernel, (joint * game.reward).sum(-1)


def _resolvent(game: TabularGame, kernel: Array) -> Array:
    return np.eye(kernel.shape[-1]) - game.discount[..., None, None] * kernel


def _solve(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], np.float64)
