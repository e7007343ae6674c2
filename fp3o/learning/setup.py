"""The static setup of training: task, settings, sharing maps, parameter layouts."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError
from fp3o.learning.check_config import check_config
from fp3o.learning.check_networks import check_scopes
from fp3o.learning.config import Config
from fp3o.learning.optim import PackedParams, ParamLayout, init_adam
from fp3o.learning.returns import ValueNorm
from fp3o.networks.actor import Actor, Critic, make_actor
from fp3o.networks.conv_layers import ConvStack
from fp3o.networks.critics import CRITICS, critic_class
from fp3o.networks.distributions import num_outputs
from fp3o.networks.layers import normalise, pad_features
from fp3o.networks.network import (
    MLPGRUNetwork,
    Network,
    NetworkSpec,
    Role,
    TrunkSpec,
    network_class,
)
from fp3o.networks.obs_norm import ObsNorm, make_obs_norm
from fp3o.networks.validate import validate_network
from fp3o.sharing.maps import Sharing, default_critic_sharing, obs_groups, split_off
from fp3o.sharing.schemes import SharingSpec, layer_groups, resolve_groups
from fp3o.spec import EnvSpec


class Learner(NamedTuple):
    """The learned state: packed parameters, optimiser states, value normaliser."""

    actor: PackedParams
    actor_adam: Any
    critic: PackedParams
    critic_adam: Any
    value_norm: ValueNorm


class Setup:
    """A validated task and configuration; static during training."""

    def __init__(self, spec: EnvSpec, config: Config):
        check_config(config, spec)
        self.spec, self.config = spec, config
        self.row: Algorithm = config.row
        self.stage_facts = config.stage_facts(spec)
        self.network = CRITICS.get(config.network) or network_class(config.network)
        self.critic_network = critic_class(config.critic or config.network)
        check_scopes(config, spec, self.network.scope, self.critic_network.scope)
        stacks = config.conv_stacks(spec)
        self.trunks = {role: self._trunk(role, stack) for role, stack in stacks.items()}
        num_layers = self.network.num_layers(self.trunks["actor"], "actor")
        sharing = self._sharing(config.sharing, num_layers)
        self.actor_sharing = split_off(sharing, config.frozen_agents)
        num_layers = self.critic_network.num_layers(self.trunks["critic"], "critic")
        if config.critic_sharing is None:
            self.critic_sharing = default_critic_sharing(sharing, num_layers)
        else:
            self.critic_sharing = self._sharing(config.critic_sharing, num_layers)
        actor, critic = self._networks(seed=0)
        if self.network is not MLPGRUNetwork:
            validate_network(actor.network, self.network_spec("actor"))
        if self.critic_network not in (MLPGRUNetwork, *CRITICS.values()):
            validate_network(critic.network, self.network_spec("critic"))
        self.actor_layout = ParamLayout(actor, config.head_lr_factor)
        self.critic_layout = ParamLayout(critic)

    @property
    def whole_team(self) -> bool:
        """Whether every stage updates all agents, in their order."""
        return self.stage_facts.whole_team

    @property
    def crosses_agents(self) -> bool:
        """Whether an agent's value depends on the inputs of other agents."""
        return self.critic_network.scope != "agent"

    @property
    def num_critics(self) -> int:
        """Number of critics that have a separate value normaliser."""
        return max(self.critic_sharing[-1]) + 1

    @property
    def critic_of_agent(self) -> Int[Array, " n"]:
        """Index of each agent's critic."""
        return jnp.asarray(self.critic_sharing[-1])

    @property
    def learns(self) -> Bool[Array, " n"]:
        """Which agents are updated; the others are frozen."""
        return jnp.asarray(~np.isin(np.arange(self.spec.num_agents), self.config.frozen_agents))

    def init(self, seed: int) -> Learner:
        """Initialise networks and optimisers."""
        actor, critic = self._networks(seed)
        actor_params = self.actor_layout.pack(actor)
        critic_params = self.critic_layout.pack(critic)
        return Learner(
            actor_params,
            init_adam(actor_params),
            critic_params,
            init_adam(critic_params),
            ValueNorm.create(self.num_critics),
        )

    def actor(self, params: PackedParams) -> Actor:
        """The policy with these parameters."""
        return self.actor_layout.unpack(params)

    def critic(self, params: PackedParams) -> Critic:
        """The value functions with these parameters."""
        return self.critic_layout.unpack(params)

    def features(self, x: Float[Array, "*e n f"]) -> Float[Array, "*e n f2"]:
        """Observation or state, followed by the agent's one-hot index if `agent_id` is set."""
        if not self.config.agent_id:
            return x
        num_agents = self.spec.num_agents
        ids = jnp.broadcast_to(jnp.eye(num_agents, dtype=x.dtype), (*x.shape[:-1], num_agents))
        return jnp.concatenate([x, ids], axis=-1)

    def inputs(
        self, x: Float[Array, "*e n f"], role: Role = "actor", norm: ObsNorm | None = None
    ) -> Float[Array, "*e n f2"]:
        """Network inputs: the features, standardised if the networks have LayerNorm.

        `norm` is the running normaliser of the actor or the critic. Features that begin with an
        image to be convolved are standardised in the network, after the convolutions. The precision
        is that of the products in the networks. Which agents a critic looks at is no feature, and
        stays as it is.
        """
        if role == "critic" and self.crosses_agents:
            x, links = jnp.split(x, [self.spec.obs_size], axis=-1)
            return jnp.concatenate([self._standardised(x, role, norm), links], axis=-1)
        inputs = self._standardised(x, role, norm)
        built_in = self._network_of(role) is MLPGRUNetwork
        convolved = bool(self.trunks[role].conv.layers)
        return pad_features(inputs) if built_in and not convolved else inputs

    def _standardised(
        self, x: Float[Array, "*e n f"], role: Role, norm: ObsNorm | None
    ) -> Float[Array, "*e n f2"]:
        features = self.features(x if norm is None else norm(x))
        convolved = bool(self.trunks[role].conv.layers)
        features = normalise(features) if self.config.layer_norm and not convolved else features
        if self.config.precision == "bfloat16":
            features = features.astype(jnp.bfloat16)
        return features

    def network_spec(self, role: Role) -> NetworkSpec:
        """Specification of the policy network or the value network."""
        config, spec, trunk = self.config, self.spec, self.trunks[role]
        ids = spec.num_agents if config.agent_id else 0
        if role == "actor":
            size, out = spec.obs_size, num_outputs(spec.actions)
            return NetworkSpec(
                role, spec, size + ids, out, trunk, self.actor_sharing, config.output_gain
            )
        central = self.row.critic_input == "state" and not self.crosses_agents
        size = spec.state_size if central else spec.obs_size
        return NetworkSpec(role, spec, size + ids, 1, trunk, self.critic_sharing, 1.0)

    def _network_of(self, role: Role) -> type[Network]:
        return self.network if role == "actor" else self.critic_network

    def _trunk(self, role: Role, stack: ConvStack) -> TrunkSpec:
        """Sizes of the layers; critics that look across agents are not recurrent."""
        config = self.config
        if config.conv and not self.network.convolves:
            raise SettingError(
                f"conv is for the built-in network mlp_gru; the network {config.network} gets "
                "images as ordinary features"
            )
        stack = stack if self._network_of(role).convolves else ConvStack()
        gru_size = 0 if role == "critic" and self.crosses_agents else config.gru_size
        return TrunkSpec(config.hidden, gru_size, config.activation, config.layer_norm, stack)

    def _sharing(self, sharing: SharingSpec, num_layers: int) -> Sharing:
        plain = resolve_groups(sharing, self.spec)
        return layer_groups(plain, self.spec.agent_types, num_layers)

    def _networks(self, seed: int) -> tuple[Actor, Critic]:
        random = np.random.default_rng(seed)
        actor_spec, critic_spec = self.network_spec("actor"), self.network_spec("critic")
        actor = make_actor(self.network, actor_spec, self.config.std_param, random)
        critic = Critic(self.critic_network.make(critic_spec, random))
        if not self.config.obs_norm:
            return actor, critic
        groups = obs_groups(self.spec, self.config.frozen_agents), obs_groups(self.spec)
        ids = self.spec.num_agents if self.config.agent_id else 0
        norms = [
            make_obs_norm(spec.num_in - ids - spec.trunk.conv.image_size, own)
            for spec, own in zip((actor_spec, critic_spec), groups, strict=True)
        ]
        return replace(actor, obs_norm=norms[0]), replace(critic, obs_norm=norms[1])
