"""Inputs of the critics, as they are kept in a trajectory."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from fp3o.envs.adjacency import adjacency_matrix
from fp3o.learning.setup import Setup


def critic_input(setup: Setup, obs: Any, state: Any, alive: Any) -> Any:
    """The state or the observations; for critics that look across agents, with links.

    Such a critic gets the observation of every agent, `(..., n, f)`, followed by `n` numbers: 1 for
    the agents that this agent's value may depend on.
    """
    if not setup.crosses_agents:
        return state if setup.row.critic_input == "state" else obs
    return jnp.concatenate([obs, _links(setup, obs, state, alive).astype(obs.dtype)], axis=-1)


def _links(setup: Setup, obs: Any, state: Any, alive: Any) -> Bool[Array, "*b n n"]:
    """All living agents; or, on a graph, the living neighbours and the agent itself."""
    living = jnp.broadcast_to(alive[..., None, :], (*alive.shape, alive.shape[-1]))
    if setup.critic_network.scope == "team":
        return living
    return living & adjacency_matrix(setup.spec, obs, state) | np.eye(alive.shape[-1], dtype=bool)
