"""From the library's learner to the dicts of the golden reference."""

from collections.abc import Callable
from functools import cache
from typing import Any

import golden.data
import jax
import numpy as np
from golden.data import Settings
from golden.network import Network, Params
from golden.optimiser import Adam

from fp3o.learning.setup import Learner, Setup
from fp3o.networks.network import MLPGRUNetwork


def params_of(network: MLPGRUNetwork, log_std: Any = None) -> Params:
    """Every array of every layer and group, in float64."""
    norms, depth = [norm for norm in network.norms if norm is not None], len(network.hidden)
    assert len(norms) == len(network.norms), "the norms are folded into the layers"
    layers = {"input": {"scale": norms[0].scale, "shift": norms[0].shift}}
    for j, linear in enumerate(network.hidden):
        norm = {"scale": norms[j + 1].scale, "shift": norms[j + 1].shift}
        layers[f"hidden{j}"] = {"weight": linear.weight, "bias": linear.bias} | norm
    if (cell := network.gru) is not None:
        layers["gru"] = {
            "in_weight": cell.input.weight, "in_bias": cell.input.bias, "weight": cell.weight,
            "bias": cell.bias, "scale": norms[depth + 1].scale, "shift": norms[depth + 1].shift,
        }  # fmt: skip
    layers["output"] = {"weight": network.output.weight, "bias": network.output.bias}
    if log_std is not None:
        layers["output"]["log_std"] = log_std.value
    return {
        (layer, g): {name: np.asarray(a, np.float64)[g] for name, a in arrays.items()}
        for layer, arrays in layers.items()
        for g in range(len(next(iter(arrays.values()))))
    }


@cache
def unpacker(setup: Setup, which: str) -> Callable[[Any], Any]:
    """From packed parameters to a network."""
    return jax.jit(setup.actor if which == "actor" else setup.critic)


def actor_params(setup: Setup, params: Any) -> Params:
    """The actor's arrays."""
    actor = unpacker(setup, "actor")(params)
    return params_of(actor.network, actor.log_std)


def critic_params(setup: Setup, params: Any) -> Params:
    """The critic's arrays."""
    return params_of(unpacker(setup, "critic")(params).network)


def adam_of(setup: Setup, which: str, states: Any, net: Network) -> dict[tuple[str, int], Adam]:
    """Moments and counts of every layer and group."""
    layout = setup.actor_layout if which == "actor" else setup.critic_layout
    unpack = actor_params if which == "actor" else critic_params
    mean = unpack(setup, tuple(state.mu for state in states))
    square = unpack(setup, tuple(state.nu for state in states))
    counts = {g: np.asarray(s.count) for g, s in zip(layout.maps, states, strict=True)}
    return {
        key: Adam(mean[key], square[key], int(counts[net.groups[key[0]]][key[1]])) for key in mean
    }


def learner_of(setup: Setup, s: Settings, learner: Learner) -> golden.data.Learner:
    """The reference's copy of a learner."""
    return golden.data.Learner(
        actor=actor_params(setup, learner.actor),
        critic=critic_params(setup, learner.critic),
        actor_adam=adam_of(setup, "actor", learner.actor_adam, s.actor),
        critic_adam=adam_of(setup, "critic", learner.critic_adam, s.critic),
        norm=[[float(x[g]) for x in learner.value_norm] for g in range(setup.num_critics)],
    )
