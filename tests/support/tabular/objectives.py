"""Exact tabular cooperative games: everything is computed, nothing is sampled.

Axes: any leading batch of games, then `n` agents, `s` states, `a` actions of one agent, `m = a**n`
joint actions (agent 0 varies slowest). A joint policy is an array `(..., n, s, a)`, a function of
state and joint action an array `(..., s, m)`, a split of the advantage an array `(..., n, s, m)`.
`pi_k` is the policy before an iteration, `half` the one after the independent step, `new` the one
after the dependent step. Sharing is a tuple that maps each agent to its group; agents of a group
play one common policy: `(0, 1, 2)` shares nothing, `(0, 0, 0)` shares everything.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sharing = tuple[int, ...]


class Game(NamedTuple):
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


class Iteration(NamedTuple):
    """One policy iteration: its policies, and what certifies them."""

    half: Array
    new: Array
    final: Array  # what the iteration returns
    condition: Mask
    constraint: Mask


# ---------------------------------------------------------------- games and exact evaluation


def random_games(
    rng: np.random.Generator, count: int, agents: int, states: int, actions: int, discount: Array
) -> Game:
    """Draw games: Dirichlet transitions and starts, normal rewards."""
    joint = actions**agents
    return Game(
        transition=rng.dirichlet(np.ones(states), size=(count, states, joint)),
        reward=rng.normal(size=(count, states, joint)),
        start=rng.dirichlet(np.ones(states), size=count),
        discount=discount,
    )


def one_state_games(reward: Array, discount: Array) -> Game:
    """Repeat matrix games for ever; `reward` is `(..., m)`, so J = E[reward] / (1 - gamma)."""
    return Game(
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


def state_values(game: Game, policies: Array) -> Array:
    """Solve V = (I - gamma P_pi)^-1 r_pi."""
    kernel, reward = _chain(game, policies)
    return np.linalg.solve(_resolvent(game, kernel), reward[..., None])[..., 0]


def objective(game: Game, policies: Array) -> Array:
    """Expected discounted return, J = start . V."""
    return (game.start * state_values(game, policies)).sum(-1)


def advantages(game: Game, policies: Array) -> Array:
    """Joint advantage, A(s, a) = R(s, a) + gamma E[V(s')] - V(s)."""
    value = state_values(game, policies)
    following = np.einsum("...smt,...t->...sm", game.transition, value)
    return game.reward + game.discount[..., None, None] * following - value[..., None]


def visitation(game: Game, policies: Array) -> Array:
    """Discounted state visitation, rho = (I - gamma P_pi^T)^-1 start; it sums to 1/(1-gamma)."""
    kernel, _ = _chain(game, policies)
    transposed = np.swapaxes(_resolvent(game, kernel), -1, -2)
    return np.linalg.solve(transposed, game.start[..., None])[..., 0]


def true_penalty(game: Game, policies: Array) -> Array:
    """The constant that makes the lower bound valid, C = 4 gamma max|A| / (1 - gamma)^2."""
    largest = np.abs(advantages(game, policies)).max((-1, -2))
    return 4 * game.discount * largest / (1 - game.discount) ** 2


def snapshot(game: Game, policies: Array, penalty: Array | None = None) -> Snapshot:
    """Evaluate pi_k once for a whole iteration; the penalty is the true C unless given."""
    return Snapshot(
        policies=policies,
        visitation=visitation(game, policies),
        advantage=advantages(game, policies),
        objective=objective(game, policies),
        penalty=true_penalty(game, policies) if penalty is None else penalty,
    )


def _chain(game: Game, policies: Array) -> tuple[Array, Array]:
    joint = joint_policy(policies)
    kernel = np.einsum("...sm,...smt->...st", joint, game.transition)
    return kernel, (joint * game.reward).sum(-1)


def _resolvent(game: Game, kernel: Array) -> Array:
    return np.eye(kernel.shape[-1]) - game.discount[..., None, None] * kernel


# ---------------------------------------------------------------- the bound and its parts


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


# ---------------------------------------------------------------- splits, selection, objectives


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


def lemma_slack(snap: Snapshot, split: Array, half: Array, new: Array) -> Array:
    """Right side minus left side of Lemma 2; the lemma says it is not negative.

    sum_i E_{pi_k}[(r(new) - r(half^i) r(new^-i) + r(half^i) - 1) A^i] - C sum_i KL_i(pi_k, new)
    """
    total = split.sum(-3)
    gain = expected(snap, total, new) - expected(snap, total, snap.policies)
    return (
        gain - mu_gain(snap, split, half, new) - snap.penalty * max_kl(snap.policies, new).sum(-1)
    )


def _agent_ratios(policies: Array, old: Array) -> list[Array]:
    """Ratio of every single agent on the joint actions, a list of `(..., s, m)`."""
    joint = joint_policy(old)
    return [joint_policy(replace(old, i, policies)) / joint for i in range(old.shape[-3])]


# ---------------------------------------------------------------- the exact maximiser


def penalised_argmax(old: Array, weight: Array, penalty: Array) -> Array:
    """Maximise sum_{s,a} q(a|s) weight(s, a) - penalty max_s KL(old_s || q_s) over policies q.

    With the same budget d in every state, the best q_s solves a one-dimensional equation, and
    the multiplier lam_s(d) of that state is the slope of its value. The concave value in d peaks
    where sum_s lam_s(d) = penalty; both equations are monotone, so bracketing solves them.
    """

    def shortfall(log_budget: Array) -> Array:
        return penalty - _spend(old, weight, np.exp(log_budget))[1].sum(-1)

    low, high = np.log(1e-16), np.log(600.0)
    shape = penalty.shape
    best = find_root(shortfall, np.full(shape, low), np.full(shape, high))
    return _spend(old, weight, np.exp(best))[0]


def _spend(old: Array, weight: Array, budget: Array) -> tuple[Array, Array]:
    """Best policy of every state with KL(old_s || q_s) = budget, and its multiplier lam_s.

    q(a) ~ old(a) / (1 + t(a)), t(a) = e^y (max w - w(a)) / spread, lam = spread e^-y / sum(...):
    this is q = lam old / (nu - w) with nu = max w + spread e^-y, free of cancellation.
    """
    gap = weight.max(-1, keepdims=True) - weight
    spread = gap.max(-1)
    gap = gap / np.where(spread > 0, spread, 1.0)[..., None]

    def excess(log_scale: Array) -> Array:
        ratio = gap * np.exp(log_scale)[..., None]
        mass = np.log1p(-(old * ratio / (1 + ratio)).sum(-1))
        return (old * np.log1p(ratio)).sum(-1) + mass - budget[..., None]

    # At e^300 a probability is still a positive float: a state that cannot use up the budget
    # stops there, with a multiplier of practically zero.
    log_scale = find_root(excess, np.full(spread.shape, -40.0), np.full(spread.shape, 300.0))
    share = old / (1 + gap * np.exp(log_scale)[..., None])
    total = share.sum(-1)
    return share / total[..., None], spread * np.exp(-log_scale) / total


def find_root(
    function: Callable[[Array], Array], low: Array, high: Array, tolerance: float = 1e-12
) -> Array:
    """Find the zeros of increasing functions, elementwise, by Ridders' method.

    Every round halves the bracket at least; the method is exact on a + b e^{cx}, which is what
    our functions look like far from the zero. Without a change of sign it returns an end.
    """
    below, above, previous = function(low), function(high), low
    for _ in range(60):
        middle = (low + high) / 2
        at_middle = function(middle)
        root = np.sqrt(np.maximum(at_middle**2 - below * above, 1e-300))
        guess = np.clip(middle - (middle - low) * at_middle / root, low, high)
        at_guess = function(guess)
        for point, height in ((middle, at_middle), (guess, at_guess)):
            left = (height <= 0) & (point >= low)
            right = (height >= 0) & (point <= high)
            low, below = np.where(left, point, low), np.where(left, height, below)
            high, above = np.where(right, point, high), np.where(right, height, above)
        if np.all(np.minimum(high - low, abs(guess - previous)) <= tolerance * (1 + abs(guess))):
            break
        previous = guess
    return guess


# ---------------------------------------------------------------- update schemes


def nothing_shared(agents: int) -> Sharing:
    """Every agent has its own policy."""
    return tuple(range(agents))


def everything_shared(agents: int) -> Sharing:
    """All agents play one policy."""
    return (0,) * agents


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
    snap: Snapshot, split: Array, half: Array, sharing: Sharing, sweeps: int = 60
) -> tuple[Array, Array]:
    """Dependent step (Eq. 11) taken literally: respond to the others' *final* policies.

    This is a fixed point, new^i = argmax given new^-i, found by Gauss-Seidel sweeps. A game whose
    policies do not settle takes shorter steps: responses may cycle, and they jump where the weight
    of a state crosses zero. Returns the policies and the regret (what the groups could still gain
    by responding), per game: only where it is practically zero is the fixed point reached.
    """
    new, step = half.copy(), np.ones(snap.objective.shape)
    regret = np.full(snap.objective.shape, np.inf)
    for _ in range(sweeps):
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
    game: Game,
    policies: Array,
    split: Callable[[Array, int], Array],
    on_failed_condition: Literal["keep", "revert", "certify"],
    sharing: Sharing | None = None,
    penalty: Array | None = None,
) -> Iteration:
    """One practical iteration: independent step, condition, frozen dependent step.

    "keep" is the published loop: without the condition it keeps the intermediate policies, with
    it the outcome of the dependent step. "revert" returns to pi_k without the condition, as the
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
