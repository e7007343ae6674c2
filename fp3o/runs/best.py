"""TODO."""

from typing import NamedTuple

import numpy as np


class Best(NamedTuple):
    """The best policy of every seed so far, by its evaluations in training."""

    score: np.ndarray
    step: np.ndarray
    rows: tuple[np.ndarray, ...]
    """Actor rows with an axis of seeds."""
