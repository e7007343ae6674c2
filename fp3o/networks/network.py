"""Policy and value networks: the base class, the built-in MLP with GRU, and networks by name."""

import math
from functools import partial
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fp3o.errors import SettingError, nearest
from fp3o.imports import load
from fp3o.networks.backend import on_gpu
from fp3o.networks.conv import apply_convolutions
from fp3o.networks.conv_layers import ConvStack
from fp3o.networks.gru import GroupedGRU
from fp3o.networks.layers import (
    MAX_KERNEL_WIDTH,
    Agents,
    GroupedLinear,
    GroupedNorm,
    layer_norm,
    linear,
    pad_features,
    rounded_like,
)
from fp3o.networks.mlp import MLPStyle, apply_layers
from fp3o.sharing.maps import Sharing
from fp3o.spec import EnvSpec

GAINS = {"relu": math.sqrt(2.0), "tanh": 5.0 / 3.0}
"""Gain of the orthogonal initialisation per activation."""

Scope = Literal["agent", "team", "graph"]
"""Whose inputs an output depends on: the agent's, those of all living agents, or those of its
living neighbours, on the graph `EnvSpec.adjacency`."""

Outputs = tuple[Float[Array, "k r o"], Float[Array, "k r h"]]
"""Outputs, and hidden states after every sample."""


Role = Literal["actor", "critic"]
"""What a network is for."""


class TrunkSpec(NamedTuple):
    """Sizes of the layers between a network's input and its output layer."""

    hidden: tuple[int, ...]
    gru_size: int
    activation: str
    layer_norm: bool = True
    conv: ConvStack = ConvStack()
    """Convolutions of the image that the input begins with, before the hidden layers."""


class NetworkSpec(NamedTuple):
    """Specification from which a network is built: role, sizes, sharing."""

    role: Role
    env_spec: EnvSpec
    """Number of agents, observation and action sizes of the task."""
    num_in: int
    """Number of input features: those of the observation (critic: of the state, if its scope is the
    agent), then the agent's one-hot index if `agent_id` is set."""
    num_out: int
    trunk: TrunkSpec
    sharing: Sharing
    """One map from agent to group per layer; `num_layers` says how many."""
    output_gain: float
    """Gain of the output layer's initialisation."""


class Network(eqx.Module):
    """A network for a whole team; base class of custom networks.

    Every array belongs to a `Grouped` layer, whose first axis is the group: from this the learner
    knows which agents share it. The last layer is an attribute `output` (`head_lr_factor` applies
    to it).
    """

    convolves: ClassVar[bool] = False
    """Whether the network applies the convolutions of its `TrunkSpec`. If not, it has none, and
    images are ordinary features."""

    scope: ClassVar[Scope] = "agent"
    """Whose inputs an output depends on; only critics may have another scope than the agent."""

    @classmethod
    def num_layers(cls, trunk: TrunkSpec, role: str) -> int:
        """Number of layers that have a sharing map, in an actor or in a critic."""
        return len(trunk.conv.layers) + len(trunk.hidden) + bool(trunk.gru_size) + 1

    @classmethod
    def layer_weights(cls, trunk: TrunkSpec, num_in: int, num_out: int) -> tuple[int, ...]:
        """Number of weights per group, for every layer with a sharing map; empty: unknown."""
        return ()

    @classmethod
    def make(cls, spec: NetworkSpec, random: np.random.Generator) -> "Network":
        """Initialise a network; it may be of another class, for example for the critic."""
        raise NotImplementedError(f"{cls.__name__} does not implement `make`")

    def __call__(
        self,
        x: Float[Array, "k r f"],
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> Outputs:
        """Outputs, and hidden states after every sample, of the agents of a stage.

        `x` has mean 0 and variance 1 over the features of a sample, unless `layer_norm` is off. The
        samples are the steps of `c` sequences, one sequence after another. `hidden_state` is the
        state at the start of each sequence (`h` is the setting `gru_size`, 0 if the network is not
        recurrent), and `episode_start` marks the first step of an episode.

        If the scope is the team or the graph, `x` has the inputs of all agents, `(n, r, f + n)`,
        whatever the agents of the stage. The last `n` numbers of a row are 1 for the agents that
        the output of this row's agent may depend on, else 0. There is no hidden state, `h` is 0.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement `__call__`")

    def folded(self) -> "Network":
        """The same function for the whole team, faster for many small calls."""
        return self


class MLPGRUNetwork(Network):
    """LayerNorm, (linear, activation, LayerNorm) x depth, optionally a GRU, a linear output.

    If the input begins with an image, convolutions come first, and the first LayerNorm follows
    them.
    """

    convolves = True

    norms: tuple[GroupedNorm | None, ...]
    """One per layer, or none at all; None: scale and shift are folded into the layer."""
    hidden: tuple[GroupedLinear, ...]
    gru: GroupedGRU | None
    output: GroupedLinear
    activation: str = eqx.field(static=True)
    conv: tuple[GroupedLinear, ...] = ()
    conv_stack: ConvStack = eqx.field(static=True, default=ConvStack())

    @classmethod
    def layer_weights(cls, trunk: TrunkSpec, num_in: int, num_out: int) -> tuple[int, ...]:
        """Number of weights per group, for every layer with a sharing map."""
        sizes, gru = (trunk.conv.num_features(num_in), *trunk.hidden), trunk.gru_size
        layers = [before * after for before, after in (*trunk.conv.matrices, *pairwise(sizes))]
        layers += [3 * gru * (sizes[-1] + gru)] if gru else []
        return (*layers, (gru or sizes[-1]) * num_out)

    @classmethod
    def make(cls, spec: NetworkSpec, random: np.random.Generator) -> "MLPGRUNetwork":
        """Orthogonal weights, zero biases, unit norms.

        Sampled on the host: it happens once, and compiling a QR factorisation takes seconds.
        """
        trunk, stack, count = spec.trunk, spec.trunk.conv, len(spec.trunk.conv.layers)
        first, sharing = spec.sharing[max(count - 1, 0)], spec.sharing[count:]
        depth, sizes = len(trunk.hidden), (stack.num_features(spec.num_in), *trunk.hidden)
        layer = partial(linear, random)
        gain = GAINS[trunk.activation]
        pairs = zip(stack.matrices, spec.sharing, strict=False)
        conv = tuple(layer(*shape, groups, gain) for shape, groups in pairs)
        hidden = tuple(layer(sizes[j], sizes[j + 1], sharing[j], gain) for j in range(depth))
        norms = [layer_norm(sizes[0], first), *map(layer_norm, trunk.hidden, sharing)]
        gru = None
        if trunk.gru_size:
            groups, gates = sharing[depth], 3 * trunk.gru_size
            inner = layer(trunk.gru_size, gates, groups)
            side = layer(sizes[-1], gates, groups)
            gru = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=groups)
            norms.append(layer_norm(trunk.gru_size, groups))
        output = layer(trunk.gru_size or sizes[-1], spec.num_out, sharing[-1], spec.output_gain)
        chosen = tuple(norms) if trunk.layer_norm else ()
        return cls(chosen, hidden, gru, output, trunk.activation, conv, stack)

    def __call__(
        self, x: Array, hidden_state: Array, episode_start: Array, agents: Agents = None
    ) -> Outputs:
        """Outputs and hidden states after every step, for inputs that are `normalise`d.

        Without norms, inputs are not normalised.
        """
        norms = self.norms or (None,) * (len(self.hidden) + 2)
        style = MLPStyle(self.activation, norm=bool(self.norms))
        if not on_gpu() and (x.shape[0] == 1 or all(h.weight.shape[0] == 1 for h in self.hidden)):
            # Samples of all agents as one axis: with two, XLA's CPU code computes `x` twice.
            x = x.reshape(-1, x.shape[-1])
        if self.conv:
            x, style = self._convolved(x, style, agents)
        hidden = [*zip(norms, self.hidden, strict=False)]
        hidden_states = jnp.zeros((*episode_start.shape, 0), hidden_state.dtype)
        if self.gru is None:
            out = apply_layers(x, [*hidden, (norms[len(hidden)], self.output)], style, agents)
        else:
            x = apply_layers(x, hidden, style._replace(activate_output=True), agents)
            hidden_states = self.gru(x, norms[len(hidden)], hidden_state, episode_start, agents)
            output, style = [(norms[-1], self.output)], style._replace(normalise_input=True)
            out = apply_layers(hidden_states, output, style, agents)
        return out.reshape(*episode_start.shape, out.shape[-1]), hidden_states

    def _convolved(self, x: Array, style: MLPStyle, agents: Agents) -> tuple[Array, MLPStyle]:
        """Inputs of the hidden layers, and whether those have to normalise them."""
        x = apply_convolutions(x, self.conv, self.conv_stack, self.activation, agents)
        # Kernels have gradients of wide inputs, and of those that they normalise themselves.
        if x.shape[-1] <= MAX_KERNEL_WIDTH:
            return x, style._replace(normalise_input=True)
        normalised = style.normalise(x.astype(jnp.promote_types(x.dtype, jnp.float32)))
        return pad_features(rounded_like(normalised, x.dtype)), style

    def folded(self) -> "MLPGRUNetwork":
        """The same function for the whole team with the norms folded into the layers."""
        norms = self.norms or (None,) * (len(self.hidden) + 2)
        hidden = tuple(layer.folded(norm) for layer, norm in zip(self.hidden, norms, strict=False))
        gru = self.gru
        if gru is not None:
            inner = gru.input.folded(norms[len(hidden)])
            gru = GroupedGRU(input=inner, weight=gru.weight, bias=gru.bias, groups=gru.groups)
        output = self.output.folded(norms[-1])
        conv = tuple(layer.folded(None) for layer in self.conv)
        norms = (None,) * len(self.norms)
        return MLPGRUNetwork(norms, hidden, gru, output, self.activation, conv, self.conv_stack)


NETWORKS: dict[str, type[Network]] = {"mlp_gru": MLPGRUNetwork}
"""Built-in networks by name."""


def network_class(name: str) -> type[Network]:
    """Network class by name, or a custom one by import path, `my_module:MyNetwork`."""
    if name in NETWORKS:
        return NETWORKS[name]
    if ":" not in name:
        raise SettingError(
            f"unknown network {name!r}: {nearest(name, NETWORKS)}; a custom one is named with its "
            "module, my_module:MyNetwork"
        )
    loaded = load(name)
    if not (isinstance(loaded, type) and issubclass(loaded, Network)):
        raise SettingError(f"{name} is not a network: derive a class from fp3o.Network")
    return loaded
