"""The best policy per seed so far, by the evaluations during training."""

import math
from typing import Any, NamedTuple

import numpy as np

from fp3o.runs.seed_axis import by_seed


class BestPolicies(NamedTuple):
    """Score, step and actor parameters of the best policy per seed."""

    score: np.ndarray
    """Mean return of its evaluation; -inf before the first one."""
    step: np.ndarray
    actor: tuple[np.ndarray, ...]
    """Packed actor parameters with a leading axis of seeds."""

    @classmethod
    def initial(cls, actor: Any, seeds: int) -> "BestPolicies":
        """Policies that have not been evaluated yet."""
        score, step = np.full(seeds, -math.inf), np.zeros(seeds, np.int64)
        return cls(score, step, tuple(by_seed(x, seeds) for x in actor))

    def updated(self, score: np.ndarray, step: int, actor: Any) -> "BestPolicies":
        """Replace the policies of the seeds whose score is higher; NaN is never higher."""
        better = score > self.score
        rows = [
            np.where(better[:, None, None], by_seed(new, len(better)), old)
            for new, old in zip(actor, self.actor, strict=True)
        ]
        return BestPolicies(
            np.where(better, score, self.score).astype(np.float64),
            np.where(better, step, self.step),
            tuple(rows),
        )
