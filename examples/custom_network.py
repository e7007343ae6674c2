"""A custom network: attention over entities, with parameters shared in groups.

    fp3o train mpe/simple_spread --network custom_network:Attention --gru-size 0 --sharing partial

In `mpe/simple_spread` an observation consists of the agent's own velocity and position, the
relative positions of three landmarks and two other agents, and four unused communication
features. The own features are the query, the five entities are keys and values:
softmax(q k^T) v, which is invariant to the order of the entities.
"""

import jax
import jax.numpy as jnp

import fp3o
from fp3o.networks.layers import GroupedLinear
from fp3o.networks.network import MLPGRUNetwork

SELF, ENTITIES = slice(0, 4), slice(4, 14)


class Attention(fp3o.Network):
    """One attention head over the entities, then a hidden layer and the output layer."""

    query: GroupedLinear
    key_value: GroupedLinear
    hidden: GroupedLinear
    output: GroupedLinear

    @classmethod
    def num_layers(cls, trunk, role):
        """Number of sharing maps: one for attention, one per following layer."""
        return 3 if role == "actor" else MLPGRUNetwork.num_layers(trunk, role)

    @classmethod
    def make(cls, spec, random):
        """Attention for actors; critics, whose input is the state, use the default network."""
        if spec.role == "critic":
            return MLPGRUNetwork.make(spec, random)
        attention, trunk, head = spec.sharing
        size, rest = spec.trunk.hidden[0], spec.num_in - 14
        linear = fp3o.linear
        return cls(
            query=linear(random, 4, size, attention),
            key_value=linear(random, 2, 2 * size, attention),
            hidden=linear(random, size + 4 + rest, size, trunk, gain=2**0.5),
            output=linear(random, size, spec.num_out, head, gain=spec.output_gain),
        )

    def __call__(self, x, hidden_state, episode_start, agents=None):
        """Map rows of `k` agents, `(k, r, f)`, to their outputs; there is no hidden state."""
        entities = x[..., ENTITIES].reshape(*x.shape[:2], 5, 2)
        flat = entities.reshape(x.shape[0], -1, 2)
        key, value = jnp.split(self.key_value(flat, None, agents), 2, axis=-1)
        key, value = (y.reshape(*entities.shape[:3], -1) for y in (key, value))
        query = self.query(x[..., SELF], None, agents)
        weight = jax.nn.softmax(jnp.einsum("krh,kreh->kre", query, key) / key.shape[-1] ** 0.5)
        attended = jnp.einsum("kre,kreh->krh", weight, value)
        joined = jnp.concatenate([attended, x[..., SELF], x[..., 14:]], axis=-1)
        hidden = jax.nn.relu(self.hidden(joined, None, agents))
        return self.output(hidden, None, agents), jnp.zeros((*episode_start.shape, 0))
