"""`ObsBuffer`: the observations of a batch of simulations after every step, without new arrays."""

from typing import Any

import numpy as np

from fp3o.envs.mamujoco.readings import SOURCES
from fp3o.envs.mamujoco.rewards.rules import Fields
from fp3o.envs.mamujoco.task import BodyTask


class ObsBuffer:
    """Writes the current observations of all agents; the same numbers as `obs_at`, bit for bit."""

    def __init__(self, task: BodyTask, fields: Fields, dtype: Any):
        self._indices, self._fields = task.obs_indices, fields
        first = task.readings(np, fields, dtype)
        self._readings, self._sources, start = first, [], 0
        for name in task.sources:
            source = SOURCES[name][1]
            stop = start + source(np, fields).shape[-1]
            self._sources.append((source, first[:, start:stop]))
            start = stop
        self._standardise = task.variant.profile != "farama"
        rows, self._count = len(first) * len(self._indices), self._indices.shape[1]
        self._squares, self._sums = np.empty((rows, self._count), dtype), np.empty((rows, 1), dtype)
        self._size = np.asarray(self._count, dtype)  # converting a number takes a microsecond

    def __call__(self, out: np.ndarray) -> None:
        """Write the observations `(e, n, f)` of the present fields."""
        for source, readings in self._sources:
            readings[...] = source(np, self._fields)
        # "clip" only because it is faster: all indices are valid.
        self._readings.take(self._indices, axis=-1, out=out, mode="clip")
        if self._standardise:
            self._standardise_rows(out.reshape(-1, self._count))

    def _standardise_rows(self, x: np.ndarray) -> None:
        """`standardise_rows` in place."""
        sums, squares = self._sums, self._squares
        np.add.reduce(x, -1, keepdims=True, out=sums)
        np.divide(sums, self._size, out=sums)
        np.subtract(x, sums, out=x)
        np.multiply(x, x, out=squares)
        np.add.reduce(squares, -1, keepdims=True, out=sums)
        np.divide(sums, self._size, out=sums)
        np.sqrt(sums, out=sums)
        np.divide(x, sums, out=x)
