"""Everything that is fixed before training: the task's facts, the settings, the layouts."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fp3o.algorithms import Algorithm
from fp3o.config import Config, Rates, check
from fp3o.nets import Actor, Body, Network, make_actor, make_network, normalise
from fp3o.optim import Layout, Rows, init_adam
from fp3o.returns import ValueNorm
from fp3o.sharing import critic_follows, share
from fp3o.spaces import EnvSpec


class Learner(NamedTuple):
    """What training changes: parameters in rows, optimiser states, the value normaliser."""

    actor: Rows
    actor_adam: Any
    critic: Rows
    critic_adam: Any
    norm: ValueNorm


class Setup:
    """A checked task and configuration; static, made once."""

    def __init__(self, spec: EnvSpec, config: Config):
        check(config, spec)
        self.spec, self.config = spec, config
        self.row: Algorithm = config.row
        self.num_layers = len(config.hidden) + bool(config.recurrent) + 1
        self.actor_sharing = share(config.sharing, spec.kinds, self.num_layers)
        self.critic_sharing = (
            critic_follows(self.actor_sharing, self.num_layers)
            if config.critic_sharing is None
            else share(config.critic_sharing, spec.kinds, self.num_layers)
        )
        actor, critic = self._networks(seed=0)
        self.actor_layout = Layout(actor, config.head_rate)
        self.critic_layout = Layout(critic)

    @property
    def whole_team(self) -> bool:
        """Whether every stage updates all agents, in their order."""
        return self.row.schedule != "in_turn"

    @property
    def num_critics(self) -> int:
        """Critics with a value normaliser of their own."""
        return max(self.critic_sharing[-1]) + 1

    @property
    def critic_of_agent(self) -> Int[Array, " n"]:
        """Agent -> critic."""
        return jnp.asarray(self.critic_sharing[-1])

    def rates(self) -> Rates:
        """The configured rates as arrays, ready to be traced or stacked over seeds."""
        return jax.tree.map(lambda x: jnp.asarray(x, float), self.config.rates)

    def init(self, seed: int) -> Learner:
        """Fresh networks, empty optimisers."""
        actor, critic = self._networks(seed)
        actor_rows, critic_rows = self.actor_layout.pack(actor), self.critic_layout.pack(critic)
        return Learner(
            actor_rows, init_adam(actor_rows), critic_rows, init_adam(critic_rows),
            ValueNorm.create(self.num_critics),
        )  # fmt: skip

    def actor(self, rows: Rows) -> Actor:
        """The policy network of these rows."""
        return self.actor_layout.unpack(rows)

    def critic(self, rows: Rows) -> Network:
        """The value network of these rows."""
        return self.critic_layout.unpack(rows)

    def features(self, x: Float[Array, "*e n f"]) -> Float[Array, "*e n f2"]:
        """An observation or state with the agent's one-hot behind it, where that is asked for."""
        if not self.config.agent_id:
            return x
        num_agents = self.spec.num_agents
        ids = jnp.broadcast_to(jnp.eye(num_agents, dtype=x.dtype), (*x.shape[:-1], num_agents))
        return jnp.concatenate([x, ids], axis=-1)

    def inputs(self, x: Float[Array, "*e n f"]) -> Float[Array, "*e n f2"]:
        """Features as the networks take them: standardised if they have LayerNorm."""
        features = self.features(x)
        return normalise(features) if self.config.layer_norm else features

    def _networks(self, seed: int) -> tuple[Actor, Network]:
        config, spec = self.config, self.spec
        ids = spec.num_agents if config.agent_id else 0
        view = spec.state_size if self.row.view == "state" else spec.obs_size
        body = Body(config.hidden, config.recurrent, config.activation, config.layer_norm)
        random = np.random.default_rng(seed)
        actor = make_actor(
            spec.actions, spec.obs_size + ids, body, self.actor_sharing, config.gain, config.std,
            random,
        )  # fmt: skip
        critic = make_network(view + ids, 1, body, self.critic_sharing, 1.0, random)
        return actor, critic
