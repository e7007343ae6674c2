"""The networks of the golden reference: plain NumPy, float64, gradients by hand.

A network belongs to the whole team, but here every agent is evaluated alone: it is handed the
parameters of its groups, and its gradient is added to those groups. Rows are the steps of
sequences, one sequence after another; a recurrent layer steps through a sequence forwards and
backwards. Nothing here uses JAX.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Layer = dict[str, Array]
"""The arrays of one layer, by name."""
Params = dict[tuple[str, int], Layer]
"""(layer, group) -> its arrays."""
Tape = dict[str, Any]
"""What a forward pass keeps for the backward pass."""

EPSILON = 1e-5


@dataclass(frozen=True)
class Network:
    """Who uses which numbers: for every layer, in order, the map from agent to group."""

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


# Layers ------------------------------------------------------------------------------------------


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


# The whole network -------------------------------------------------------------------------------


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


# Policies ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Categorical:
    """One choice per sub-action, among the available ones."""

    out: Array
    action_mask: NDArray[np.bool_]
    widths: tuple[int, ...]

    def parts(self) -> Iterator[tuple[int, slice, Array, Array]]:
        """For every sub-action: its number, its columns, p, and log p (0 where masked)."""
        for d, width in enumerate(self.widths):
            columns = slice(sum(self.widths[:d]), sum(self.widths[:d]) + width)
            action_mask = self.action_mask[:, columns]
            logits = np.where(action_mask, self.out[:, columns], -np.inf)
            logits = logits - logits.max(1, keepdims=True)
            log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
            yield d, columns, np.exp(log_p), np.where(action_mask, log_p, 0.0)

    def log_prob(self, action: NDArray[Any]) -> Array:
        """Log π(a|o), summed over sub-actions."""
        rows = np.arange(len(action))
        return sum(log_p[rows, action[:, d]] for d, _, _, log_p in self.parts())

    def entropy(self) -> Array:
        """-Σ p log p, averaged over sub-actions."""
        return sum(-(p * log_p).sum(1) for _, _, p, log_p in self.parts()) / len(self.widths)

    def kl(self, new: "Categorical") -> Array:
        """Σ p (log p - log q), summed over sub-actions."""
        pairs = zip(self.parts(), new.parts(), strict=True)
        return sum((p * (log_p - log_q)).sum(1) for (_, _, p, log_p), (_, _, _, log_q) in pairs)

    def back(self, action: NDArray[Any], dlog_prob: Array, dentropy: Array) -> tuple[Array, Layer]:
        """∂log π/∂logit_k = [k = a] - p_k and ∂H/∂logit_k = -p_k (log p_k + H)."""
        dout = np.zeros_like(self.out)
        for d, columns, p, log_p in self.parts():
            taken = np.arange(p.shape[1]) == action[:, d, None]
            own = -(p * log_p).sum(1, keepdims=True)
            dout[:, columns] += dlog_prob[:, None] * (taken - p)
            dout[:, columns] -= dentropy[:, None] / len(self.widths) * p * (log_p + own)
        return dout, {}


@dataclass(frozen=True)
class Gaussian:
    """Independent normal dimensions, those that exist; σ depends on no observation."""

    out: Array
    action_mask: NDArray[np.bool_]
    free: Array
    std: str

    @property
    def sigma(self) -> Array:
        """σ = ½ sigmoid(v) or σ = exp(v)."""
        return 0.5 * sigmoid(self.free) if self.std == "sigmoid" else np.exp(self.free)

    def log_prob(self, action: Array) -> Array:
        """Σ -½ z² - log σ - ½ log 2π with z = (a - μ) / σ."""
        z = (action - self.out) / self.sigma
        return (
            self.action_mask * (-0.5 * z**2 - np.log(self.sigma) - 0.5 * np.log(2 * np.pi))
        ).sum(1)

    def entropy(self) -> Array:
        """Σ ½ log(2πe σ²)."""
        return (self.action_mask * 0.5 * np.log(2 * np.pi * np.e * self.sigma**2)).sum(1)

    def kl(self, new: "Gaussian") -> Array:
        """Σ log(σ'/σ) + (σ² + (μ - μ')²) / 2σ'² - ½."""
        spread = (self.sigma**2 + (self.out - new.out) ** 2) / (2 * new.sigma**2)
        return (self.action_mask * (np.log(new.sigma / self.sigma) + spread - 0.5)).sum(1)

    def back(self, action: Array, dlog_prob: Array, dentropy: Array) -> tuple[Array, Layer]:
        """∂log π/∂μ = z/σ, ∂log π/∂σ = (z² - 1)/σ, ∂H/∂σ = 1/σ, and σ' of the free number."""
        z = (action - self.out) / self.sigma
        dlog_prob, dentropy = (
            self.action_mask * dlog_prob[:, None],
            self.action_mask * dentropy[:, None],
        )
        dsigma = ((dlog_prob * (z**2 - 1.0) + dentropy) / self.sigma).sum(0)
        slope = self.sigma * (1.0 - 2.0 * self.sigma) if self.std == "sigmoid" else self.sigma
        return dlog_prob * z / self.sigma, {"log_std": dsigma * slope}


Policy = Categorical | Gaussian


# Pieces of the losses ----------------------------------------------------------------------------


def weights(net: Network, members: list[int], counts: dict[int, Array]) -> dict[int, Array]:
    """Weights of the samples: in a component, heads weigh by their agents, samples are pooled.

    counts / (Σ counts over the agents with the same output layer)
    times (agents with that output layer) / (agents in the component).
    """
    heads, component = net.groups["output"], net.components()
    result = {}
    for i in members:
        same_head = [j for j in members if heads[j] == heads[i]]
        same_component = [j for j in members if component[j] == component[i]]
        pooled = max(sum(counts[j].sum() for j in same_head), 1.0)
        result[i] = counts[i] / pooled * len(same_head) / len(same_component)
    return result


def surrogate(
    kind: str, ratio: Array, others: Array, advantage: Array, clip: float, inner: float | None
) -> tuple[Array, Array, Array]:
    """What is maximised, and its derivatives by log r_i and by log Π r_j.

    clip_own: min(r g A, clip(r) g A);   clip_product: min(r g A, clip(r g) A);
    joint: min(r Π A, clip(r g) A), the only one with a gradient through the others;
    with Π the others' product and g = clip(Π).
    """
    g = others if inner is None else np.clip(others, 1.0 - inner, 1.0 + inner)
    bounded = ratio if kind == "clip_own" else ratio * g
    inside = np.abs(bounded - 1.0) <= clip
    clipped = np.clip(bounded, 1.0 - clip, 1.0 + clip) * advantage
    clipped = clipped * g if kind == "clip_own" else clipped
    plain = ratio * (others if kind == "joint" else g) * advantage
    first = plain <= clipped
    own = np.where(first, plain, np.where(inside, clipped, 0.0))
    free = np.ones_like(inside) if inner is None else np.abs(others - 1.0) <= inner
    through = np.where(first, plain, np.where(inside & free, clipped, 0.0))
    return np.minimum(plain, clipped), own, through if kind == "joint" else np.zeros_like(own)


def huber(error: Array, delta: float) -> tuple[Array, Array]:
    """e²/2 up to |e| = δ, then δ (|e| - δ/2); and its derivative."""
    small = np.abs(error) <= delta
    value = np.where(small, 0.5 * error**2, delta * (np.abs(error) - 0.5 * delta))
    return value, np.where(small, error, delta * np.sign(error))


# The optimiser -----------------------------------------------------------------------------------


@dataclass
class Adam:
    """Moments and step count of one group."""

    mean: Layer
    square: Layer
    count: int = 0


def adam_step(layer: Layer, state: Adam, grads: Layer, rate: float) -> None:
    """P <- p - rate m̂ / (sqrt(v̂) + 1e-5), m̂ = m / (1 - 0.9^k), v̂ = v / (1 - 0.999^k)."""
    state.count += 1
    for name, grad in grads.items():
        state.mean[name] = 0.9 * state.mean[name] + 0.1 * grad
        state.square[name] = 0.999 * state.square[name] + 0.001 * grad**2
        mean = state.mean[name] / (1.0 - 0.9**state.count)
        square = state.square[name] / (1.0 - 0.999**state.count)
        layer[name] = layer[name] - rate * mean / (np.sqrt(square) + 1e-5)


def descend(
    net: Network,
    params: Params,
    states: dict[tuple[str, int], Adam],
    grads: Params,
    agents: list[int],
    hparams: dict[str, float],
    max_norm: float,
) -> float:
    """Clip the gradient of every component, then Adam for the groups of these agents.

    Returns the largest norm. `hparams` are the learning rates of the layers.
    """
    component = net.components()
    norms: dict[int, float] = dict.fromkeys(component, 0.0)
    of_group = {
        (layer, group): component[groups.index(group)]
        for layer, groups in net.groups.items()
        for group in groups
    }
    for key, arrays in grads.items():
        norms[of_group[key]] += sum(float((a**2).sum()) for a in arrays.values())
    norms = {c: float(np.sqrt(square)) for c, square in norms.items()}
    for key, arrays in grads.items():
        layer, group = key
        if group in [net.groups[layer][i] for i in agents]:
            scale = min(1.0, max_norm / (norms[of_group[key]] + 1e-6))
            scaled = {name: scale * a for name, a in arrays.items()}
            adam_step(params[key], states[key], scaled, hparams[layer])
    return max(norms.values())
