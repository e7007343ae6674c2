"""A network of one's own: attention over entities, with parameters that are shared in groups.

    fp3o train mpe/simple_spread --network own_network:Attention --gru-size 0 --sharing partial

In `mpe/simple_spread` an agent sees itself (velocity, position), three landmarks and two other
agents (positions relative to its own), and four numbers of speech that nobody uses. Here what it
sees of itself asks, the five others answer: softmax(q k^T) v, whatever order they stand in.
"""

import jax
import jax.numpy as jnp

import fp3o
from fp3o.networks.layers import GroupedLinear
from fp3o.networks.network import MLPGRUNetwork

SELF, ENTITIES = slice(0, 4), slice(4, 14)


class Attention(fp3o.Network):
    """One head of attention over what is seen of others, then a hidden layer and the output."""

    ask: GroupedLinear
    answer: GroupedLinear
    hidden: GroupedLinear
    output: GroupedLinear

    @classmethod
    def num_layers(cls, body, role):
        """Maps from agent to group: one for asking and answering, one for each layer behind."""
        return 3 if role == "actor" else MLPGRUNetwork.num_layers(body, role)

    @classmethod
    def make(cls, plan, random):
        """Attention for actors; critics, which see the state, keep the usual network."""
        if plan.role == "critic":
            return MLPGRUNetwork.make(plan, random)
        attend, trunk, head = plan.sharing
        size, rest = plan.trunk.hidden[0], plan.num_in - 14
        linear = fp3o.linear
        return cls(
            ask=linear(random, 4, size, attend),
            answer=linear(random, 2, 2 * size, attend),
            hidden=linear(random, size + 4 + rest, size, trunk, gain=2**0.5),
            output=linear(random, size, plan.num_out, head, gain=plan.output_gain),
        )

    def __call__(self, x, hidden_state, episode_start, agents=None):
        """Rows of `k` agents, `(k, r, f)`, to their outputs; there is no memory."""
        entities = x[..., ENTITIES].reshape(*x.shape[:2], 5, 2)
        flat = entities.reshape(x.shape[0], -1, 2)
        key, value = jnp.split(self.answer(flat, None, agents), 2, axis=-1)
        key, value = (y.reshape(*entities.shape[:3], -1) for y in (key, value))
        question = self.ask(x[..., SELF], None, agents)
        weight = jax.nn.softmax(jnp.einsum("krh,kreh->kre", question, key) / key.shape[-1] ** 0.5)
        seen = jnp.einsum("kre,kreh->krh", weight, value)
        joined = jnp.concatenate([seen, x[..., SELF], x[..., 14:]], axis=-1)
        hidden = jax.nn.relu(self.hidden(joined, None, agents))
        return self.output(hidden, None, agents), jnp.zeros((*episode_start.shape, 0))
