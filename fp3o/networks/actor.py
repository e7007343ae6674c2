"""Policies of the whole team, a network and an action distribution, and its value functions."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fp3o.networks.distributions import (
    Distribution,
    Gaussian,
    MixedDistribution,
    categorical,
)
from fp3o.networks.layers import Agents, GroupedVector
from fp3o.networks.network import Network, NetworkSpec
from fp3o.networks.obs_norm import ObsNorm
from fp3o.spec import ActionSpace, Discrete, Mixed


class Actor(eqx.Module):
    """Policy of the whole team: network -> action distribution."""

    network: Network
    log_std: GroupedVector | None
    actions: ActionSpace = eqx.field(static=True)
    std_param: str = eqx.field(static=True)
    obs_norm: ObsNorm | None = None
    """Moments that the inputs are normalised with."""

    def __call__(
        self,
        x: Float[Array, "k r f"],
        action_mask: Bool[Array, "k r a"],
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Distribution, Float[Array, "k r h"]]:
        """Action distribution of every agent at every step, and the hidden states after it."""
        out, hidden_states = self.network(x, hidden_state, episode_start, agents)
        return self.distribution(out, action_mask, agents), hidden_states

    def distribution(
        self, out: Float[Array, "k r a"], action_mask: Bool[Array, "k r a"], agents: Agents = None
    ) -> Distribution:
        """Action distribution with these outputs of the network."""
        if isinstance(self.actions, Discrete):
            return categorical(out, action_mask, self.actions.widths)
        if not isinstance(self.actions, Mixed):
            return Gaussian(out, self.std(agents), action_mask)
        number = [self.actions.discrete.num_outputs]
        logits, mean = jnp.split(out, number, axis=-1)
        available, exists = jnp.split(action_mask, number, axis=-1)
        choices = categorical(logits, available, self.actions.widths)
        return MixedDistribution(choices, Gaussian(mean, self.std(agents), exists))

    def folded(self) -> "Actor":
        """The same policy with the norms folded into the layers, faster for many small calls."""
        return dataclasses.replace(self, network=self.network.folded())

    def std(self, agents: Agents = None) -> Float[Array, "k 1 a"]:
        """Deviations of the vector: σ = ½ sigmoid(v), at most ½ (the paper), or σ = exp(v)."""
        if self.log_std is None:  # there is no vector
            return jnp.ones((1, 1, 0))
        v = self.log_std.of(self.log_std.value, agents)[:, None]
        return 0.5 * jax.nn.sigmoid(v) if self.std_param == "sigmoid" else jnp.exp(v)


class Critic(eqx.Module):
    """Value functions of the whole team."""

    network: Network
    obs_norm: ObsNorm | None = None
    """Moments that the inputs are normalised with."""

    def __call__(
        self,
        x: Float[Array, "n r f"],
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Float[Array, "k r 1"], Float[Array, "k r h"]]:
        """Normalised value of every agent at every step, and the hidden states after it.

        `x` has the agents of the stage, or all agents if the network looks across them.
        """
        return self.network(x, hidden_state, episode_start, agents)


STD_PARAM_INIT = {"sigmoid": 1.0, "exp": 0.0}
"""Initial parameter v of each parametrisation: σ = 0.3655 and σ = 1."""


def make_actor(
    network_type: type[Network], spec: NetworkSpec, std_param: str, random: np.random.Generator
) -> Actor:
    """Initialise a policy."""
    network, log_std = network_type.make(spec, random), None
    if num_dimensions := spec.env_spec.actions.num_dimensions:
        groups = spec.sharing[-1]
        value = jnp.full((max(groups) + 1, num_dimensions), STD_PARAM_INIT[std_param])
        log_std = GroupedVector(value=value, groups=groups)
    return Actor(network, log_std, spec.env_spec.actions, std_param)
