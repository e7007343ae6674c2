"""The forward pass in NumPy: LayerNorms, grouped linear layers and a GRU, for some agents.

Arrays are `(k, r, ...)`: k agents of a team, r rows of each.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fp3o.policy.card import Card
from fp3o.sharing.schemes import Groups

SMALL = 2**18
"""Up to so many numbers, a layer is copied for each agent of a group: one product, not many."""


class Linear:
    """A linear layer with the rows some agents use."""

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


class LayerNorm:
    """Mean 0 and variance 1 over the features, then a scale and a shift for each agent."""

    def __init__(self, scale: np.ndarray, shift: np.ndarray, epsilon: float):
        self._scale, self._shift = scale[:, None], shift[:, None]
        self._epsilon, size = np.float32(epsilon), scale.shape[1]
        self._share = np.full((size, 1), 1 / max(size, 1), np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """`(k, r, i)` to the same; a product is the fastest way to a mean of few numbers."""
        x = x - x @ self._share
        variance = (x * x) @ self._share
        variance += self._epsilon
        x /= np.sqrt(variance, out=variance)
        x *= self._scale
        x += self._shift
        return x


class Network:
    """The numbers some agents need, and the way from features to outputs."""

    def __init__(self, card: Card, weights: Mapping[str, np.ndarray], agents: Sequence[int]):
        layers = []
        for j, name in enumerate(card.layers):
            owner = [card.sharing[max(j - 1, 0)][agent] for agent in agents]
            norm: Callable[[np.ndarray], np.ndarray] = _as_it_is
            if card.layer_norm:
                scale, shift = (weights[f"network.norms.{j}.{p}"][owner] for p in NORM)
                norm = LayerNorm(scale, shift, card.epsilon)
            layers.append((norm, Linear(weights, name, card.sharing[j], agents)))
        self._tanh = card.activation == "tanh"
        self._hidden, self._output, self._gates = layers[: len(card.hidden)], layers[-1], None
        if card.gru_size:
            inner = Linear(weights, "network.recurrent", card.sharing[-2], agents)
            self._gates = (*layers[-2], inner)

    def __call__(self, x: np.ndarray, hidden_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features `(k, r, f)` and memory `(k, r, h)` to outputs and the memory after the step."""
        for norm, layer in self._hidden:
            x = layer(norm(x))
            x = np.tanh(x, out=x) if self._tanh else np.maximum(x, np.float32(0), out=x)
        if self._gates is not None:
            norm, layer, inner = self._gates
            x = hidden_state = _gru(layer(norm(x)), inner(hidden_state), hidden_state)
        norm, layer = self._output
        return layer(norm(x)), hidden_state


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Never overflows."""
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)


def _gru(x: np.ndarray, h: np.ndarray, hidden_state: np.ndarray) -> np.ndarray:
    """Gates r, z, n; the reset gate acts on the hidden-side affine."""
    size = hidden_state.shape[-1]
    gates = sigmoid(x[..., : 2 * size] + h[..., : 2 * size])
    new = np.tanh(x[..., 2 * size :] + gates[..., :size] * h[..., 2 * size :])
    return new + gates[..., size:] * (hidden_state - new)
