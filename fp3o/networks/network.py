"""TODO."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fp3o.errors import nearest
from fp3o.imports import load
from fp3o.networks.layers import (
    Agents,
    GroupedGRU,
    GroupedLinear,
    GroupedNorm,
    _norm,
    linear,
    normalise,
)
from fp3o.sharing.schemes import Sharing
from fp3o.spec import EnvSpec

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}

GAINS = {"relu": math.sqrt(2.0), "tanh": 5.0 / 3.0}
"""Gain of the orthogonal initialisation that fits an activation."""


class TrunkSpec(NamedTuple):
    """The sizes between a network's input and its output layer."""

    hidden: tuple[int, ...]
    gru_size: int
    activation: str
    layer_norm: bool = True


class NetworkSpec(NamedTuple):
    """What a network is asked to be."""

    role: Literal["actor", "critic"]
    spec: EnvSpec
    """The task: what its agents see, do, and how many they are."""
    num_in: int
    """Features of a row: the observation's (a critic's: the state's), then the agent's one-hot if
    the setting `agent_id` is on."""
    num_out: int
    trunk: TrunkSpec
    sharing: Sharing
    """One map from agent to group a layer; as many as `num_layers` says."""
    output_gain: float
    """Gain of the output layer's initialisation."""


class Network(eqx.Module):
    """A network for a whole team; derive one's own from it.

    Every array lies in a `Grouped` layer, whose first axis is the group: so the learner knows whose
    numbers they are. The last layer is an attribute `output` (the setting `head_rate` is its own).
    """

    @classmethod
    def num_layers(cls, body: TrunkSpec, role: str) -> int:
        """How many layers have a map of their own, in an actor or in a critic."""
        return len(body.hidden) + bool(body.gru_size) + 1

    @classmethod
    def make(cls, plan: NetworkSpec, random: np.random.Generator) -> "Network":
        """A fresh network; one of another class if that serves a role better."""
        raise NotImplementedError(f"{cls.__name__} has no `make`")

    def __call__(
        self,
        x: Float[Array, "k r f"],
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Float[Array, "k r o"], Float[Array, "k r h"]]:
        """The outputs, and the memories after every row, of the agents of a stage.

        `x` has mean 0 and variance 1 over the features of a row, unless `layer_norm` is off. Rows
        are the steps of `c` chunks, one chunk after another; `memory` is what each began with
        (`h` is the setting `recurrent`, 0 without memory) and `start` says where an episode begins.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be called")

    def folded(self) -> "Network":
        """The same function for the whole team, made ready for many calls."""
        return self


class MLPGRUNetwork(Network):
    """LayerNorm, then (linear, activation, LayerNorm) x depth, a GRU or none, a linear output."""

    norms: tuple[GroupedNorm | None, ...]
    """One for each layer, or none at all; None: its scale and shift are folded into the layer."""
    hidden: tuple[GroupedLinear, ...]
    gru: GroupedGRU | None
    output: GroupedLinear
    activation: str = eqx.field(static=True)

    @classmethod
    def make(cls, plan: NetworkSpec, random: np.random.Generator) -> "MLPGRUNetwork":
        """The network of the settings `hidden`, `recurrent`, `activation` and `layer_norm`."""
        return make_network(
            plan.num_in, plan.num_out, plan.trunk, plan.sharing, plan.output_gain, random
        )

    def __call__(
        self,
        x: Float[Array, "k r f"],
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Float[Array, "k r o"], Float[Array, "k r h"]]:
        """The outputs and the memories after every step, for inputs that are `normalise`d.

        Without norms, inputs are taken and passed on as they are.
        """
        standard = normalise if self.norms else lambda x: x
        norms = self.norms or (None,) * (len(self.hidden) + 2)
        if x.shape[0] == 1:  # one agent's turn: an axis of size one costs a third of the speed
            x = x[0]
        for norm, layer in zip(norms, self.hidden, strict=False):
            x = standard(ACTIVATIONS[self.activation](layer(x, norm, agents)))
        hidden_states = jnp.zeros((*episode_start.shape, 0), x.dtype)
        if self.gru is not None:
            before = norms[len(self.hidden)]
            hidden_states = self.gru(x, before, hidden_state, episode_start, agents)
            x = standard(hidden_states)
        out = self.output(x, norms[-1], agents)
        return out.reshape(*episode_start.shape, out.shape[-1]), hidden_states

    def folded(self) -> "MLPGRUNetwork":
        """The same function for the whole team, with less to do at every call."""
        norms = self.norms or (None,) * (len(self.hidden) + 2)
        hidden = tuple(layer.folded(norm) for layer, norm in zip(self.hidden, norms, strict=False))
        gru = self.gru
        if gru is not None:
            inner = gru.input.folded(norms[len(hidden)])
            gru = GroupedGRU(input=inner, weight=gru.weight, bias=gru.bias, groups=gru.groups)
        output = self.output.folded(norms[-1])
        return MLPGRUNetwork((None,) * len(self.norms), hidden, gru, output, self.activation)


NETWORKS: dict[str, type[Network]] = {"mlp_gru": MLPGRUNetwork}


def network_class(name: str) -> type[Network]:
    """A network by its name, or one's own by its import path `my_module:MyNetwork`."""
    if name in NETWORKS:
        return NETWORKS[name]
    if ":" not in name:
        raise ValueError(
            f"unknown network {name!r}: {nearest(name, NETWORKS)}; one of your own is named with "
            "its module, my_module:MyNetwork"
        )
    found = load(name)
    if not (isinstance(found, type) and issubclass(found, Network)):
        raise ValueError(f"{name} is no network: derive a class from fp3o.Network")
    return found


def make_network(
    num_in: int,
    num_out: int,
    body: TrunkSpec,
    sharing: Sharing,
    gain: float,
    random: np.random.Generator,
) -> MLPGRUNetwork:
    """Orthogonal weights, zero biases, unit norms; `gain` is that of the output layer.

    Drawn on the host: it happens once, and compiling a QR factorisation takes seconds.
    """
    depth, sizes = len(body.hidden), (num_in, *body.hidden)
    layer = partial(linear, random)
    hidden = tuple(
        layer(sizes[j], sizes[j + 1], sharing[j], GAINS[body.activation]) for j in range(depth)
    )
    norms = [_norm(num_in, sharing[0]), *map(_norm, body.hidden, sharing)]
    gru = None
    if body.gru_size:
        groups, gates = sharing[depth], 3 * body.gru_size
        inner = layer(body.gru_size, gates, groups)
        side = layer(sizes[-1], gates, groups)
        gru = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=groups)
        norms.append(_norm(body.gru_size, groups))
    output = layer(body.gru_size or sizes[-1], num_out, sharing[-1], gain)
    chosen = tuple(norms) if body.layer_norm else ()
    return MLPGRUNetwork(chosen, hidden, gru, output, body.activation)
