"""TODO."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fp3o.networks.distributions import Distribution, Gaussian, categorical
from fp3o.networks.layers import Agents, GroupedVector
from fp3o.networks.network import Network, NetworkSpec
from fp3o.spec import Box, Discrete


class Actor(eqx.Module):
    """A policy for the whole team: network -> action distribution."""

    network: Network
    log_std: GroupedVector | None
    actions: Discrete | Box = eqx.field(static=True)
    std_param: str = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "k r f"],
        action_mask: Bool[Array, "k r a"],
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Distribution, Float[Array, "k r h"]]:
        """The distribution of every agent's action at every step, and the memories after it."""
        out, hidden_states = self.network(x, hidden_state, episode_start, agents)
        if isinstance(self.actions, Discrete):
            return categorical(out, action_mask, self.actions.widths), hidden_states
        return Gaussian(out, self._std(agents), action_mask), hidden_states

    def folded(self) -> "Actor":
        """The same policy, made ready for many decisions."""
        return Actor(self.network.folded(), self.log_std, self.actions, self.std_param)

    def _std(self, agents: Agents) -> Float[Array, "k 1 a"]:
        """σ = ½ sigmoid(v), at most ½ (the paper), or σ = exp(v)."""
        assert self.log_std is not None
        v = self.log_std.of(self.log_std.value, agents)[:, None]
        return 0.5 * jax.nn.sigmoid(v) if self.std_param == "sigmoid" else jnp.exp(v)


STD_PARAM_INIT = {"sigmoid": 1.0, "exp": 0.0}
"""Initial free number of each parametrisation: σ = 0.3655 and σ = 1."""


def make_actor(
    kind: type[Network], plan: NetworkSpec, std: str, random: np.random.Generator
) -> Actor:
    """A fresh policy network."""
    network, log_std = kind.make(plan, random), None
    if isinstance(plan.spec.actions, Box):
        groups = plan.sharing[-1]
        value = jnp.full((max(groups) + 1, plan.num_out), STD_PARAM_INIT[std])
        log_std = GroupedVector(value=value, groups=groups)
    return Actor(network, log_std, plan.spec.actions, std)
