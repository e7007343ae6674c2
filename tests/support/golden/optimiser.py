"""Adam and the clipping of gradients in the golden reference."""

from dataclasses import dataclass

import numpy as np

from golden.network import Layer, Network, Params


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


def clip_gradient(net: Network, grads: Params, max_norm: float) -> tuple[Params, float]:
    """Clip the gradient of every component by its norm; also the largest norm."""
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
    scale = {c: min(1.0, max_norm / (norm + 1e-6)) for c, norm in norms.items()}
    clipped = {
        key: {name: scale[of_group[key]] * a for name, a in arrays.items()}
        for key, arrays in grads.items()
    }
    return clipped, max(norms.values())


def descend(
    net: Network,
    params: Params,
    states: dict[tuple[str, int], Adam],
    grads: Params,
    agents: list[int],
    rates: dict[str, float],
) -> None:
    """Adam for the groups of these agents; `rates` are the learning rates of the layers."""
    for key, arrays in grads.items():
        layer, group = key
        if group in [net.groups[layer][i] for i in agents]:
            adam_step(params[key], states[key], arrays, rates[layer])
