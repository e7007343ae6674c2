"""Networks of the golden reference: plain NumPy, float64, gradients by hand.

A network belongs to the whole team, but here every agent is evaluated alone: it is handed the
parameters of its groups, and its gradient is added to those groups. Rows are the steps of
sequences, one sequence after another; a recurrent layer steps through a sequence forwards and
backwards.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Layer = dict[str, Array]
"""The arrays of one layer, by name."""
Params = dict[tuple[str, int], Layer]
"""(layer, group) -> its arrays."""
Tape = dict[str, Any]
"""Intermediate results of a forward pass, for the backward pass."""

EPSILON = 1e-5


@dataclass(frozen=True)
class Network:
    """Layers of a network in order, each with its map from agent to group."""

    groups: dict[str, tuple[int, ...]]
    activation: str

    @property
    def hidden(self) -> list[str]:
        """The names of the hidden layers."""
        return [name for name in self.groups if name.startswith("hidden")]

    def own(self, params: Params, agent: int) -> dict[str, Layer]:
        """The layers of one agent."""
        return {name: params[name, groups[agent]] for name, groups in self.groups.items()}

    def components(self) -> list[int]:
        """Agent -> component: agents with a common group in any layer, or a chain of them."""
        label = list(range(len(self.groups["output"])))
        for _ in label:
            for groups in self.groups.values():
                for i, group in enumerate(groups):
                    for j, other in enumerate(groups):
                        if group == other:
                            label[i] = label[j] = min(label[i], label[j])
        return label


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + np.exp(-x))


def normalised(x: Array) -> Array:
    """(x - mean) / sqrt(var + ε) over the features."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)


def layer_norm(layer: Layer, x: Array) -> tuple[Array, Tape]:
    """Y = scale ∘ (x - mean) / sqrt(var + ε) + shift."""
    hat = normalised(x)
    inverse = 1.0 / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
    return layer["scale"] * hat + layer["shift"], {"hat": hat, "inverse": inverse}


def layer_norm_back(layer: Layer, tape: Tape, dy: Array) -> tuple[Array, Layer]:
    """Give dx = (dx̂ - mean(dx̂) - x̂ mean(dx̂ x̂)) / std with dx̂ = scale ∘ dy."""
    hat = tape["hat"]
    grads = {"scale": (dy * hat).sum(0), "shift": dy.sum(0)}
    dhat = dy * layer["scale"]
    mean, slope = dhat.mean(-1, keepdims=True), (dhat * hat).mean(-1, keepdims=True)
    return (dhat - mean - hat * slope) * tape["inverse"], grads


def dense(layer: Layer, x: Array, activation: str) -> tuple[Array, Tape]:
    """LayerNorm(f(W x + b)): the activation comes before the norm."""
    before = x @ layer["weight"] + layer["bias"]
    active = np.maximum(before, 0.0) if activation == "relu" else np.tanh(before)
    y, norm = layer_norm(layer, active)
    return y, {"x": x, "active": active, "norm": norm}


def dense_back(layer: Layer, tape: Tape, dy: Array, activation: str) -> tuple[Array, Layer]:
    """Back through the norm, the activation and the product."""
    active = tape["active"]
    dactive, grads = layer_norm_back(layer, tape["norm"], dy)
    slope = (active > 0.0).astype(float) if activation == "relu" else 1.0 - active**2
    dbefore = dactive * slope
    grads |= {"weight": tape["x"].T @ dbefore, "bias": dbefore.sum(0)}
    return dbefore @ layer["weight"].T, grads


def gru(layer: Layer, x: Array, hidden_state: Array, episode_start: Array) -> tuple[Array, Tape]:
    """Hidden states after every step; reset to 0 before a step that starts an episode.

    r = σ(W_r x + U_r h + ...), z = σ(W_z x + U_z h + ...), n = tanh(W_n x + r ∘ (U_n h + c_n)),
    h' = (1 - z) ∘ n + z ∘ h.
    """
    sequences, size = hidden_state.shape
    length = len(x) // sequences
    out, steps = np.zeros((len(x), size)), []
    h = hidden_state
    for t in range(length):
        rows = np.arange(sequences) * length + t
        h = np.where(episode_start[rows, None], 0.0, h)
        xr, xz, xn = np.split(x[rows] @ layer["in_weight"] + layer["in_bias"], 3, axis=1)
        hr, hz, hn = np.split(h @ layer["weight"] + layer["bias"], 3, axis=1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * hn)
        steps.append({"rows": rows, "x": x[rows], "h": h, "r": r, "z": z, "n": n, "hn": hn})
        h = (1.0 - z) * n + z * h
        out[rows] = h
    return out, {"steps": steps, "start": episode_start}


def gru_back(layer: Layer, tape: Tape, dout: Array) -> tuple[Array, Layer]:
    """Back through the steps of the sequences; a reset stops the gradient."""
    names = ("in_weight", "in_bias", "weight", "bias")
    grads = {name: np.zeros_like(layer[name]) for name in names}
    dx = np.zeros((len(dout), layer["in_weight"].shape[0]))
    dh_next = np.zeros_like(tape["steps"][0]["h"])
    for step in reversed(tape["steps"]):
        rows, x, h, r, z, n = (step[name] for name in ("rows", "x", "h", "r", "z", "n"))
        dh = dout[rows] + dh_next
        dn = dh * (1.0 - z) * (1.0 - n**2)
        dr = dn * step["hn"] * r * (1.0 - r)
        dz = dh * (h - n) * z * (1.0 - z)
        from_x, from_h = np.hstack([dr, dz, dn]), np.hstack([dr, dz, dn * r])
        grads["in_weight"] += x.T @ from_x
        grads["in_bias"] += from_x.sum(0)
        grads["weight"] += h.T @ from_h
        grads["bias"] += from_h.sum(0)
        dx[rows] = from_x @ layer["in_weight"].T
        dh_next = dh * z + from_h @ layer["weight"].T
        dh_next = np.where(tape["start"][rows, None], 0.0, dh_next)
    return dx, grads


def forward(
    net: Network, own: dict[str, Layer], x: Array, hidden_state: Array, episode_start: Array
) -> tuple[Array, Array, Tape]:
    """Outputs and hidden states of one agent at every sample."""
    tape: Tape = {}
    x, tape["input"] = layer_norm(own["input"], x)
    for name in net.hidden:
        x, tape[name] = dense(own[name], x, net.activation)
    hidden_states = np.zeros((len(x), 0))
    if "gru" in own:
        hidden_states, tape["gru"] = gru(own["gru"], x, hidden_state, episode_start)
        x, tape["gru_norm"] = layer_norm(own["gru"], hidden_states)
    tape["output"] = x
    return x @ own["output"]["weight"] + own["output"]["bias"], hidden_states, tape


def backward(net: Network, own: dict[str, Layer], tape: Tape, dout: Array) -> dict[str, Layer]:
    """The gradient of every layer of one agent."""
    grads = {"output": {"weight": tape["output"].T @ dout, "bias": dout.sum(0)}}
    dx = dout @ own["output"]["weight"].T
    if "gru" in own:
        dhidden, norm_grads = layer_norm_back(own["gru"], tape["gru_norm"], dx)
        dx, gru_grads = gru_back(own["gru"], tape["gru"], dhidden)
        grads["gru"] = gru_grads | norm_grads
    for name in reversed(net.hidden):
        dx, grads[name] = dense_back(own[name], tape[name], dx, net.activation)
    _, grads["input"] = layer_norm_back(own["input"], tape["input"], dx)
    return grads


def zeros_like(params: Params) -> Params:
    """A gradient of nothing, in the shape of the parameters."""
    return {key: {name: np.zeros_like(a) for name, a in layer.items()}
            for key, layer in params.items()}  # fmt: skip


def add_gradient(total: Params, net: Network, agent: int, grads: dict[str, Layer]) -> None:
    """Add one agent's gradient to the groups it belongs to."""
    for layer, arrays in grads.items():
        for name, array in arrays.items():
            total[layer, net.groups[layer][agent]][name] += array
