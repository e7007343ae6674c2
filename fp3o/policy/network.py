"""The forward pass in NumPy: convolutions, LayerNorms, linear layers, a GRU, for some agents.

Arrays are `(k, r, ...)`: k agents of a team, r rows per agent.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fp3o.networks.numpy_network import gru_step
from fp3o.policy.card import Card
from fp3o.sharing.maps import Groups

SMALL = 2**18
"""Layers up to this size are copied per agent, so that one product serves all agents."""


class _Linear:
    """A grouped linear layer with the groups that some agents use."""

    def __init__(
        self, weights: Mapping[str, np.ndarray], name: str, groups: Groups, agents: Sequence[int]
    ):
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        owner = [groups[agent] for agent in agents]
        rows = list(dict.fromkeys(owner))
        if len(rows) > 1 and weight[0].size * len(agents) <= SMALL:
            rows = owner
        self.weight, self.bias = weight[rows], bias[rows][:, None]
        self._members = [[j for j, own in enumerate(owner) if own == row] for row in rows]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """`(k, r, i)` to `(k, r, o)`."""
        if len(self.weight) in (1, len(x)):
            out = x @ self.weight
            out += self.bias
            return out
        out = np.empty((*x.shape[:2], self.bias.shape[2]), np.float32)
        for members, weight, bias in zip(self._members, self.weight, self.bias, strict=True):
            out[members] = x[members] @ weight + bias
        return out


NORM = ("scale", "shift")


class _LayerNorm:
    """Standardise the features, then scale and shift per agent."""

    def __init__(self, scale: np.ndarray, shift: np.ndarray, epsilon: float):
        self._scale, self._shift = scale[:, None], shift[:, None]
        self._epsilon, size = np.float32(epsilon), scale.shape[1]
        self._mean_weights = np.full((size, 1), 1 / max(size, 1), np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """`(k, r, i)` to the same; means are products, the fastest way for few features."""
        x = x - x @ self._mean_weights
        variance = (x * x) @ self._mean_weights
        variance += self._epsilon
        x /= np.sqrt(variance, out=variance)
        x *= self._scale
        x += self._shift
        return x


class NumPyNetwork:
    """The built-in network of some agents of a policy."""

    def __init__(self, card: Card, weights: Mapping[str, np.ndarray], agents: Sequence[int]):
        layers, self._stack, count = [], card.conv_stack, len(card.conv)
        self._conv = [
            _Linear(weights, f"network.conv.{j}", card.sharing[j], agents) for j in range(count)
        ]
        for j, name in enumerate(card.layers):
            owner = [card.norm_groups(j)[agent] for agent in agents]
            norm: Callable[[np.ndarray], np.ndarray] = _identity
            if card.layer_norm:
                scale, shift = (weights[f"network.norms.{j}.{p}"][owner] for p in NORM)
                norm = _LayerNorm(scale, shift, card.epsilon)
            layers.append((norm, _Linear(weights, name, card.sharing[count + j], agents)))
        self._tanh = card.activation == "tanh"
        self._hidden, self._output, self._gates = layers[: len(card.hidden)], layers[-1], None
        if card.gru_size:
            inner = _Linear(weights, "network.gru", card.sharing[-2], agents)
            self._gates = (*layers[-2], inner)

    def __call__(self, x: np.ndarray, hidden_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features `(k, r, f)`, hidden state `(k, r, h)` -> outputs, next hidden state."""
        x = self._convolved(x) if self._conv else x
        for norm, layer in self._hidden:
            x = self._activated(layer(norm(x)))
        if self._gates is not None:
            norm, layer, inner = self._gates
            x = hidden_state = gru_step(layer(norm(x)), inner(hidden_state), hidden_state)
        norm, layer = self._output
        return layer(norm(x)), hidden_state

    def _convolved(self, x: np.ndarray) -> np.ndarray:
        """The features of the image at the start of every row, then the other entries."""
        stack, rows = self._stack, x.shape[:2]
        others = x[..., stack.image_size :]
        x = x[..., : stack.image_size].reshape(*rows, *stack.image)
        for layer, (_, kernel, stride) in zip(self._conv, stack.layers, strict=True):
            views = sliding_window_view(x, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
            # (k, r, y, x, channel, row, column): a patch is ordered by row, column, channel.
            patches = np.moveaxis(views, 4, -1)
            shape = patches.shape[:4]
            patches = patches.reshape(rows[0], math.prod(shape[1:]), math.prod(patches.shape[4:]))
            x = self._activated(layer(patches)).reshape(*shape, -1)
        return np.concatenate([x.reshape(*rows, math.prod(x.shape[2:])), others], axis=-1)

    def _activated(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x, out=x) if self._tanh else np.maximum(x, np.float32(0), out=x)


def _identity(x: np.ndarray) -> np.ndarray:
    return x
