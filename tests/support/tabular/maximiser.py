"""The exact maximiser of a linear objective with a penalty on the divergence."""

from collections.abc import Callable

import numpy as np

from tabular.games import Array


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
    below, above, guess = function(low), function(high), low
    for _ in range(60):
        middle = (low + high) / 2
        at_middle = function(middle)
        root = np.sqrt(np.maximum(at_middle**2 - below * above, 1e-300))
        previous, guess = guess, np.clip(middle - (middle - low) * at_middle / root, low, high)
        at_guess = function(guess)
        for point, height in ((middle, at_middle), (guess, at_guess)):
            left = (height <= 0) & (point >= low)
            right = (height >= 0) & (point <= high)
            low, below = np.where(left, point, low), np.where(left, height, below)
            high, above = np.where(right, point, high), np.where(right, height, above)
        if np.all(np.minimum(high - low, abs(guess - previous)) <= tolerance * (1 + abs(guess))):
            break
    return guess
