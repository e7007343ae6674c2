"""Critics by name: the networks of actors, attention over agents, message passing on a graph."""

import math
from itertools import pairwise
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.errors import SettingError, nearest
from fp3o.networks.layers import Agents
from fp3o.networks.mlp import ACTIVATIONS
from fp3o.networks.network import NETWORKS, Network, Scope, network_class
from fp3o.networks.team_critic import (
    Encodings,
    NormedLinear,
    TeamCritic,
    of_agents,
    own_encodings,
    weighted_sum,
)
from fp3o.sharing.maps import Sharing

MAX_HEADS = 4
"""Attention heads, if they divide the width; otherwise the largest common divisor."""

ROUNDS = 2
"""Rounds of message passing: a value depends on agents at most this many edges away."""

MASKED = -1e9
"""Score of an agent that is not attended to."""

SMALLEST_SUM = 1e-6
"""Lower bound of a sum of weights, which is 0 if nobody is alive."""


class AttentionCritic(TeamCritic):
    """Each agent attends to the living agents; then an MLP, both with residual connections."""

    attention: NormedLinear
    """Queries, keys and values."""
    projection: NormedLinear
    hidden: NormedLinear
    contraction: NormedLinear

    scope: ClassVar[Scope] = "team"
    combining_weights = (4, 2)

    @classmethod
    def combining_layers(cls, layer: Any, width: int, maps: Sharing, gain: float) -> dict[str, Any]:
        """Attention with its projection, and the two layers of the MLP."""
        square, (before, attention, mlp) = (width, width), maps
        return {
            "attention": layer((width, 3 * width), (before, attention)),
            "projection": layer(square, (None, attention)),
            "hidden": layer(square, (attention, mlp), gain),
            "contraction": layer(square, (None, mlp)),
        }

    def combine(self, encoded: Encodings, links: Array, agents: Agents) -> Float[Array, "k r d"]:
        """The encodings plus what attention adds, plus what the MLP adds."""
        width = encoded.shape[-1]
        heads = math.gcd(width, MAX_HEADS)
        parts = self.attention(encoded, agents)
        query, key, value = jnp.split(parts.reshape(*parts.shape[:-1], 3 * heads, -1), 3, axis=-2)
        own, mask = own_encodings(query, agents), of_agents(links, agents)[:, :, None] > 0
        pairs = "krhe,nrhe->krhn" if len(key) == 1 else "krhe,knrhe->krhn"
        scores = jnp.einsum(pairs, own, key[0] if len(key) == 1 else key) / math.sqrt(width / heads)
        by_head = jax.vmap(weighted_sum, (2, 3), 2)
        attended = by_head(_softmax(scores, mask), value)
        x = own_encodings(encoded, agents)
        x += self.projection(attended.reshape(*attended.shape[:2], width), agents)
        hidden = self.hidden(self.style.normalise(x), agents)
        return x + self.contraction(ACTIVATIONS[self.style.activation](hidden), agents)


def _softmax(scores: Float[Array, "k r h n"], mask: Array) -> Float[Array, "k r h n"]:
    """Softmax over the agents of the mask; 0 if there are none."""
    scores = jnp.where(mask, scores, MASKED)
    weights = mask * jnp.exp(scores - jax.lax.stop_gradient(scores.max(-1, keepdims=True)))
    return weights / jnp.maximum(weights.sum(-1, keepdims=True), SMALLEST_SUM)


class GraphCritic(TeamCritic):
    """Rounds of message passing: each agent receives the mean of its living neighbours."""

    rounds: tuple[NormedLinear, ...]
    """From an encoding and the mean over neighbours to the change of the encoding."""

    scope: ClassVar[Scope] = "graph"
    combining_weights = (2,) * ROUNDS

    @classmethod
    def combining_layers(cls, layer: Any, width: int, maps: Sharing, gain: float) -> dict[str, Any]:
        """One layer per round."""
        return {"rounds": tuple(layer((2 * width, width), pair, gain) for pair in pairwise(maps))}

    def combine(self, encoded: Encodings, links: Array, agents: Agents) -> Float[Array, "k r d"]:
        """Messages between all agents, and in the last round to these agents only."""
        weights = links / jnp.maximum(links.sum(-1, keepdims=True), 1.0)
        for layer in self.rounds[:-1]:
            means = jax.vmap(lambda rows: weighted_sum(weights, rows[None]))(encoded)
            encoded = self._updated(encoded, means, layer, agents)
        means = weighted_sum(of_agents(weights, agents), encoded)
        return self._updated(own_encodings(encoded, agents), means, self.rounds[-1], agents)

    def _updated(self, own: Array, means: Array, layer: NormedLinear, agents: Agents) -> Array:
        both = self.style.normalise(jnp.concatenate([own, means], -1))
        return own + ACTIVATIONS[self.style.activation](layer(both, agents))


CRITICS: dict[str, type[Network]] = {"attention": AttentionCritic, "graph": GraphCritic}
"""Built-in critics that look across agents, by name."""


def critic_class(name: str) -> type[Network]:
    """Class of a critic by name, or a custom one by import path, `my_module:MyCritic`."""
    if name in CRITICS:
        return CRITICS[name]
    if ":" not in name and name not in NETWORKS:
        raise SettingError(
            f"unknown critic {name!r}: {nearest(name, [*NETWORKS, *CRITICS])}; a custom one is "
            "named with its module, my_module:MyCritic"
        )
    return network_class(name)
