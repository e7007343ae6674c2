"""The static setup of training: task, settings, sharing maps, parameter layouts."""

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError
from fp3o.learning.check_config import check_config
from fp3o.learning.config import Config
from fp3o.learning.optim import PackedParams, ParamLayout, init_adam
from fp3o.learning.returns import ValueNorm
from fp3o.networks.actor import Actor, Critic, make_actor
from fp3o.networks.conv_layers import ConvStack
from fp3o.networks.distributions import num_outputs
from fp3o.networks.layers import normalise, pad_features
from fp3o.networks.network import MLPGRUNetwork, NetworkSpec, TrunkSpec, network_class
from fp3o.networks.obs_norm import ObsNorm, make_obs_norm
from fp3o.networks.validate import validate_network
from fp3o.sharing.maps import Sharing, default_critic_sharing, obs_groups, split_off
from fp3o.sharing.schemes import SharingSpec, layer_groups, resolve_groups
from fp3o.spec import EnvSpec

Role = Literal["actor", "critic"]


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
        self.network = network_class(config.network)
        stacks = config.conv_stacks(spec)
        self._trunks = {role: self._trunk(stack) for role, stack in stacks.items()}
        layers = [self.network.num_layers(trunk, role) for role, trunk in self._trunks.items()]
        sharing = self._sharing(config.sharing, layers[0])
        self.actor_sharing = split_off(sharing, config.frozen_agents)
        if config.critic_sharing is None:
            self.critic_sharing = default_critic_sharing(sharing, layers[1])
        else:
            self.critic_sharing = self._sharing(config.critic_sharing, layers[1])
        actor, critic = self._networks(seed=0)
        if self.network is not MLPGRUNetwork:
            validate_network(actor.network, self.network_spec("actor"))
            validate_network(critic.network, self.network_spec("critic"))
        self.actor_layout = ParamLayout(actor, config.head_lr_factor)
        self.critic_layout = ParamLayout(critic)

    @property
    def whole_team(self) -> bool:
        """Whether every stage updates all agents, in their order."""
        return self.stage_facts.whole_team

    @property
    def num_critics(self) -> int:
        """Number of critics that have a separate value normaliser."""
        return max(self.critic_sharing[-1]) + 1

    @property
    def critic_of_agent(self) -> Int[Array, " n"]:
        """Index of each agent's critic."""
        return jnp.asarray(self.critic_sharing[-1])

    @property
    def learns(self) -> Bool[np.ndarray, " n"]:
        """Which agents are updated; the others are frozen."""
        return ~np.isin(np.arange(self.spec.num_agents), self.config.frozen_agents)

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
        is that of the products in the networks.
        """
        features = self.features(x if norm is None else norm(x))
        convolved = bool(self._trunks[role].conv.layers)
        features = normalise(features) if self.config.layer_norm and not convolved else features
        if self.config.precision == "bfloat16":
            features = features.astype(jnp.bfloat16)
        padded = self.network is MLPGRUNetwork and not convolved
        return pad_features(features) if padded else features

    def network_spec(self, role: Role) -> NetworkSpec:
        """Specification of the policy network or the value network."""
        config, spec, trunk = self.config, self.spec, self._trunks[role]
        ids = spec.num_agents if config.agent_id else 0
        if role == "actor":
            size, out = spec.obs_size, num_outputs(spec.actions)
            return NetworkSpec(
                role, spec, size + ids, out, trunk, self.actor_sharing, config.output_gain
            )
        size = spec.state_size if self.row.critic_input == "state" else spec.obs_size
        return NetworkSpec(role, spec, size + ids, 1, trunk, self.critic_sharing, 1.0)

    def _trunk(self, stack: ConvStack) -> TrunkSpec:
        config = self.config
        if not self.network.convolves:
            if config.conv:
                raise SettingError(
                    f"conv is for the built-in network mlp_gru; the network {config.network} gets "
                    "images as ordinary features"
                )
            stack = ConvStack()
        return TrunkSpec(
            config.hidden, config.gru_size, config.activation, config.layer_norm, stack
        )

    def _sharing(self, sharing: SharingSpec, num_layers: int) -> Sharing:
        plain = resolve_groups(sharing, self.spec)
        return layer_groups(plain, self.spec.agent_types, num_layers)

    def _networks(self, seed: int) -> tuple[Actor, Critic]:
        random = np.random.default_rng(seed)
        actor_spec, critic_spec = self.network_spec("actor"), self.network_spec("critic")
        actor = make_actor(self.network, actor_spec, self.config.std_param, random)
        critic = Critic(self.network.make(critic_spec, random))
        if not self.config.obs_norm:
            return actor, critic
        groups = obs_groups(self.spec)
        ids = self.spec.num_agents if self.config.agent_id else 0
        norms = [
            make_obs_norm(spec.num_in - ids - spec.trunk.conv.image_size, groups)
            for spec in (actor_spec, critic_spec)
        ]
        return replace(actor, obs_norm=norms[0]), replace(critic, obs_norm=norms[1])
