"""Base of critics that look across agents.

They encode the features of every agent, combine an agent's encoding with those of others, and
predict its value. An agent's critic has the parameters of this agent's groups in all layers, also
where it encodes others, so that no gradient crosses critics without shared parameters. With one
critic for all agents, every agent is encoded once; with several, once by each of them.
"""

from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fp3o.networks.layers import (
    Agents,
    GroupedLinear,
    GroupedNorm,
    grouped_product,
    layer_norm,
    linear,
)
from fp3o.networks.mlp import MLPStyle
from fp3o.networks.network import GAINS, Network, NetworkSpec, Outputs, TrunkSpec
from fp3o.sharing.maps import Groups, Sharing

Encodings = Float[Array, "g n r *d"]
"""Every agent as encoded by each critic; `g` is 1 if there is only one critic."""


class NormedLinear(eqx.Module):
    """A linear layer with the scale and shift of the LayerNorm before it, if there is one."""

    norm: GroupedNorm | None
    linear: GroupedLinear

    def __call__(self, x: Float[Array, "g *r i"], agents: Agents) -> Float[Array, "g2 *r o"]:
        """The layer of each critic on its rows; all critics have the same rows if `g` is 1."""
        weight, bias = self.linear.fold_norm(self.norm, agents)
        rows = x.reshape(len(x), -1, x.shape[-1])
        if len(rows) < len(weight):
            rows = jnp.broadcast_to(rows, (len(weight), *rows.shape[1:]))
        out = grouped_product(rows, weight, bias)
        return out.reshape(len(out), *x.shape[1:-1], out.shape[-1])


class TeamCritic(Network):
    """An encoder of all agents, layers that combine the encodings, a linear output."""

    encoder: tuple[NormedLinear, ...]
    output: NormedLinear
    style: MLPStyle = eqx.field(static=True)

    combining_weights: ClassVar[tuple[int, ...]]
    """Weights between encoder and output, per sharing map, in units of the squared width."""

    @classmethod
    def num_layers(cls, trunk: TrunkSpec, role: str) -> int:
        """Hidden layers of the encoder, layers that combine encodings, output."""
        return len(trunk.hidden) + len(cls.combining_weights) + 1

    @classmethod
    def layer_weights(cls, trunk: TrunkSpec, num_in: int, num_out: int) -> tuple[int, ...]:
        """Number of weights per group, for every layer with a sharing map."""
        encoder = [a * b for a, b in pairwise((num_in, *trunk.hidden))]
        width = trunk.hidden[-1]
        return (*encoder, *(count * width**2 for count in cls.combining_weights), width * num_out)

    @classmethod
    def make(cls, spec: NetworkSpec, random: np.random.Generator) -> "TeamCritic":
        """Orthogonal weights, zero biases, unit norms."""
        trunk, width = spec.trunk, spec.trunk.hidden[-1]
        layer = partial(normed_linear, random, trunk.layer_norm)
        # The norm before a layer is shared like the layer whose output it normalises.
        gain, maps = GAINS[trunk.activation], (spec.sharing[0], *spec.sharing)
        encoder = tuple(
            layer(sizes, pair, gain)
            for sizes, pair in zip(
                pairwise((spec.num_in, *trunk.hidden)), pairwise(maps), strict=False
            )
        )
        parts = cls.combining_layers(layer, width, maps[len(encoder) : -1], gain)
        output = layer((width, spec.num_out), (maps[-2], maps[-1]), spec.output_gain)
        style = MLPStyle(trunk.activation, norm=trunk.layer_norm)
        return cls(encoder=encoder, output=output, style=style, **parts)

    @classmethod
    def combining_layers(cls, layer: Any, width: int, maps: Sharing, gain: float) -> dict[str, Any]:
        """The layers between encoder and output, by attribute.

        `layer` is `normed_linear`; the maps are that of the encoder's last layer, then one for
        each entry of `combining_weights`.
        """
        raise NotImplementedError

    def combine(
        self, encoded: Encodings, links: Float[Array, "n r n2"], agents: Agents
    ) -> Float[Array, "k r d"]:
        """Encodings of these agents, combined with those of the agents that they are linked to."""
        raise NotImplementedError

    def __call__(
        self, x: Array, hidden_state: Array, episode_start: Array, agents: Agents = None
    ) -> Outputs:
        """Outputs of these agents from the inputs of the whole team; there is no hidden state."""
        num_agents = len(x)
        encoded, links = x[None, ..., :-num_agents], x[..., -num_agents:]
        for layer in self.encoder:
            encoded = self.style.activate(layer(encoded, agents))
        combined = self.combine(encoded, links, agents)
        out = self.output(self.style.normalise(combined), agents)
        return out, jnp.zeros((*episode_start.shape, 0), hidden_state.dtype)


def normed_linear(
    random: np.random.Generator,
    norm: bool,
    sizes: tuple[int, int],
    maps: tuple[Groups | None, Groups],
    gain: float = 1.0,
) -> NormedLinear:
    """Initialise a layer; the maps are those of its norm (None: it has none) and of its weights."""
    before, groups = maps
    scale = layer_norm(sizes[0], before) if norm and before is not None else None
    return NormedLinear(scale, linear(random, *sizes, groups, gain))


def of_agents(x: Float[Array, "n r *d"], agents: Agents) -> Float[Array, "k r *d"]:
    """The rows of these agents."""
    return x if agents is None else x[agents]


def own_encodings(encoded: Encodings, agents: Agents) -> Float[Array, "k r *d"]:
    """Each of these agents as encoded by its critic."""
    if len(encoded) == 1:
        return of_agents(encoded[0], agents)
    index = jnp.arange(len(encoded)) if agents is None else agents
    return encoded[jnp.arange(len(encoded)), index]


def weighted_sum(weights: Float[Array, "k r n"], encoded: Encodings) -> Float[Array, "k r d"]:
    """Σ_j w_ij x_j for each of some agents, with the encodings x of its critic."""
    if len(encoded) == 1:
        return jnp.einsum("krn,nr...->kr...", weights, encoded[0])
    return jnp.einsum("krn,knr...->kr...", weights, encoded)
