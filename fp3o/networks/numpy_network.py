"""The forward pass in NumPy, into buffers: for few rows faster than a compiled call.

Scales and shifts of the norms are folded into the layers (see `layers`).
"""

import math
from collections.abc import Sequence

import numpy as np

OBS_LIMIT = 10.0
"""Largest magnitude of an observation after the running normaliser."""

FLAT_STD, MIN_STD = 1e-5, 1e-8
"""A feature whose standard deviation is at most the first times its mean plus the second has not
varied, apart from rounding; the running normaliser does not scale it."""


def obs_scale(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Factor of every feature in the running normaliser, as in `obs_norm.ObsNorm`."""
    varies = std > np.float32(FLAT_STD) * np.abs(mean) + np.float32(MIN_STD)
    return np.float32(1) / np.where(varies, std, np.float32(1))


class BufferedNetwork:
    """The built-in network of a team: rows `(*s, e, n)` of seeds, environments and agents.

    Calls return buffers, which the next call overwrites.
    """

    def __init__(
        self, rows: tuple[int, ...], activation: str, recurrent: bool, epsilon: float | None
    ):
        """`epsilon` is added to variances by LayerNorm; None: the network has no norms."""
        self._rows, self._epsilon, self._recurrent = rows, epsilon, recurrent
        self._tanh = activation == "tanh"
        self._layers: list[_Layer] = []

    def load(self, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        """Set weights `(*s, g, i, o)` and biases `(*s, g, o)` of every layer.

        There is one group, or one per agent. The layers are the hidden ones, those of the inputs
        and of the hidden state of the GRU if there is one, and the output.
        """
        if not self._layers:
            self._make_layers([weight for weight, _ in layers])
        for layer, (weight, bias) in zip(self._layers, layers, strict=True):
            layer.load(weight, bias)

    def _make_layers(self, weights: Sequence[np.ndarray]) -> None:
        norms = [self._epsilon] * len(weights)
        if self._recurrent:
            norms[-2] = None  # the hidden state is not normalised
        self._layers = [
            _Layer(self._rows, x.shape[-2:], x.dtype, norm)
            for x, norm in zip(weights, norms, strict=True)
        ]

    def __call__(self, x: np.ndarray, hidden_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features `(r, f)` and hidden states `(r, h)` -> outputs, next hidden states."""
        *hidden, output = self._layers
        if self._recurrent:
            *hidden, gates, inner = hidden
        for layer in hidden:
            x = layer(x)
            if self._tanh:
                np.tanh(x, out=x)
            else:
                np.maximum(x, layer.zeros, out=x)
        if self._recurrent:
            x = hidden_state = gru_step(gates(x), inner(hidden_state), hidden_state)  # pyright: ignore
        return output(x), hidden_state


class _Layer:
    """Standardise the rows, unless `epsilon` is None, then apply the linear map of their group."""

    def __init__(
        self, rows: tuple[int, ...], shape: tuple[int, int], dtype: np.dtype, epsilon: float | None
    ):
        (num_in, num_out), count = shape, math.prod(rows)
        self._rows = rows
        self._inputs, self._squares = np.empty((2, count, num_in), dtype)
        # Bias and zeros per row: operations without broadcasting take less than half the time.
        self._outputs, self._bias, self.zeros = np.zeros((3, count, num_out), dtype)
        self._mean_weights = np.full(num_in, 1 / max(num_in, 1), dtype)
        self._means = np.empty(count, dtype)
        self._column = self._means[:, None]
        self._epsilon = None if epsilon is None else np.asarray(epsilon, dtype)

    def load(self, weight: np.ndarray, bias: np.ndarray) -> None:
        """Set weights `(*s, g, i, o)` and biases `(*s, g, o)` of the groups."""
        self._bias.reshape(*self._rows, -1)[...] = bias[..., None, :, :]
        view = self._by_agent
        if weight.shape[-3] == 1:
            view, weight = self._by_seed, weight[..., 0, :, :]
        self._product = view(self._inputs), np.ascontiguousarray(weight), view(self._outputs)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """`(r, i)` to `(r, o)`."""
        if self._epsilon is None:
            self._inputs[...] = x
        else:
            self._standardise(x, self._epsilon)
        np.matmul(*self._product)
        return np.add(self._outputs, self._bias, out=self._outputs)

    def _standardise(self, x: np.ndarray, epsilon: np.ndarray) -> None:
        means, centred, squares = self._means, self._inputs, self._squares
        np.dot(x, self._mean_weights, out=means)
        np.subtract(x, self._column, out=centred)
        np.multiply(centred, centred, out=squares)
        np.dot(squares, self._mean_weights, out=means)
        np.add(means, epsilon, out=means)
        np.sqrt(means, out=means)
        np.reciprocal(means, out=means)
        np.multiply(centred, self._column, out=centred)

    def _by_seed(self, x: np.ndarray) -> np.ndarray:
        """Rows `(r, i)` as `(*s, e n, i)`."""
        *seeds, envs, agents = self._rows
        return x.reshape(*seeds, envs * agents, x.shape[1])

    def _by_agent(self, x: np.ndarray) -> np.ndarray:
        """Rows `(r, i)` as `(*s, n, e, i)`."""
        return np.swapaxes(x.reshape(*self._rows, x.shape[1]), -3, -2)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function, without overflow."""
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)


def gru_step(x: np.ndarray, h: np.ndarray, hidden_state: np.ndarray) -> np.ndarray:
    """Next hidden state from the gates' affine maps of inputs and hidden state.

    Gates r, z, n; the reset gate acts on the affine map of the hidden state.
    """
    size = hidden_state.shape[-1]
    gates = sigmoid(x[..., : 2 * size] + h[..., : 2 * size])
    new = np.tanh(x[..., 2 * size :] + gates[..., :size] * h[..., 2 * size :])
    return new + gates[..., size:] * (hidden_state - new)
